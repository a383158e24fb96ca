"""Measure a collection's searches, labels and clusters against known answers, and tune its searches."""

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ...indexer.errors import UsageError, arg, as_text, as_texts
from ...indexer.progress import Notify, silent
from .arguments import PROGRESS, settings_from
from .opened import Opened
from .options import EvaluateOptions, TuneOptions

if TYPE_CHECKING:
    from ...pipelines.evaluate.groups import ClusterQuality
    from ...pipelines.evaluate.labels import LabelQuality
    from ...pipelines.evaluate.search import SearchQuality
    from ...pipelines.evaluate.trec import Qrels, Query
    from ...pipelines.search.settings import SearchDefaults, SearchSettings
    from ...pipelines.tune import TuneReport, TuneSettings
    from ...pipelines.tune.threshold import Question, ThresholdReport

MODES = ("dense", "lexical", "hybrid")


class Evaluating(Opened):
    """The methods that measure a collection against known answers, and tune its searches.

    Example:
        >>> things = "battery parcel screen garden music kettle lamp chair oven shoe novel whale".split()
        >>> rows = [{"id": n, "text": f"The {thing} is broken."} for n, thing in enumerate(things)]
        >>> shop = sonde.index(rows, to=folder / "shop.sonde", text="text", id="id")
        >>> kinds = {"Apples are red.": "fruit", "Bananas are yellow.": "fruit", "Cars need fuel.": "vehicles"}
        >>> rows = [{"text": text, "kind": kind} for text, kind in kinds.items()]
        >>> fruit = sonde.index(rows, to=folder / "fruit.sonde", text="text")
    """

    def evaluate_search(
        self,
        queries: "str | Path | Sequence[Query]",
        qrels: "str | Path | Qrels",
        *,
        modes: Sequence[str] = MODES,
        settings: "SearchSettings | None" = None,
        progress: Notify = silent,
        **options: Unpack[EvaluateOptions],
    ) -> "list[SearchQuality]":
        """Measure search modes on queries with judgements: nDCG@10, recall@100, MRR@10 and MAP@100.

        Args:
            queries: A JSONL file with `_id` and `text`, or pairs of an id and a text.
            qrels: A file of TREC qrels or BEIR's TSV, or grades by query id and document id. `judgements()` returns
                the judgements stored in the collection, with their queries.
            modes: Modes to compare; "rerank" is allowed too. Differences are relative to the first mode.
            settings: Base settings of the search; each option overrides the field of the same name.
            progress: Receives notes: queries without a relevant document, ids that do not match, judgements that
                contradict each other.
            **options: Any field of `sonde.SearchSettings`: `fusion`, `rerank_model` …

        Raises:
            UsageError: A mode or a setting is not valid.
            SondeError: A file is not readable, or no query has a relevant document.
            MissingExtraError: ir-measures is not installed.

        Example:
            >>> shop.evaluate_search([("q1", "lamp")], {"q1": {"6": 1}}, modes=["lexical"])[0].measures["mrr@10"]
            1.0
        """
        from ...pipelines.evaluate.search import evaluate_search
        from ...pipelines.evaluate.trec import read_qrels, read_queries
        from ...pipelines.search.settings import SearchSettings

        base = settings_from(SearchSettings, settings, options, "evaluate_search", ("modes", *PROGRESS))
        if base.rerank and "rerank" not in modes:
            said = "reranking is measured as a mode of its own: leave out rerank, and add 'rerank' to modes"
            raise UsageError(said, code="conflict", field="rerank", value=True)
        variants = check_modes(modes, base)
        asked = read_queries(Path(queries)) if isinstance(queries, str | Path) else queries
        truth = read_qrels(Path(qrels), progress) if isinstance(qrels, str | Path) else qrels
        return evaluate_search(self.stored, asked, truth, variants, progress)

    def evaluate_labels(
        self, run: str | None = None, truth: "str | Path | Mapping[str, str | Sequence[str]] | Any" = None
    ) -> "LabelQuality":
        """Compare a label run with the true labels: accuracy, kappa, macro F1, and the scores of each class.

        Args:
            run: The label run; None chooses the one whose labels match the true labels best.
            truth: The true labels: the name of a metadata column; the labels of each document by its id, as a
                dictionary or a Series; or a table with the columns `id` and `label`, as a DataFrame or the `Path` of a
                file (CSV, JSONL, Parquet …). Instead of `id`, a table may have the column that the ids of the
                collection come from. An empty label does not count. For a run with several labels
                per text, an empty list means none, and a table may hold several in one cell ("late; broken"), in
                several rows, or in a column of 0 and 1 for each label.

        Raises:
            UsageError: The column does not exist, or no column or label was given.
            SondeError: The run does not exist, no document has both a label and a true label, or the file cannot be
                read.

        Example:
            >>> fruit.label(["fruit", "vehicles"], engine="similarity").counts
            {'fruit': 2, 'vehicles': 1}
            >>> fruit.evaluate_labels(truth="kind").accuracy
            1.0
        """
        from ...pipelines.evaluate.labels import evaluate_labels
        from ...pipelines.label.corrections import labels_known
        from ...pipelines.label.examples import given_truth, read_truth

        if truth is None:
            raise UsageError(f"{arg('truth')} is missing: name the column with the true labels", field="truth")
        if isinstance(truth, str):
            return evaluate_labels(self.stored, run, truth)
        with self.stored.view() as view:
            known, _ = labels_known(view.catalog, run)
        read = partial(read_truth, truth) if isinstance(truth, Path) else partial(given_truth, truth, "truth")
        name = str(truth) if isinstance(truth, Path) else "truth"
        truth = read(self.id_column, several=True, known=known)
        if not isinstance(truth, Mapping):
            said = f"{arg('truth')} is {reprlib.repr(truth)}: give a column, a path, or labels by id"
            raise UsageError(f"{said}, such as {{'doc-1': 'card'}}", code="wrong-type", field="truth", value=truth)
        given = {as_text(id, "id"): as_texts(labels, "label") for id, labels in truth.items()}
        kept = {id: [label for label in labels if label.strip()] for id, labels in given.items()}
        given = {id: labels for id, labels in kept.items() if labels or not given[id]}  # [] is "none of these"
        if not any(given.values()):
            said = f"{arg('truth')} has no labels: give the id of at least one document with its label"
            raise UsageError(said, code="empty", field="truth")
        found = evaluate_labels(self.stored, run, name, given)
        if not found.several:
            read(self.id_column, known=known)  # refuses rows that give one document different labels
        return found

    def evaluate_clusters(self, run: str | None = None, truth: str | None = None) -> "ClusterQuality":
        """Measure a cluster, topic or taxonomy run.

        Args:
            run: The run's name; the newest run of these kinds if None.
            truth: A metadata column with each document's class, for NMI, ARI, V-measure and purity.

        Raises:
            SondeError: The run does not exist, or none of its documents has a class.
            UsageError: The column does not exist or holds lists, or the run is neither a cluster run nor a topic run.

        Example:
            >>> [found.data["size"] for found in fruit.cluster(k=2).clusters]
            [2, 1]
            >>> fruit.evaluate_clusters("kmeans", truth="kind").purity
            1.0
        """
        from ...pipelines.evaluate.groups import evaluate_clusters

        return evaluate_clusters(self.stored, run, truth)

    def tune_search(
        self,
        *,
        queries: str | Path | None = None,
        qrels: str | Path | None = None,
        clicks: str | Path | None = None,
        settings: "TuneSettings | None" = None,
        progress: Notify = silent,
        **options: Unpack[TuneOptions],
    ) -> "TuneReport":
        """Tune the collection's search settings, and store them only if they are significantly better.

        Without queries and clicks, queries are generated from the texts.

        Args:
            queries: A JSONL file of queries with `_id` and `text`; needs `qrels`.
            qrels: The judgements of these queries.
            clicks: A click log instead of `queries` and `qrels`: rows with `query` and the `id` of the chosen document.
            settings: Base settings; each option overrides the field of the same name.
            progress: Receives progress and messages.
            **options: Any field of `TuneSettings`: `rerank`, `queries`, `seed`, `keep`.

        Raises:
            UsageError: Queries were given without judgements, or with clicks.
            SondeError: Too few queries have a right document, or another process is writing.
            MissingExtraError: ir-measures is not installed.

        Example:
            >>> shop.tune_search(queries=folder / "queries.jsonl")
            Traceback (most recent call last):
            ...
            sonde.indexer.errors.UsageError: give queries with qrels, or clicks, or neither ...
        """
        from ...pipelines.tune import TuneSettings, tune_search

        also = ("queries", "qrels", "clicks", *PROGRESS)
        given = settings_from(TuneSettings, settings, options, "tune_search", also)
        files = {"queries": queries, "qrels": qrels, "clicks": clicks}
        paths = {name: None if file is None else Path(file) for name, file in files.items()}
        return tune_search(self.stored, given, notify=progress, **paths)

    def tune_threshold(
        self,
        answered: "str | Path | Sequence[Question]",
        unanswerable: "str | Path | Sequence[Question]",
        *,
        mode: str = "dense",
        seed: int = 0,
        keep: bool = True,
    ) -> "ThresholdReport":
        """Find and store the similarity threshold below which `ask` returns no answer and a hit is weak.

        The same questions show how similarity becomes relevance in this collection; that is stored too.

        Args:
            answered: Ten or more questions that the collection answers: a text file with one question on each line, or
                a table with a column `question` and, if known, a column with the ids of the right documents.
            unanswerable: Ten or more questions that the collection does not answer.
            mode: The search mode that finds the best hit, "dense" or "hybrid".
            seed: Random seed that selects the half of the questions on which the threshold is chosen.
            keep: Whether to store the threshold.

        Raises:
            UsageError: The mode returns no similarity, or a table has no column `question`.
            SondeError: There are too few questions, no right document is found, or another process is writing.

        Example:
            >>> _ = (folder / "answered.txt").write_text("".join(f"a broken {thing}" + chr(10) for thing in things))
            >>> _ = (folder / "others.txt").write_text("".join(f"how to bake {n} cakes" + chr(10) for n in range(12)))
            >>> found = shop.tune_threshold(folder / "answered.txt", folder / "others.txt")
            >>> found.stored, found.checked.recall
            (True, 1.0)
        """
        from ...pipelines.search.settings import store_defaults, stored_defaults
        from ...pipelines.tune.threshold import find_threshold, read_questions

        asked, others = (
            read_questions(Path(given), self.id_column) if isinstance(given, str | Path) else given
            for given in (answered, unanswerable)
        )
        spec = self.stored.spec
        found = find_threshold(self.stored, asked, others, mode=mode, seed=seed)
        if not keep:
            return found
        tuned = {"threshold": found.threshold, "slope": found.slope, "middle": found.middle}
        store_defaults(self.stored, replace(stored_defaults(self.stored), **tuned), spec)
        return replace(found, stored=True)

    def search_defaults(self) -> "SearchDefaults":
        """Return the settings that tuning stored. Searches use them unless a call overrides them.

        Example:
            >>> shop.search_defaults().threshold == found.threshold
            True
        """
        from ...pipelines.search.settings import stored_defaults

        return stored_defaults(self.stored)

    def forget_tuning(self) -> "SearchDefaults":
        """Remove the settings that tuning stored, and return them.

        Raises:
            SondeError: Another process is writing.

        Example:
            >>> shop.forget_tuning().threshold == found.threshold
            True
            >>> shop.search_defaults().empty
            True
        """
        from ...pipelines.tune import forget_defaults

        return forget_defaults(self.stored)


def check_modes(modes: Sequence[str], settings: "SearchSettings | None" = None) -> "list[tuple[str, SearchSettings]]":
    """Return the name and the settings of each mode to evaluate.

    Raises:
        UsageError: A mode or a setting is not valid.
    """
    from ...pipelines.evaluate.search import RERANK
    from ...pipelines.evaluate.search import modes as variants
    from ...pipelines.search.settings import SearchSettings

    settings = settings or SearchSettings()
    given = [name for name in ("rerank_model", "rerank_budget") if getattr(settings, name) is not None]
    if RERANK in modes:
        settings = replace(settings, rerank=True)
    elif given:
        name = given[0]
        said = f"{arg(name)} is for the mode {RERANK!r}: add {RERANK!r} to {arg('modes')}, or leave it out"
        raise UsageError(said, code="conflict", field=name)
    settings.check()
    found = variants(modes, settings)
    for _, each in found:
        each.check()
    return found


def has_late_index(collection: Opened) -> bool:
    """Return whether a collection keeps a late index that can be read."""
    with collection.stored.view() as view:
        return view.late is not None
