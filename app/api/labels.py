"""What a person says about documents: labels, corrections, tags, judgements."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...indexer.errors import Ids, Texts
from ...indexer.progress import Notify, silent
from ...indexer.store.kinds import LABEL
from ...indexer.store.runs import list_runs
from ...pipelines.analysis.corpus import Change, Tagged, tag
from ...pipelines.evaluate.judgements import Judgements, judge, judgements
from ...pipelines.label import (
    Classified,
    Correction,
    Judge,
    LabelReport,
    Labels,
    LabelSettings,
    Unsure,
    check_classify,
    classify,
    correct,
    corrections,
    forget_corrections,
    label_collection,
    unsure,
)
from .arguments import PROGRESS, settings_from
from .opened import Opened

if TYPE_CHECKING:
    from ...pipelines.train.few_shot import LabelledExample


class Labelling(Opened):
    """The methods that label documents, and keep what a person says about them.

    Example:
        >>> texts = ["Apples are red.", "Bananas are yellow.", "Cars need fuel."]
        >>> fruit = sonde.index([{"id": n, "text": text} for n, text in enumerate(texts)], to=folder / "fruit.sonde")
    """

    def label(
        self, labels: Labels, *, settings: LabelSettings | None = None, progress: Notify = silent, **options: Any
    ) -> LabelReport:
        """Give every document a label, from the labels' names alone, and keep the result as a run.

        Args:
            labels: Names, "name: description" texts, or a mapping of names to descriptions.
            settings: Settings to start from; an option overrides its field.
            progress: Receives progress and messages.
            **options: Any field of `sonde.LabelSettings`: `engine`, `multi_label`, `threshold`, `budget`, `name` …

        Raises:
            UsageError: The labels or a setting is not valid, or the run's name is taken.
            SondeError: A model is not available, or another process is writing.

        Example:
            >>> fruit.label(["fruit", "vehicles"], engine="similarity").counts
            {'fruit': 2, 'vehicles': 1}
        """
        given = settings_from(LabelSettings, settings, options, "label", PROGRESS)
        return label_collection(self.stored, labels, given, notify=progress)

    def label_by_examples(
        self,
        examples: "str | Path | Sequence[LabelledExample]",
        *,
        fine_tune: str | Path | None = None,
        settings: LabelSettings | None = None,
        progress: Notify = silent,
        **options: Any,
    ) -> LabelReport:
        """Give every document a label, learned from a few examples of each label, and keep the result as a run.

        Args:
            examples: A table with a column `label` and a column `text` or `id`, or the examples themselves.
            fine_tune: Folder of a tuned model: the bi-encoder is tuned on the examples first. A model that is already
                in this folder is used as it is.
            settings: Settings to start from; an option overrides its field.
            progress: Receives progress and messages.
            **options: Any field of `sonde.LabelSettings`: `name`, `replace`, `where`, `threshold`, `seed` …

        Raises:
            UsageError: The table lacks a column, a setting does not apply to examples, or the run's name is taken.
            SondeError: The file is not readable, there is only one label, or another process is writing.
            MissingExtraError: A library of the extra `train` is not installed.

        Example:
            >>> rows = ["id,label", "0,fruit", "1,fruit", "2,vehicles"]
            >>> _ = (folder / "examples.csv").write_text(chr(10).join(rows))
            >>> fruit.label_by_examples(folder / "examples.csv", name="learned").counts
            {'fruit': 2, 'vehicles': 1}
        """
        from ...pipelines.train.few_shot import label_by_examples, read_labelled

        given = settings_from(LabelSettings, settings, options, "label_by_examples", ("fine_tune", *PROGRESS))
        known = read_labelled(Path(examples)) if isinstance(examples, str | Path) else examples
        folder = None if fine_tune is None else Path(fine_tune)
        return label_by_examples(self.stored, known, given, fine_tune=folder, notify=progress)

    def classify(
        self, texts: Texts, labels: Labels, *, settings: LabelSettings | None = None, judge: Judge | None = None,
        progress: Notify = silent, **options: Any,
    ) -> list[Classified]:  # fmt: skip
        """Label texts that are not in the collection, with its bi-encoder; nothing is stored. See `sonde.classify`.

        Args:
            texts: One text or several; none may be empty.
            labels: Names, "name: description" texts, or a mapping of names to descriptions.
            settings: Settings to start from; an option overrides its field.
            judge: An NLI model that is loaded already, for the engines that need one.
            progress: Receives messages.
            **options: Any field of `sonde.LabelSettings`.

        Raises:
            UsageError: The labels, a setting or a text is not valid.
            SondeError: A model is not available.

        Example:
            >>> fruit.classify("Pears are sweet.", ["fruit", "vehicles"], engine="similarity")[0].label
            'fruit'
        """
        given = settings_from(LabelSettings, settings, options, "classify", ("judge", *PROGRESS))
        check_classify(texts, labels, given)
        return classify(texts, labels, given, encoder=self.stored.encoder, judge=judge, notify=progress)

    def correct(self, given: Mapping[str, str | Sequence[str]], run: str | None = None) -> int:
        """Keep what a person says of documents' labels; the next labelling under the run's name applies it.

        Args:
            given: A label by document id, or several; "none of these" says that none fits.
            run: The label run that is corrected, the newest if None; "labels" if there is none yet.

        Raises:
            UsageError: The label run has no such label.
            SondeError: An id does not exist, or another process is writing.

        Example:
            >>> fruit.correct({next(fruit.rows())["id"]: "vehicles"}, run="kinds")
            1
        """
        return correct(self.stored, given, self._label_run(run))

    def corrections(self, run: str | None = None) -> list[Correction]:
        """Return the corrections of a label run in the order of the documents.

        Example:
            >>> [correction.labels for correction in fruit.corrections("kinds")]
            [('vehicles',)]
        """
        return corrections(self.stored, self._label_run(run))

    def forget_corrections(self, ids: Ids, run: str | None = None) -> int:
        """Forget the corrections of documents; return how many corrections are left.

        Raises:
            SondeError: There is no such document, the run has no correction, or another process is writing.

        Example:
            >>> fruit.correct({"1": "fruit"}, run="kinds")
            2
            >>> fruit.forget_corrections("1", run="kinds")
            1
        """
        return forget_corrections(self.stored, ids, self._label_run(run))

    def unsure(self, run: str | None = None, k: int = 20, offset: int = 0) -> list[Unsure]:
        """Return the documents whose label is least sure, the least sure first, without corrected ones.

        Raises:
            SondeError: There is no such run.
            UsageError: k is below 1, or the offset below 0.

        Example:
            >>> fruit.label(["fruit", "vehicles"], engine="similarity", name="kinds").corrected
            1
            >>> [found.label for found in fruit.unsure("kinds", k=1)]
            ['fruit']
        """
        return unsure(self.stored, run, k, offset)

    def tag(self, name: str, *, ids: Ids = (), where: str | None = None, change: Change = "new") -> Tagged:
        """Put documents together under a name; filters, exports and maps know it as "tag:NAME".

        Args:
            name: The tag's.
            ids: Of documents, one or several.
            where: A filter; what passes it counts beside `ids`.
            change: What becomes of a tag of this name that there is: "new" allows none, "add" and "remove" change it,
                "replace" forgets it.

        Raises:
            UsageError: Nothing says which documents, the filter or the name is not valid, or the tag exists.
            SondeError: An id does not exist, or another process is writing.

        Example:
            >>> fruit.tag("short", where="length < 16").documents
            2
            >>> fruit.search("petrol", k=1, where='NOT "tag:short"')[0].text
            'Bananas are yellow.'
        """
        return tag(self.stored, name, ids=ids, where=where, change=change)

    def judge(self, query: str, ids: Ids, grade: int | None = 1) -> int:
        """Keep what is said of documents as answers to a query; return how many were judged.

        Args:
            query: The query's text.
            ids: Id of a document, or several.
            grade: 0: not relevant; 1 to 10: relevant, more so with higher grades; None takes back what was said.

        Raises:
            UsageError: The query is empty or too long, no document was named, or the grade cannot be.
            SondeError: A document does not exist; nothing is kept then.

        Example:
            >>> fruit.judge("yellow fruit", ["1"])
            1
        """
        return judge(self.stored, query, ids, grade)

    def judgements(self) -> Judgements:
        """Return what was said; judgements of documents that were deleted, or whose text changed, do not count.

        Example:
            >>> fruit.judgements().qrels
            {'q1': {'1': 1}}
        """
        return judgements(self.stored)

    def _label_run(self, run: str | None) -> str:
        """Return the run whose corrections are meant: the newest label run if none is named."""
        if run is not None:
            return run
        with self.stored.view() as view:
            runs = [each.name for each in list_runs(view.catalog, LABEL) if each.complete]
        return runs[-1] if runs else "labels"
