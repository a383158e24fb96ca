"""The engines that judge a text against a label, and the default engine."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol, cast, get_args

import numpy as np

from ...indexer.encoder import Encoder
from ...indexer.encoder.settings import resolve_devices, resolve_dtype
from ...indexer.errors import Message, MissingExtraError, SondeError, UsageError, arg
from ...indexer.progress import Notify, silent
from ..pairs import PairModel, PairScorer, load_pair_model
from ..pairs.bundled import load_plain_bundled
from ..search.rerank.late import BACKWARD, Rarity, maxsim
from .labels import BUNDLED_TEMPLATE, TEMPLATE, Label
from .scores import HUB_MODEL, NliJudge

LATE = "late"
STATIC_NOTE = (
    "this collection uses a static model: its similarity labels are often wrong, and their probabilities are too high. "
    "Check a sample, or use the engine nli"
)
TEMPERATURE = 0.05
"""Scores are divided by this value before the softmax."""
YES = 0.25
"""Minimum score for a label to be more likely than not, with several labels per text."""


class LateJudge:
    """Reads each text once, regardless of the number of labels, with the token vectors that also rerank searches."""

    name = "reranker"

    def __init__(self, encoder: Encoder, rarity: Rarity) -> None:
        """Take the bi-encoder and the rarity of its tokens in the texts."""
        self.encoder = encoder
        self.rarity = rarity

    @property
    def model(self) -> str:
        """The judge's name: late interaction, and the model whose token vectors it uses."""
        return f"{LATE}, {self.encoder.spec.name}"

    def margins(
        self, texts: Sequence[str], labels: Sequence[Label], multi_label: bool,
        chosen: np.ndarray | None = None, on_batch: Callable[[int], object] | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return scaled scores as float32 [texts, labels]; higher is more likely. They are not calibrated.

        Only the part of a text that fits the model's window is read.
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
"""The default engine, chosen by measurements on the development sets: see benchmarks/README.md."""
BUNDLED_MODEL = "bundled"


class Judge(Protocol):
    """Reads a text and a label together; slower than embeddings, but better if it is well trained."""

    name: str
    """The kind of judge: "nli" or "reranker"."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    def margins(
        self, texts: Sequence[str], labels: Sequence[Label], multi_label: bool,
        chosen: np.ndarray | None = None, on_batch: Callable[[int], object] | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return log-odds as float32 [texts, labels], NaN where `chosen` (bool [texts, labels]) is False."""
        ...


class RerankerJudge:
    """A search cross-encoder that reads the label with its description as the query and the text as the passage."""

    name = "reranker"

    def __init__(self, pairs: PairScorer) -> None:
        """Take a model with one logit.

        Raises:
            SondeError: The model has several logits.
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
        """Return the raw scores as float32 [texts, labels]; as log-odds, they are not calibrated."""
        places = np.argwhere(np.ones((len(texts), len(labels)), bool) if chosen is None else chosen)
        pairs = [(labels[label].wording, texts[text]) for text, label in places.tolist()]
        found = np.full((len(texts), len(labels)), np.nan, np.float32)
        found[places[:, 0], places[:, 1]] = self.pairs.logits(pairs, cut="longest", on_batch=on_batch)[:, 0]
        return found


def check_engine(name: str | None) -> EngineName:
    """Return the engine of this name, or the default engine if None.

    Raises:
        UsageError: The engine does not exist.
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
    """Return the judge of an engine; None for similarity, which needs no judge.

    Args:
        engine: "nli", "similarity", "reranker" or "ensemble" (NLI with similarity).
        model: "bundled", a model's folder or a hub name; the bundled NLI model if None. For reranker, "late" or a
            cross-encoder; "late" if None.
        late: A function that creates the judge "late" from the bi-encoder.
        template: NLI's hypothesis template; if None, the template that suits the model.
        device: "auto", "cpu", "cuda" …
        dtype: "auto", "float32", "bfloat16" or "float16".
        notify: Receives messages for the user.

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
) -> PairScorer:
    """Return an NLI model by name. None returns the bundled model and, on a GPU, sends a hint about a larger one.

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
    """Whether this installation includes an NLI model."""
    return any((Path(__file__).parents[1] / "pairs" / "bundled" / "nli").glob("*.safetensors"))


def load_bundled_nli(device: str, dtype: str, notify: Notify) -> PairScorer:
    """Return the NLI model that is bundled with Sonde.

    Raises:
        SondeError: This installation has no bundled model, or the model is damaged.
        MissingExtraError: The device or the precision needs PyTorch, which is not installed.
    """
    if not has_bundled():
        raise SondeError(f"this installation brings no NLI model: give {arg('model')} a folder, or {HUB_MODEL}")
    devices = resolve_devices(device)
    precision = resolve_dtype(dtype, devices[0])
    if devices == ["cpu"] and precision == "float32" and (plain := load_plain_bundled("nli", BUNDLED_MODEL, notify)):
        return plain
    return _in_torch(devices, precision, notify)


def _in_torch(devices: list[str], precision: str, notify: Notify) -> PairScorer:
    try:
        import torch

        from ..pairs.bundled.loading import load_bundled
    except ImportError as error:
        raise MissingExtraError("PyTorch", "all", f"{arg('dtype')} {precision}") from error
    model, tokenizer, _ = load_bundled("nli", notify)
    return PairModel(model.to(getattr(torch, precision)), tokenizer, name=BUNDLED_MODEL, devices=devices)
