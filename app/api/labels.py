"""Labels, and manual input about documents: corrections, tags and judgements."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ...indexer.errors import Ids, Texts, UsageError, arg
from ...indexer.progress import Notify, silent
from ...indexer.store.kinds import CORRECTION, LABEL
from ...indexer.store.runs import items_of, list_runs
from .arguments import PROGRESS, settings_from
from .opened import Opened
from .options import LabelOptions

if TYPE_CHECKING:
    from ...pipelines.analysis.selections import Change, Tagged
    from ...pipelines.evaluate.judgements import Judgements
    from ...pipelines.evaluate.trec import Qrels, Query
    from ...pipelines.label import Classified, Corrected, Correction, Judge, LabelReport, Labels, LabelSettings, Unsure
    from ...pipelines.label.examples import LabelledExample


class Labelling(Opened):
    """The methods that label documents, and that store corrections, tags and judgements.

    Example:
        >>> texts = ["Apples are red.", "Bananas are yellow.", "Cars need fuel."]
        >>> fruit = sonde.index([{"id": n, "text": text} for n, text in enumerate(texts)], to=folder / "fruit.sonde")
    """

    def label(
        self,
        labels: "Labels",
        *,
        settings: "LabelSettings | None" = None,
        progress: Notify = silent,
        **options: Unpack[LabelOptions],
    ) -> "LabelReport":
        """Label every document, using only the names of the labels, and store the result as a run named "labels".

        `name` gives the run another name; the report has it too.

        Args:
            labels: Names, "name: description" texts, or a mapping of names to descriptions.
            settings: Base settings; each option overrides the field of the same name.
            progress: Receives progress and messages.
            **options: Any field of `sonde.LabelSettings`: `engine`, `multi_label`, `threshold`, `budget`, `name` …

        Raises:
            UsageError: The labels or a setting is not valid, or the run's name is taken.
            SondeError: A model is not available, or another process is writing.

        Example:
            >>> fruit.label(["fruit", "vehicles"], engine="similarity").counts
            {'fruit': 2, 'vehicles': 1}
        """
        from ...pipelines.label import LabelSettings, label_collection

        given = settings_from(LabelSettings, settings, options, "label", PROGRESS)
        return label_collection(self.stored, labels, given, notify=progress)

    def label_by_examples(
        self,
        examples: "str | Path | Sequence[LabelledExample] | Mapping[str, str] | Any",
        *,
        fine_tune: str | Path | None = None,
        settings: "LabelSettings | None" = None,
        progress: Notify = silent,
        **options: Unpack[LabelOptions],
    ) -> "LabelReport":
        """Label every document, learning from a few examples of each label, and store the result as a run.

        Args:
            examples: A table with a column `label` and a column `text` or `id`: a path, a DataFrame or a list of
                dictionaries. Or the label of each document by its id: a dictionary or a Series. Or a list of
                `sonde.LabelledExample`.
            fine_tune: Fine-tune the bi-encoder on the examples first, and save it in this folder. If the folder
                already holds a model, that model is used as it is.
            settings: Base settings; each option overrides the field of the same name.
            progress: Receives progress and messages.
            **options: Any field of `sonde.LabelSettings`: `name`, `replace`, `where`, `threshold`, `seed` …

        Raises:
            UsageError: The table lacks a column, an id has two labels, a setting does not apply to examples, or the
                run's name is taken.
            SondeError: The file is not readable, there is only one label, or another process is writing.
            MissingExtraError: A library of the extra `train` is not installed.

        Example:
            >>> rows = ["id,label", "0,fruit", "1,fruit", "2,vehicles"]
            >>> _ = (folder / "examples.csv").write_text(chr(10).join(rows))
            >>> fruit.label_by_examples(folder / "examples.csv", name="learned").counts
            {'fruit': 2, 'vehicles': 1}
        """
        from ...pipelines.label import LabelSettings
        from ...pipelines.label.examples import given_labelled, read_labelled

        given = settings_from(LabelSettings, settings, options, "label_by_examples", ("fine_tune", *PROGRESS))
        own = self.id_column
        known = (
            read_labelled(Path(examples), own) if isinstance(examples, str | Path) else given_labelled(examples, own)
        )
        from ...pipelines.train.few_shot import label_by_examples  # it needs torch, and a file does not

        folder = None if fine_tune is None else Path(fine_tune)
        return label_by_examples(self.stored, known, given, fine_tune=folder, notify=progress)

    def classify(
        self, texts: Texts, labels: "Labels", *, settings: "LabelSettings | None" = None, judge: "Judge | None" = None,
        progress: Notify = silent, **options: Unpack[LabelOptions],
    ) -> "list[Classified]":  # fmt: skip
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
        from ...pipelines.label import LabelSettings, check_classify, classify

        given = settings_from(LabelSettings, settings, options, "classify", ("judge", *PROGRESS))
        check_classify(texts, labels, given)
        return classify(texts, labels, given, encoder=self.stored.encoder, judge=judge, notify=progress)

    def correct(
        self, given: "Mapping[str, str | Sequence[str]] | Path | Any", run: str | None = None, progress: Notify = silent
    ) -> "Corrected":
        """Store corrections to the labels of documents; the next labelling with the run's name applies them.

        The result names the run that was corrected.

        Args:
            given: One or several labels for each document id; "none of these" means that no label fits. A dictionary, a
                Series whose index holds the ids, or a table with the columns `id` and `label`, as a DataFrame or the
                `Path` of a file (CSV, XLSX or JSONL). If the run has several labels per text, a table may hold them
                in one cell ("late; broken"), in several rows, or in a column of 0 and 1 for each label.
            run: The label run to correct. If None, the newest one that has these labels, or "labels" if no label run
                exists yet.
            progress: Receives a note on rows of a file without a label, which are left out, and on texts that have
                changed since the sheet to code was written.

        Raises:
            UsageError: The label does not exist in the label run, or a file is not clear.
            SondeError: An id does not exist, a file cannot be read, or another process is writing.

        Example:
            >>> fruit.correct({next(fruit.rows())["id"]: "vehicles"}, run="kinds")
            Corrected(run='kinds', documents=1, total=1)
        """
        from ...pipelines.label import correct
        from ...pipelines.label.correction_files import note_changed_texts

        labels = self._by_id(given, run, several=True)
        named = labels.values() if run is None and isinstance(labels, Mapping) else ()
        lists = [[names] if isinstance(names, str) else names for names in named]
        run = self.corrected_run(run, [name for names in lists if isinstance(names, (list, tuple)) for name in names])
        if labels is not given:  # a table, whose rows of one document count together only if it may have several labels
            labels = self._by_id(given, run, progress=progress)
        if isinstance(given, Path):
            note_changed_texts(self.stored, given, self.id_column, progress)
        return correct(self.stored, labels, run)

    def _by_id(self, given: Any, run: str | None, several: bool | None = None, progress: Notify = silent) -> Any:
        """Return the labels of a table or a file by id; anything else as it is."""
        from ...pipelines.label.correction_files import read_corrections
        from ...pipelines.label.corrections import labels_known
        from ...pipelines.label.examples import given_truth

        with self.stored.view() as view:
            known, many = labels_known(view.catalog, run)
        several = many if several is None else several
        if isinstance(given, Path):
            return read_corrections(given, self.id_column, several=several, known=known, progress=progress)
        return given_truth(given, "given", self.id_column, several=several, known=known)

    def corrections(self, run: str | None = None) -> "list[Correction]":
        """Return the corrections of a label run, in document order; without a name, of the only run that has any.

        Raises:
            UsageError: No run is named, and several have corrections.

        Example:
            >>> [correction.labels for correction in fruit.corrections("kinds")]
            [('vehicles',)]
        """
        from ...pipelines.label import corrections

        return corrections(self.stored, self._run_with_corrections(run))

    def save_corrections(self, path: str | Path, run: str | None = None, progress: Notify = silent) -> int:
        """Write the corrections of a label run to a .csv or .jsonl file; return how many there are.

        Raises:
            UsageError: The suffix is not valid, the file is the collection's source, or CSV cannot hold the labels.
            SondeError: The file cannot be written.

        Example:
            >>> fruit.save_corrections(folder / "corrections.csv", run="kinds")
            1
        """
        from ...indexer.store.export import refuse_source
        from ...pipelines.label.correction_files import write_corrections

        refuse_source(self.stored, Path(path))
        found = self.corrections(run)
        write_corrections(found, Path(path), progress)
        return len(found)

    def forget_corrections(self, ids: Ids, run: str | None = None) -> int:
        """Delete the corrections of documents; return how many corrections are left.

        Raises:
            SondeError: A document does not exist, the run has no corrections, or another process is writing.

        Example:
            >>> fruit.correct({"1": "fruit"}, run="kinds").total
            2
            >>> fruit.forget_corrections("1", run="kinds")
            1
        """
        from ...pipelines.label import forget_corrections

        return forget_corrections(self.stored, ids, self._run_with_corrections(run))

    def unsure(
        self, run: str | None = None, k: int = 20, offset: int = 0, *, random: bool = False
    ) -> "list[Unsure]":  # fmt: skip
        """Return the documents with the least certain labels, least certain first; leave out corrected documents.

        With `random`, return documents in random order instead, the same in each call.

        Raises:
            SondeError: The run does not exist.
            UsageError: k is below 1, or the offset is below 0.

        Example:
            >>> fruit.label(["fruit", "vehicles"], engine="similarity", name="kinds").corrected
            1
            >>> [found.label for found in fruit.unsure("kinds", k=1)]
            ['fruit']
        """
        from ...pipelines.label import unsure

        return unsure(self.stored, run, k, offset, random=random)

    def to_confirm(self, run: str | None = None, k: int = 10) -> "list[Unsure]":
        """Return the documents whose correct labels teach a label run most: uncertain, and unlike each other.

        Store their labels with `correct`, label again with the run's name, and ask for more. Without a name, the newest
        label run is used; each document names it.

        Raises:
            SondeError: The run does not exist.
            UsageError: k is below 1.

        Example:
            >>> [(found.run, found.id) for found in fruit.to_confirm(k=1)]
            [('kinds', '1')]
        """
        from ...pipelines.label import to_confirm

        return to_confirm(self.stored, run, k)

    def tag(self, name: str, *, ids: Ids | None = None, where: str | None = None, change: "Change" = "new") -> "Tagged":
        """Tag documents; filters, exports and maps refer to the tag as "tag:NAME".

        Args:
            name: The tag's name.
            ids: One or several document ids; an empty list adds or removes none.
            where: A filter; documents that match it are included in addition to `ids`.
            change: How to treat an existing tag of this name: "new" raises an error, "add" and "remove" change the tag,
                "replace" overwrites it.

        Raises:
            UsageError: No documents were given, the filter or the name is not valid, or the tag already exists.
            SondeError: An id does not exist, or another process is writing.

        Example:
            >>> fruit.tag("short", where="length < 16").documents
            2
            >>> fruit.search("petrol", k=1, where='NOT "tag:short"')[0].text
            'Bananas are yellow.'
        """
        from ...pipelines.analysis.selections import tag

        return tag(self.stored, name, ids=ids, where=where, change=change)

    def judge(self, query: str, ids: Ids, grade: int | None = 1) -> int:
        """Store a judgement of how well documents answer a query; return how many documents were judged.

        Args:
            query: The query's text.
            ids: One or several document ids.
            grade: 0 for not relevant, 1 to 10 for relevant (higher is more relevant), None to delete the judgement.

        Raises:
            UsageError: The query is empty or too long, no document was given, or the grade is not valid.
            SondeError: A document does not exist; nothing is stored in that case.

        Example:
            >>> fruit.judge("yellow fruit", ["1"])
            1
        """
        from ...pipelines.evaluate.judgements import judge

        return judge(self.stored, query, ids, grade)

    def import_judgements(
        self, queries: "str | Path | Sequence[Query]", qrels: "str | Path | Qrels", progress: Notify = silent
    ) -> int:
        """Store the judgements of a test set; return how many were stored.

        Args:
            queries: A JSONL file with `_id` and `text`, or pairs of an id and a text.
            qrels: A file of TREC qrels or BEIR's TSV, or grades by query id and document id: 0 or below for not
                relevant, 1 to 10 for relevant.
            progress: Receives a note if judgements are left out, because the query has no text or the document is
                not in the collection.

        Raises:
            UsageError: A query is empty or too long, or a grade is not valid.
            SondeError: A file is not readable, or no judgement is left; nothing is stored in that case.

        Example:
            >>> fruit.import_judgements([("q1", "yellow fruit")], {"q1": {"1": 1}})
            1
        """
        from ...pipelines.evaluate.judgements import import_judgements
        from ...pipelines.evaluate.trec import read_qrels, read_queries

        asked = read_queries(Path(queries)) if isinstance(queries, str | Path) else queries
        truth = read_qrels(Path(qrels), progress) if isinstance(qrels, str | Path) else qrels
        return import_judgements(self.stored, asked, truth, progress)

    def judgements(self) -> "Judgements":
        """Return the stored judgements, without those of documents that were deleted or whose text changed.

        Example:
            >>> fruit.judgements().qrels
            {'q1': {'1': 1}}
        """
        from ...pipelines.evaluate.judgements import judgements

        return judgements(self.stored)

    def corrected_run(self, run: str | None = None, labels: Sequence[str] = ()) -> str:
        """Return the name of the label run that corrections apply to: `run`, if it is given.

        By default it is the newest run that has all these labels. If none has them, it is the newest run; if there
        is no run, it is "labels".

        Example:
            >>> fruit.corrected_run()
            'kinds'
        """
        from ...pipelines.label.labels import NONE_NAME, codes_of, plain

        if run is not None:
            return run
        wanted = [name for name in labels if isinstance(name, str)]
        with self.stored.view() as view:
            runs = [each for each in list_runs(view.catalog, LABEL, count=False) if each.complete]
            for each in reversed(runs if wanted else ()):
                known = {plain(item.name) for item in items_of(view.catalog, each)} | {NONE_NAME}
                if set(map(plain, codes_of(wanted, known))) <= known:
                    return each.name
        return runs[-1].name if runs else "labels"

    def _run_with_corrections(self, run: str | None) -> str:
        """Return the named run, else the only one that has corrections, else the one that corrections would apply to.

        Raises:
            UsageError: No run is named, and several have corrections.
        """
        with self.stored.view() as view:
            known = {each.name: each.documents for each in list_runs(view.catalog, CORRECTION)}
        if run is not None or not known:
            return self.corrected_run(run)
        if len(known) > 1:
            counts = ", ".join(f"{name} ({count:,})" for name, count in known.items())
            said = f"several runs have corrections: choose one with {arg('run')}: {counts}"
            raise UsageError(said, code="ambiguous", field="run", alternatives=known)
        return next(iter(known))
