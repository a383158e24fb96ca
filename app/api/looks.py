"""Read-only views for pages and programs: counts, columns, the model, runs with their groups, and contrasts."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...indexer.errors import SondeError
from ...indexer.files import check_target
from ...indexer.progress import Notify, silent
from ...indexer.store.documents import ids_by_number
from ...indexer.store.kinds import TAXONOMY, kind_of
from ...indexer.store.members import sizes_inside
from ...indexer.store.runs import Item, Run, counted_run, items_of, list_runs, places_of
from .opened import Opened

if TYPE_CHECKING:
    from ...indexer.store.fields import Period
    from ...pipelines.analysis import runs as kept
    from ...pipelines.compare import Contrast, RunComparison
    from ...pipelines.label import Labels, LabelSettings
    from ...pipelines.label.review import Trial
    from ...pipelines.search.counts import Counts, CrossCounts

State = tuple[tuple[int, int, int], ...]
"""A value that changes with every commit."""


class Looking(Opened):
    """The methods that only read.

    Example:
        >>> words = ["parcel late", "parcel lost", "battery dead", "battery weak"]
        >>> rows = [{"id": n, "text": f"{words[n % 4]} {n}", "kind": "ab"[n % 4 // 2], "n": n} for n in range(16)]
        >>> shop = sonde.index(rows, to=folder / "shop.sonde", id="id")
        >>> made = shop.cluster("two", k=2, refits=0), shop.cluster("four", k=4, refits=0)
    """

    @property
    def model(self) -> str:
        """The name of the collection's bi-encoder."""
        return self.stored.spec.name

    @property
    def model_at_hand(self) -> bool:
        """Whether the bi-encoder is loaded, or can be loaded without a network."""
        return self.stored.encoder_at_hand

    @property
    def device(self) -> str:
        """The device that encodes texts, as the caller gave it: "auto", "cpu", "cuda" and so on."""
        return self.stored.device

    @property
    def generation(self) -> int:
        """A number that grows with every commit that changes documents."""
        return self.stored.get("generation", 0)

    def documents_state(self) -> tuple[str, int, int, int]:
        """Return a value that changes when documents change or the collection is recreated, but not when runs change.

        Raises:
            OSError: The collection was removed.

        Example:
            >>> shop.documents_state()[-1] == shop.generation
            True
        """
        made = self.stored.lasting_path.stat()
        return str(self.path), made.st_dev, made.st_ino, self.generation

    def state(self) -> State:
        """Return a value that changes with every commit of documents or runs.

        Example:
            >>> before = shop.state()
            >>> before == shop.state(), shop.tag("late", where="kind = 'a'").documents, before == shop.state()
            (True, 8, False)
        """
        catalog = self.stored.catalog_path
        parts = [catalog, catalog.with_name(f"{catalog.name}-wal")]
        found = [part.stat() for part in parts if part.exists()]
        return tuple((part.st_ino, part.st_mtime_ns, part.st_size) for part in found)

    def counts(self) -> tuple[int, int]:
        """Return the number of documents and the number of passages.

        Raises:
            SondeError: The collection cannot be read.

        Example:
            >>> shop.counts()
            (16, 16)
        """
        with self.stored.view() as view:
            documents, passages, _ = view.catalog.counts()
        return documents, passages

    def fields(self) -> dict[str, str]:
        """Return the type of each metadata field by name: "text", "integer", "real", "boolean", "date" or "list".

        Raises:
            SondeError: The collection cannot be read.

        Example:
            >>> shop.fields()
            {'kind': 'text', 'n': 'integer'}
        """
        with self.stored.view() as view:
            return {field.name: field.type for field in view.fields.values()}

    def uncounted_runs(self, kind: str | None = None) -> list[Run]:
        """Return the runs, oldest first. Faster than `runs`: each run has the document count from when it was stored.

        Raises:
            UsageError: The kind does not exist.

        Example:
            >>> [(run.kind, run.name) for run in shop.uncounted_runs("cluster")]
            [('cluster', 'two'), ('cluster', 'four')]
        """
        wanted = None if kind is None else kind_of(kind)
        with self.stored.view() as view:
            return [run for run in list_runs(view.catalog, wanted, count=False) if wanted or not run.kind.part]

    def counted_run(self, run: Run) -> "kept.RunDetails":
        """Return one run of `uncounted_runs` with its items, and the documents that it and each item have now.

        Example:
            >>> found = shop.counted_run(shop.uncounted_runs("cluster")[0])
            >>> found.run.documents, len(found.items)
            (16, 2)
        """
        from ...pipelines.analysis import runs as kept

        with self.stored.view() as view:
            items, levels = kept.present_items(view.catalog, run), kept.levels_of(view.catalog, run)
            return kept.RunDetails(counted_run(view.catalog, run), items, levels)

    def newest_run(self, kind: str, name: str | None = None) -> "kept.RunDetails":
        """Return the newest complete run of a kind, or the one of this name, with its items.

        Raises:
            UsageError: There is no such kind.
            SondeError: There is no such run.

        Example:
            >>> shop.newest_run("cluster").run.name
            'four'
        """
        from ...pipelines.analysis import runs as kept

        with self.stored.view() as view:
            run = kept.newest(view.catalog, kind_of(kind), name)
            items, levels = kept.present_items(view.catalog, run), kept.levels_of(view.catalog, run)
            return kept.RunDetails(counted_run(view.catalog, run), items, levels)

    def export_groups(
        self, to: str | Path, run: str, kind: str | None = None, *, where: str | None = None,
        raw_formulas: bool = False, mask: bool = False, region: str | None = None, progress: Notify = silent,
    ) -> int:  # fmt: skip
        """Write the groups of a run as a table for a report, and return how many there are.

        The columns are number, name, terms or description, documents, share in %, and three typical texts of the group;
        those of a taxonomy include its path.

        Args:
            to: An .xlsx, .csv or .jsonl file.
            run: The run's name, such as "topics" or "taxonomy:ours".
            kind: The run's kind, if runs of several kinds have this name.
            where: A filter on metadata and runs; only documents that pass it are counted and quoted.
            raw_formulas: Whether to leave cells of a CSV file unchanged that a spreadsheet would run as formulas.
            mask: Whether to replace personal data that patterns find: "[email]", "[phone]" …
            region: With `mask`: country code by whose rules phone numbers without a country code are read.
            progress: Receives a message if cells were changed or texts masked.

        Raises:
            SondeError: The run does not exist or has no groups, or the file cannot be written.
            UsageError: The file has another suffix, or runs of several kinds have this name and no kind was given.

        Example:
            >>> shop.export_groups(folder / "groups.csv", "four")
            4
        """
        from ...indexer.store.export import TABLES, refuse_source, write_table
        from ...pipelines.analysis import runs as kept
        from ...pipelines.analysis.group_table import WIDTHS, group_table
        from ...pipelines.check import Masker
        from ...pipelines.taxonomy import taxonomy_table

        path = Path(to)
        check_target(path, TABLES, "write groups to")
        refuse_source(self.stored, path)
        found = kept.details(self.stored, run, kind)
        rows = (taxonomy_table if found.run.kind is TAXONOMY else group_table)(self.stored, found, where)
        if not rows:
            raise SondeError(f"the {found.run.kind} run {found.run.name!r} has no groups")
        rows = Masker(region).table(rows, progress) if mask else rows
        write_table(rows, path, found.run.kind.items, WIDTHS, raw_formulas=raw_formulas, progress=progress)
        return len(rows)

    def item_sizes(self, run: Run, where: str | None = None) -> dict[int, int]:
        """Return the number of documents of each item of a run by its number; an item without documents is left out.

        A group of a taxonomy has the documents of the groups under it too. With `where`, only documents that pass this
        filter are counted.

        Example:
            >>> shop.item_sizes(shop.newest_run("cluster").run)
            {0: 4, 1: 4, 2: 4, 3: 4}
        """
        from ...pipelines.search.filters import documents_where

        with self.stored.view() as view:
            return sizes_inside(view.catalog, run, None if where is None else documents_where(view.catalog, where))

    def places(self, run: Run, k: int = 1_000, offset: int = 0) -> tuple[int, list[tuple[str, float, float]]]:
        """Return how many documents are on a map, and ids with x and y of k of them, in the order of the documents.

        Args:
            run: A map run.
            k: Documents to return, at most.
            offset: Documents to leave out at the beginning.

        Example:
            >>> shop.places(shop.newest_run("cluster").run)
            (0, [])
        """
        with self.stored.view() as view:
            docs, places = places_of(view.catalog, run)
            page = slice(offset, offset + k)
            keys = ids_by_number(view.catalog, docs[page].tolist())
            pairs = zip(docs[page].tolist(), places[page].tolist(), strict=True)
            return len(docs), [(keys[doc], x, y) for doc, (x, y) in pairs]

    def items(self, run: Run) -> list[Item]:
        """Return the clusters, topics or labels of a run, by number.

        Example:
            >>> [item.number for item in shop.items(shop.uncounted_runs("cluster")[1])]
            [0, 1, 2, 3]
        """
        with self.stored.view() as view:
            return items_of(view.catalog, run)

    def clusters_near(self, query: str, run: str | None = None, k: int = 10) -> list[tuple[Item, float]]:
        """Return the clusters whose mean is closest to a query, with their cosines, closest first.

        Args:
            query: What to look for, in words.
            run: The cluster run; the newest if None.
            k: Clusters to return, 1 or more.

        Raises:
            UsageError: The query is empty, or k is below 1.
            SondeError: The run does not exist, or the model is not available.

        Example:
            >>> [(cluster, cosine)] = shop.clusters_near("a flat battery", "two", k=1)
            >>> {member.text.split()[0] for member in shop.members("two", cluster.number)}
            {'battery'}
        """
        from ...pipelines.cluster.clustering import clusters_near

        return clusters_near(self.stored, query, run, k)

    def explain_filter(self, where: str) -> str:
        """Return how many documents match a filter; if none does, the sentence names the value that was probably meant.

        Raises:
            UsageError: The filter is not valid.

        Example:
            >>> shop.explain_filter("length > 999")
            'no document passes the filter'
            >>> shop.explain_filter("kind = 'a'")
            '8 documents pass the filter'
        """
        from ...pipelines.search.filters import explain_filter

        return explain_filter(self.stored, where)

    def count_by(
        self, column: str, where: str | None = None, *, period: "Period | None" = None, mean_of: str | None = None,
        k: int | None = None, offset: int = 0,
    ) -> "Counts":  # fmt: skip
        """Return how often each value of a metadata field, or of a run's column, occurs.

        Args:
            column: A metadata field, the name of a run, or a run's column such as "topic:NAME name".
            where: Count only documents that pass this filter.
            period: "year", "quarter", "month", "week" or "day" counts dates by period.
            mean_of: A metadata field of numbers, whose mean is returned for each value.
            k: Number of values to list; 200 if None.
            offset: Number of values to leave out before the first one that is listed.

        Raises:
            UsageError: A column does not exist, the filter is not valid, the column has no dates for a period,
                `mean_of` has no numbers, k is below 1, or offset is below 0.

        Example:
            >>> found = shop.count_by("kind", "id != '0'", mean_of="n")
            >>> found.values, found.means
            ((('b', 8), ('a', 7)), (8.5, 7.428571428571429))
        """
        from ...pipelines.search.counts import count_by

        with self.stored.view() as view:
            return count_by(view, column, where, period, mean_of=mean_of, k=k, offset=offset)

    def cross_by(
        self, first: str, second: str, where: str | None = None, *, period: "Period | None" = None,
        mean_of: str | None = None, k: int = 20,
    ) -> "CrossCounts":  # fmt: skip
        """Return how many documents have each pair of values of two columns.

        Args:
            first: A metadata field, the name of a run, or a run's column.
            second: Another one.
            where: Count only documents that pass this filter.
            period: Counts dates of these columns by this period.
            mean_of: A metadata field of numbers, whose mean is returned for each pair.
            k: Number of values of each column that are counted.

        Raises:
            UsageError: A column does not exist, both are the same, the filter is not valid, a period is given and no
                column has dates, `mean_of` has no numbers, or k is below 1.

        Example:
            >>> found = shop.cross_by("kind", "cluster:two name")
            >>> found.values[0], [sum(row) for row in found.counts]
            (('a', 'b'), [8, 8])
        """
        from ...pipelines.search.counts import cross_by

        with self.stored.view() as view:
            return cross_by(view, first, second, where, period, mean_of=mean_of, k=k)

    def contrast(self, filters: Sequence[str], sample: int | None = None) -> "Contrast":
        """Return what distinguishes the documents of two filters; `compare` also does this for queries and clusters.

        Args:
            filters: Two filters.
            sample: Maximum number of documents on each side in which terms are counted.

        Raises:
            UsageError: A filter is not valid, or no document matches it.

        Example:
            >>> [side.documents for side in shop.contrast(["kind = 'a'", "kind = 'b'"], sample=100).sides]
            [8, 8]
        """
        from ...pipelines.compare import SAMPLE, compare_filters

        return compare_filters(self.stored, filters, SAMPLE if sample is None else sample)

    def compare_runs(self, first: str, second: str, *, kind: str | None = None) -> "RunComparison":
        """Return how well two cluster or topic runs agree, and which groups one of them splits or merges.

        Raises:
            SondeError: The run does not exist, or they have no document in common.
            UsageError: A name matches runs of several kinds.

        Example:
            >>> found = shop.compare_runs("two", "four")
            >>> found.documents, len(found.split)
            (16, 2)
        """
        from ...pipelines.compare import compare_runs

        return compare_runs(self.stored, first, second, kind)

    def try_labels(
        self, labels: "Labels", settings: "LabelSettings | None" = None, count: int = 50, *, progress: Notify = silent
    ) -> "Trial":
        """Label a random sample of documents; nothing is stored.

        Args:
            labels: Names, with or without descriptions.
            settings: Engine, model, `multi_label`, `threshold` and seed; the other fields apply only to runs.
            count: Maximum number of documents in the sample.
            progress: Receives progress.

        Raises:
            UsageError: The labels or a setting is not valid.
            SondeError: The collection is empty, or a model is not available.

        Example:
            >>> shop.try_labels(["parcel", "battery"], count=16).counts
            {'parcel': 8, 'battery': 8}
        """
        from ...pipelines.label import LabelSettings
        from ...pipelines.label.review import try_labels

        return try_labels(self.stored, labels, settings or LabelSettings(), count, progress)
