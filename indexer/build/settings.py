"""What a build can be told."""

from dataclasses import dataclass, field

from ..ann import AnnSettings
from ..encoder import DEFAULT_MODEL
from ..errors import UsageError
from ..languages import normalise


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """Settings of one `index` run.

    The model's settings (`model` to `max_tokens`) belong to the collection: they are fixed when it is made, and a
    later run that names others is refused. None means: as the collection has it, or the default.

    Attributes:
        sync: Also delete the documents that the source no longer holds.
        batch: Passages per commit; None adapts it so that a commit comes every few seconds.
        language: Language of the texts (ISO 639-1) where a document names none; None detects it from a sample.

    Raises:
        UsageError: The language is unknown.
    """

    model: str | None = None
    device: str = "auto"
    dtype: str | None = None
    truncate_dim: int | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    normalize: bool | None = None
    max_tokens: int | None = None
    language: str | None = None
    sync: bool = False
    batch: int | None = None
    ann: AnnSettings = field(default_factory=AnnSettings)

    def __post_init__(self) -> None:
        if self.language is not None and normalise(self.language) is None:
            raise UsageError(f"unknown language {self.language!r}: give a code such as en, de or pt-BR")

    def model_options(self) -> dict[str, object]:
        """Return the settings of the model that were given, as arguments of `load_encoder`."""
        names = ("dtype", "truncate_dim", "query_prompt", "document_prompt", "normalize", "max_tokens")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @property
    def model_name(self) -> str:
        """The model's name, with the default filled in."""
        return DEFAULT_MODEL if self.model is None else self.model
