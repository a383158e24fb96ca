"""The engines: what judges a text against a label, and which of them runs by default."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol, cast, get_args

import numpy as np

from ...indexer.encoder import Encoder
from ...indexer.encoder.settings import resolve_devices
from ...indexer.errors import Message, SondeError, UsageError, arg
from ...indexer.progress import Notify, silent
from ..pairs import PairModel, load_pair_model
from ..search.rerank.late import BACKWARD, Rarity, maxsim
from .labels import BUNDLED_TEMPLATE, TEMPLATE, Label
from .scores import HUB_MODEL, NliJudge

LATE = "late"
TEMPERATURE = 0.05
"""Scores are divided by it before the softmax."""
YES = 0.25
"""Score from which a text is rather about a label than not, for several labels per text."""


class LateJudge:
    """Reads each text once, whatever the number of labels, by the token vectors that also rerank searches."""

    name = "reranker"

    def __init__(self, encoder: Encoder, rarity: Rarity) -> None:
        """Take the bi-encoder and how rare its tokens are among the texts."""
        self.encoder = encoder
        self.rarity = rarity

    @property
    def model(self) -> str:
        """What it is: late interaction, and over which model's token vectors."""
        return f"{LATE}, {self.encoder.spec.name}"

    def margins(
        self, texts: Sequence[str], labels: Sequence[Label], multi_label: bool,
        chosen: np.ndarray | None = None, on_batch: Callable[[int], object] | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return float32 [texts, labels] of scaled scores; higher is likelier, not calibrated.

        A text is read as far as the model's window goes.
        """
        read = self.encoder.token_vectors(self.encoder.tokenize(list(texts)))
        asked = self.encoder.token_vectors(self.encoder.tokenize([label.wording for label in labels], query=True))
        vectors, weights = [each.vectors for each in read], [self.rarity(each.ids) for each in read]
        found = np.stack(
            [maxsim(each.vectors, vectors, self.rarity(each.ids), weights, BACKWARD) for each in asked], axis=1
        )
        if on_batch:
            on_batch(found.size)
        margins = (found - YES if multi_label else found) / TEMPERATURE
        return (margins if chosen is None else np.where(chosen, margins, np.nan)).astype(np.float32)


EngineName = Literal["nli", "similarity", "reranker", "ensemble"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
DEFAULT_ENGINE: EngineName = "similarity"
"""What runs without an engine named, chosen by measurement on the development sets: see docs/labelling.md."""
BUNDLED_MODEL = "bundled"


class Judge(Protocol):
    """Reads a text and a label together; slow, and better than vectors where it is well trained."""

    name: str
    """What it does: "nli" or "reranker"."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    def margins(
        self, texts: Sequence[str], labels: Sequence[Label], multi_label: bool,
        chosen: np.ndarray | None = None, on_batch: Callable[[int], object] | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return float32 [texts, labels] log-odds, NaN where `chosen` (bool [texts, labels]) is False."""
        ...


class RerankerJudge:
    """A cross-encoder for search that reads the label with its description as the query, the text as the passage."""

    name = "reranker"

    def __init__(self, pairs: PairModel) -> None:
        """Take a model of one logit.

        Raises:
            SondeError: It gives several.
        """
        if pairs.num_labels != 1:
            raise SondeError(
                f"{pairs.name} gives {pairs.num_labels} scores a pair, a reranker one: "
                f"take another, or {arg('engine')} nli"
            )
        self.pairs = pairs

    @property
    def model(self) -> str:
        """The model's name."""
        return self.pairs.name

    def margins(
        self, texts: Sequence[str], labels: Sequence[Label], multi_label: bool,
        chosen: np.ndarray | None = None, on_batch: Callable[[int], object] | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return float32 [texts, labels], the raw scores; as log-odds they are not calibrated."""
        places = np.argwhere(np.ones((len(texts), len(labels)), bool) if chosen is None else chosen)
        pairs = [(labels[label].wording, texts[text]) for text, label in places.tolist()]
        found = np.full((len(texts), len(labels)), np.nan, np.float32)
        found[places[:, 0], places[:, 1]] = self.pairs.logits(pairs, cut="longest", on_batch=on_batch)[:, 0]
        return found


def check_engine(name: str | None) -> EngineName:
    """Return the engine of this name, or the default.

    Raises:
        UsageError: There is none of this name.
    """
    if name is None:
        return DEFAULT_ENGINE
    if name not in ENGINES:
        said = f"there is no engine {name!r}: use {', '.join(ENGINES)}"
        raise UsageError(said, code="unknown-option", field="engine", value=name, alternatives=ENGINES)
    return cast("EngineName", name)


def load_judge(
    engine: EngineName, model: str | None = None, *, late: Callable[[], LateJudge], template: str | None = None,
    device: str = "auto", dtype: str = "auto", notify: Notify = silent,
) -> Judge | None:  # fmt: skip
    """Return the judge of an engine; None for similarity, which needs none.

    Args:
        engine: "nli", "similarity", "reranker" or "ensemble" (NLI beside similarity).
        model: "bundled", a model's folder or a hub name; where None, the bundled NLI model. For reranker
            "late" or a cross-encoder; "late" where None.
        late: Makes the judge "late" from the given bi-encoder.
        template: The hypothesis template of NLI; where None, the one that suits the model.
        device: "auto", "cpu", "cuda" …
        dtype: "auto", "float32", "bfloat16" or "float16".
        notify: Receives sentences that the user should read.

    Raises:
        UsageError: The name, the template or the device is not valid.
        SondeError: The model is not available, or does not fit the engine.
    """
    if engine == "similarity":
        if model is not None:
            said = f"{arg('model')} is for the engines nli, reranker and ensemble: similarity has the collection's"
            raise UsageError(said, code="conflict", field="model", value=model)
        return None
    if engine == "reranker":
        if model is None or model == LATE:
            return late()
        return RerankerJudge(load_pair_model(model, device=device, dtype=dtype, notify=notify))
    pairs = load_nli(model, device=device, dtype=dtype, notify=notify)
    return NliJudge(pairs, template or (BUNDLED_TEMPLATE if pairs.name == BUNDLED_MODEL else TEMPLATE))


def load_nli(
    model: str | None = None, *, device: str = "auto", dtype: str = "auto", notify: Notify = silent
) -> PairModel:
    """Return an NLI model by name, the bundled one where None; on a GPU `notify` is then told of a larger one.

    Raises:
        UsageError: The name or the device is not valid.
        SondeError: The model is not available.
    """
    if model is None and resolve_devices(device)[0].startswith("cuda"):
        said = f"using the bundled NLI model; this machine has a GPU, and {arg('model')} {HUB_MODEL} is more accurate"
        notify(Message(said))
    if model in (None, BUNDLED_MODEL):
        return load_bundled_nli(device, dtype, notify)
    return load_pair_model(model, device=device, dtype=dtype, notify=notify)


def has_bundled() -> bool:
    """Whether this installation brings an NLI model."""
    return any((Path(__file__).parents[1] / "pairs" / "bundled" / "nli").glob("*.safetensors"))


def load_bundled_nli(device: str, dtype: str, notify: Notify) -> PairModel:
    """Return the NLI model that Sonde brings.

    Raises:
        SondeError: This installation has none, or it is damaged.
    """
    if not has_bundled():
        raise SondeError(f"this installation brings no NLI model: give {arg('model')} a folder, or {HUB_MODEL}")
    import torch

    from ...indexer.encoder.settings import resolve_dtype
    from ..pairs.bundled import load_bundled

    devices = resolve_devices(device)
    model, tokenizer, _ = load_bundled("nli", notify)
    model = model.to(getattr(torch, resolve_dtype(dtype, devices[0])))
    return PairModel(model, tokenizer, name=BUNDLED_MODEL, devices=devices)
