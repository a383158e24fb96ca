"""BERTopic (Grootendorst, arXiv:2203.05794) with our vectors and parts: no randomness, no model loaded."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from ...indexer.errors import MissingExtraError
from ..analysis.terms import VOCABULARY, Counts, Words
from ..analysis.umap import project
from ..cluster.density import dense_groups

SILENCED = (UserWarning, FutureWarning)
"""Which warnings BERTopic turns off, everywhere and for good, when it is imported."""
UNUSED = {
    "bertopic.backend": {"MultiModalBackend": "_multimodal"},
    "bertopic.representation": {
        "TextGeneration": "_textgeneration",
        "VisualRepresentation": "_visual",
        "ZeroShotClassification": "_zeroshot",
    },
}
"""Parts of BERTopic that import transformers: seconds of each process. BERTopic works without them, as Sonde does."""


def bertopic() -> Any:
    """The module bertopic; warnings and its logger are then as they would be without it.

    Raises:
        MissingExtraError: It is not installed.
    """
    if sys.modules.get("bertopic") is not None:
        return sys.modules["bertopic"]
    before = list(warnings.filters)
    with warnings.catch_warnings():  # its end makes Python forget which warnings it had decided to ignore
        try:
            with _unused_later():
                import bertopic as module
        except ImportError as error:
            raise MissingExtraError("BERTopic", "topics", "topics") from error
        after = [entry for entry in warnings.filters if entry in before or not _silences_all(entry)]
    filters: Any = warnings.filters
    filters[:] = after
    _restore_logger()
    return module


@contextmanager
def _unused_later() -> Iterator[None]:
    """Import BERTopic without its unused parts, each of which is then imported when somebody asks for it."""
    hidden: dict[str, Any] = {f"{package}.{part}": None for package, parts in UNUSED.items() for part in parts.values()}
    sys.modules.update(hidden)
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
    for package, parts in UNUSED.items():
        _import_later(sys.modules[package], parts)


def _import_later(package: Any, parts: dict[str, str]) -> None:
    def asked(name: str) -> Any:
        if name not in parts:
            raise AttributeError(f"module {package.__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{package.__name__}.{parts[name]}"), name)

    for name in parts:
        vars(package).pop(name, None)
    package.__getattr__ = asked


def _silences_all(entry: Any) -> bool:
    action, message, category, module, line = entry
    return action == "ignore" and category in SILENCED and message is None and module is None and not line


def _restore_logger() -> None:
    """Let BERTopic's logger do what any does: hand its messages to the root, at the root's level."""
    import logging

    logger = logging.getLogger("BERTopic")
    logger.handlers.clear()
    logger.propagate = True
    logger.setLevel(logging.NOTSET)


NEAR = 5
"""HDBSCAN's `min_samples`: from how many neighbours the density around a text is measured."""


@dataclass(frozen=True)
class DenseTopics:
    """What BERTopic found.

    Attributes:
        labels: int64 [n], the dense group of each text, -1 for none; 0 is the largest.
        counts: Of words in each group; outliers are left out.
        probabilities: float64 [n], how firmly each text belongs to its group by HDBSCAN, 0 to 1.
    """

    labels: np.ndarray
    counts: Counts
    probabilities: np.ndarray


def fit_bertopic(texts: list[str], vectors: np.ndarray, words: Words, settings: Any, min_size: int) -> DenseTopics:
    """Run BERTopic on texts that are all distinct.

    Args:
        texts: One for each vector.
        vectors: float32 [n, d], of length 1.
        words: Takes the describing words out of a text.
        settings: A `TopicSettings`.
        min_size: Fewest texts of a topic.

    Raises:
        MissingExtraError: BERTopic is not installed.
    """
    if len(texts) <= min_size:  # too few for a single group
        return DenseTopics(np.full(len(texts), -1), Counts.of_rows([], []), np.zeros(len(texts)))
    counter = Counter(words)
    model = _without_samples(bertopic().BERTopic)(
        language="multilingual",  # "english" would drop every letter that is not ASCII; no model is loaded for either
        umap_model=Reducer(settings.dimensions, settings.neighbours, settings.seed), hdbscan_model=Grouper(min_size),
        vectorizer_model=counter, ctfidf_model=_weighting(),
    )  # fmt: skip
    labels = np.array(model.fit_transform(texts, vectors)[0], np.int64)
    first = 1 if -1 in labels else 0  # BERTopic's rows are in the order of the labels
    counts = counter.counts(slice(first, None))
    return DenseTopics(labels, counts, np.asarray(model.probabilities_, np.float64))


def count_words(texts: list[str], vectors: np.ndarray, labels: np.ndarray, words: Words) -> Counts:
    """Let BERTopic count the words of groups that are found already, and weigh them by class-based TF-IDF.

    Args:
        texts: One for each vector.
        vectors: float32 [n, d], of length 1.
        labels: int64 [n], the group of each, numbered from 0 without a gap.
        words: Takes the describing words out of a text.

    Returns:
        The counts of each group, in the order of the groups.

    Raises:
        MissingExtraError: BERTopic is not installed.
    """
    counter = Counter(words)
    model = _without_samples(bertopic().BERTopic)(
        language="multilingual", umap_model=AsItIs(), hdbscan_model=Given(labels), vectorizer_model=counter,
        ctfidf_model=_weighting(),
    )  # fmt: skip
    ranked = np.array(model.fit_transform(texts, vectors)[0], np.int64)  # BERTopic numbers groups by size
    row_of = np.empty(int(labels.max()) + 1, np.int64)
    row_of[labels] = ranked
    return counter.counts(row_of)


class AsItIs:
    """Nothing in UMAP's place: the groups are known."""

    def fit_transform(self, vectors: np.ndarray, y: Any = None) -> np.ndarray:
        """Return the vectors."""
        return vectors


class Given:
    """Groups in HDBSCAN's place that are known already."""

    def __init__(self, labels: np.ndarray) -> None:
        self.labels_ = labels

    def fit(self, places: np.ndarray, y: Any = None) -> "Given":
        """Keep the groups."""
        return self


class Reducer:
    """UMAP in BERTopic's place for it."""

    def __init__(self, dimensions: int, neighbours: int, seed: int) -> None:
        self.dimensions = dimensions
        self.neighbours = neighbours
        self.seed = seed

    def fit_transform(self, vectors: np.ndarray, y: Any = None) -> np.ndarray:
        """Return float32 [n, dimensions]."""
        return project(vectors, self.dimensions, self.seed, neighbours=self.neighbours)


class Grouper:
    """Our dense groups in BERTopic's place for HDBSCAN, also for a handful of texts."""

    def __init__(self, min_size: int) -> None:
        self.min_size = min_size
        self.labels_ = np.zeros(0, np.int64)
        self.probabilities_ = np.zeros(0)

    def fit(self, places: np.ndarray, y: Any = None) -> "Grouper":
        """Find the dense groups of float [n, d] places."""
        self.labels_, self.probabilities_ = np.full(len(places), -1), np.zeros(len(places))
        if len(places) > max(self.min_size, NEAR + 1):
            self.labels_, self.probabilities_ = dense_groups(places, self.min_size, NEAR)
        return self


class Counter:
    """scikit-learn's `CountVectorizer` in BERTopic's place for it, which keeps the counts that it made."""

    def __init__(self, words: Words) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        self._words_of: Any = words
        self._counting = CountVectorizer(analyzer=self._words_of, max_features=VOCABULARY, dtype=np.int64)
        self._words: np.ndarray | None = None
        self.matrix: Any = None

    def fit_transform(self, documents: list[str]) -> Any:
        """Return sparse counts [documents, words]; texts without any word count as having one, which is empty."""
        from scipy.sparse import csr_matrix, hstack

        one = csr_matrix(np.ones((len(documents), 1), np.int64))
        if any(self._words_of(document) for document in documents):
            self.matrix = self._counting.fit_transform(documents)
            self._words = self._counting.get_feature_names_out()
        else:
            self.matrix, self._words = one, np.array([""], object)
        # BERTopic cannot weigh a single word.
        return self.matrix.copy() if self.matrix.shape[1] > 1 else hstack([self.matrix, one], format="csr")

    def get_feature_names_out(self) -> np.ndarray:
        """Return the words, and an empty one where a single one would be alone."""
        if self._words is None:
            return np.array([], object)
        return self._words if len(self._words) > 1 else np.append(self._words, "")

    def counts(self, rows: Any) -> Counts:
        """Return the counts of some rows."""
        chosen = self.matrix[rows]
        words = np.array([], object) if self._words is None else self._words
        return Counts(chosen.indptr, chosen.indices, chosen.data, words)


def _weighting() -> Any:
    bertopic()
    from bertopic.vectorizers import ClassTfidfTransformer

    return ClassTfidfTransformer()


def _without_samples(base: Any) -> Any:
    """BERTopic without its search for representative texts: ours are those nearest to the topic's vector."""

    class Fitted(base):
        def _save_representative_docs(self, documents: Any) -> None:
            self.representative_docs_ = {}

    return Fitted
