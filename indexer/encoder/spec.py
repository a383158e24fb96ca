"""What identifies a model: everything which changes the vectors that it makes."""

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from ..errors import SondeError

DTYPES = ("float32", "bfloat16", "float16", "int8")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model and the settings under which a collection was embedded with it.

    Attributes:
        name: As `load_encoder` takes it: the default's short name, "static", a hub's "org/name" or an absolute folder.
        revision: The hub's commit, or None for a local model.
        digest: SHA-256 over the weights; for the static tier over its base's digest and the recipe.
        dimension: Length of a vector, after any truncation.
        max_tokens: The window: the most tokens, special ones and prompt included, that one text may take.
        query_prompt: Put in front of every query.
        document_prompt: Put in front of every passage.
        normalize: Whether vectors have length 1.
        dtype: Precision of the forward pass; "int8" is ONNX Runtime's dynamic quantization on a CPU.
        truncate_dim: Matryoshka truncation, applied before normalising; None keeps all dimensions.
        similarity: "cosine", or "dot" where the model says so and vectors are not normalised. Higher is nearer.
        kind: "transformer" or "static".
    """

    name: str
    revision: str | None
    digest: str
    dimension: int
    max_tokens: int
    query_prompt: str
    document_prompt: str
    normalize: bool
    dtype: str
    truncate_dim: int | None
    similarity: str
    kind: str

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits over all that changes a vector; neither the name nor the device does."""
        values = asdict(self)
        del values["name"], values["revision"]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, which `from_dict` reads back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            SondeError: A field is missing or unknown.
        """
        expected = {field.name for field in fields(cls)}
        if set(values) != expected:
            odd = ", ".join(sorted(expected ^ set(values)))
            raise SondeError(f"the collection's model description is damaged or of another version (fields: {odd})")
        return cls(**values)
