"""Rerankers by name: cross-encoders, and models of many vectors a text such as ColBERT. The default works offline."""

import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ....indexer.encoder import models
from ....indexer.encoder.loading import quiet
from ....indexer.encoder.model_folder import in_one_line, model_folder, weight_files
from ....indexer.encoder.settings import resolve_devices
from ....indexer.errors import MissingExtraError, SondeError, UsageError, arg
from ....indexer.progress import Notify, silent
from ....indexer.small_files import read_json
from ....indexer.store.collection import StoredCollection
from ....indexer.store.view import View
from ...pairs import PairModel, load_pair_model
from .late import LateInteraction, is_measured, maxsim, rarity
from .stage import Reranker, TokenMatch, Unit

WEIGHT = 0.7
"""Share in the fusion. Not measured: no cross-encoder's weights were available when this was written."""

UNITS: dict[str, Unit] = {"Sigmoid": "probability", "Identity": "logit"}


class CrossEncoderReranker:
    """Any sequence-classification model of one label, in length-sorted batches of a token budget."""

    kind = "cross-encoder"
    weight = WEIGHT
    agreement = 0.0

    def __init__(self, model: PairModel, name: str) -> None:
        """Take the model.

        Raises:
            SondeError: It has more labels than one, or its activation is none of torch's.
        """
        if model.num_labels != 1:
            raise SondeError(
                f"{name} has {model.num_labels} labels, a reranker has one: "
                f"give {arg('rerank_model')} a model for ranking"
            )
        self.model = model
        self.name = name
        self.activation = _activation(model.activation, name)
        self.unit = UNITS.get(model.activation, model.activation.lower())

    def score(self, query: str, passages: Sequence[str]) -> np.ndarray:
        """Return float32 [n]; of a pair too long for the model's window the longer text is cut."""
        import torch

        logits = self.model.logits([(query, passage) for passage in passages], cut="longest")[:, 0]
        return self.activation(torch.from_numpy(logits)).numpy()

    def matches(self, query: str, passage: str) -> list[TokenMatch]:
        """Return nothing: a cross-encoder does not say which words matched."""
        return []


class OwnCrossEncoder:
    """A `CrossEncoder` that is no plain sequence classifier, through its own `predict`."""

    kind = "cross-encoder"
    weight = WEIGHT
    agreement = 0.0

    def __init__(self, model: Any, name: str) -> None:
        """Take a loaded `CrossEncoder`."""
        self.model = model
        self.name = name
        kind = type(model.activation_fn).__name__
        self.unit = UNITS.get(kind, kind.lower())

    def score(self, query: str, passages: Sequence[str]) -> np.ndarray:
        """Return float32 [n]."""
        found = self.model.predict([(query, passage) for passage in passages], show_progress_bar=False)
        scores = np.asarray(found, np.float32).reshape(len(passages), -1)
        if scores.shape[1] != 1:
            raise SondeError(f"{self.name} has {scores.shape[1]} labels, a reranker has one")
        return scores[:, 0]

    def matches(self, query: str, passage: str) -> list[TokenMatch]:
        """Return nothing: a cross-encoder does not say which words matched."""
        return []


def _activation(kind: str, name: str) -> Any:
    import torch

    found = getattr(torch.nn, kind, None)
    if not (isinstance(found, type) and issubclass(found, torch.nn.Module)):
        raise SondeError(f"{name} names the activation {kind!r}, which torch.nn does not have")
    return found()


MULTIVECTOR_WEIGHT = 0.4
"""Share in the fusion, as for late interaction: no such model's weights were available to measure another."""


class MultiVectorReranker:
    """Any Sentence-Transformers `MultiVectorEncoder`; the score is the mean over the query's vectors."""

    kind = "multi-vector model"
    unit: Unit = "similarity"
    weight = MULTIVECTOR_WEIGHT
    agreement = 0.4

    def __init__(self, model: Any, name: str) -> None:
        """Take a loaded `MultiVectorEncoder`."""
        self.model = model
        self.name = name

    @classmethod
    def load(cls, folder: Path, name: str, device: str) -> "MultiVectorReranker":
        """Load one from a local folder.

        Raises:
            SondeError: It is damaged, or has only pickled weights.
        """
        weight_files(folder)
        try:
            from sentence_transformers import MultiVectorEncoder
        except ImportError as error:
            raise MissingExtraError("Sentence-Transformers", "all", f"the model {name}") from error
        with in_one_line(f"{name} cannot be loaded as a multi-vector model"), quiet():
            model = MultiVectorEncoder(
                str(folder), device=device, local_files_only=True, model_kwargs={"use_safetensors": True}
            )
        return cls(model, name)

    def score(self, query: str, passages: Sequence[str]) -> np.ndarray:
        """Return float32 [n]; texts are cut to the model's own lengths."""
        options: dict[str, Any] = {"convert_to_numpy": True, "show_progress_bar": False}
        [asked] = self.model.encode_query([query], **options)
        return maxsim(asked, self.model.encode_document(list(passages), **options))

    def matches(self, query: str, passage: str) -> list[TokenMatch]:
        """Return nothing: such a model's vectors need not belong to words."""
        return []


LATE = "late"
HUB_DEFAULT = "cross-encoder/ms-marco-MiniLM-L6-v2"
OFFLINE_DEFAULT = LATE
"""What `rerank` without `rerank_model` uses: the second stage that was best on the development sets."""

_REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_loading = threading.Lock()
_loaded: "WeakKeyDictionary[StoredCollection, dict[str, Reranker]]" = WeakKeyDictionary()


def reranker_for(view: View, name: str | None, device: str = "auto", notify: Notify = silent) -> Reranker:
    """Return the second stage of this name; a model is loaded once for each collection object.

    Raises:
        UsageError: It is neither "late" nor a folder nor an "org/name".
        SondeError: The model is not available, is damaged, or scores no pairs.
    """
    name = check_reranker_name(name)
    if name == LATE:
        encoder = view.collection.encoder
        lexical = view.generation.lexical
        return LateInteraction(encoder, rarity(view, encoder), languages=lexical.languages if lexical else ())
    if found := _loaded.get(view.collection, {}).get(name):  # without waiting for a model that another thread loads
        return found
    with _loading:
        known = _loaded.setdefault(view.collection, {})
        if name not in known:
            known[name] = load_reranker(name, device, notify)
        return known[name]


def is_loaded(view: View, name: str | None) -> bool:
    """Whether the second stage of this name is ready, so that `reranker_for` takes no time."""
    name = check_reranker_name(name)
    return is_measured(view) if name == LATE else name in _loaded.get(view.collection, {})


def check_reranker_name(name: str | None) -> str:
    """Return the name, or the default for None, without looking for anything beyond a local folder.

    Raises:
        UsageError: It is neither "late" nor a folder nor an "org/name".
    """
    name = OFFLINE_DEFAULT if name is None else name.strip()
    if name == LATE or (name and Path(name).expanduser().is_dir()):
        return name
    if name[:1] in (".", "~", "/") or not _REPOSITORY.fullmatch(name):
        said = f"there is no reranker {name!r}: give {LATE}, a model's folder, or a hub name: {HUB_DEFAULT}"
        raise UsageError(said, code="not-found", field="rerank_model", value=name, alternatives=(LATE, HUB_DEFAULT))
    return name


def load_reranker(name: str, device: str = "auto", notify: Notify = silent) -> Reranker:
    """Load a cross-encoder or a multi-vector model from a folder or the hub's "org/name".

    Raises:
        UsageError: This machine lacks the device.
        SondeError: The model is not available, is damaged, is a bi-encoder, or scores no pairs.
    """
    given = Path(name).expanduser()
    folder = given if given.is_dir() else models.fetch_model(name, None, notify, "rerank_model")
    with model_folder(folder):
        return _reranker(folder, name, device)


def _reranker(folder: Path, name: str, device: str) -> Reranker:
    stored = _json(folder / "config_sentence_transformers.json")
    config = _json(folder / "config.json")
    kind = str(stored.get("model_type") or "")
    architectures = [str(each) for each in config.get("architectures") or ()]
    if kind in ("MultiVectorEncoder", "ColBERT") or "HF_ColBERT" in architectures:
        return MultiVectorReranker.load(folder, name, resolve_devices(device)[0])
    if kind in ("SentenceTransformer", "SparseEncoder") or (not kind and (folder / "modules.json").is_file()):
        raise SondeError(
            f"{name} is a bi-encoder, which reads no pairs: give {arg('rerank_model')} {LATE}, or a cross-encoder: "
            f"{HUB_DEFAULT}"
        )
    plain = any(each.endswith("ForSequenceClassification") for each in architectures)
    if kind == "CrossEncoder" and (not plain or stored.get("default_prompt_name")):
        return _own(folder, name, resolve_devices(device)[0])
    model = load_pair_model(str(folder), device=device, field="rerank_model")
    return CrossEncoderReranker(model, name)


def _own(folder: Path, name: str, device: str) -> OwnCrossEncoder:
    weight_files(folder)
    try:
        from sentence_transformers import CrossEncoder
    except ImportError as error:
        raise MissingExtraError("Sentence-Transformers", "all", f"the model {name}") from error
    options: dict[str, Any] = {"local_files_only": True, "model_kwargs": {"use_safetensors": True}}
    with in_one_line(f"{name} cannot be loaded as a cross-encoder"), quiet():
        return OwnCrossEncoder(CrossEncoder(str(folder), device=device, **options), name)


def _json(path: Path) -> dict[str, Any]:
    try:
        found = read_json(path)
    except OSError:
        return {}
    except ValueError as error:
        raise SondeError(f"{path} cannot be read ({error}): the model is damaged, fetch it again") from error
    return found if isinstance(found, dict) else {}
