"""Groups of documents: clusters, topics and maps, and the runs that store them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from ...indexer.progress import Notify, silent
from ...indexer.store.kinds import CLUSTER
from ...indexer.store.runs import Item, Run, find_run, items_of
from .arguments import PROGRESS, check_options, settings_from
from .opened import Opened
from .options import ClusterOptions, CompareParts, MapOptions, TopicOptions

if TYPE_CHECKING:
    from ...indexer.store.fields import Period
    from ...pipelines.analysis import runs as kept
    from ...pipelines.analysis.breakdown import RunBreakdown
    from ...pipelines.cluster import Clustering, ClusterSettings, Updated
    from ...pipelines.compare import Contrast, RunComparison
    from ...pipelines.map import Map, MapSettings
    from ...pipelines.topics import Topics, TopicSettings


class Grouping(Opened):
    """The methods that analyse a whole collection.

    Example:
        >>> texts = ["Apples are red.", "Bananas are yellow.", "Cars need fuel."]
        >>> kinds = ("fruit", "fruit", "vehicles")
        >>> rows = [{"text": text, "kind": kind} for text, kind in zip(texts, kinds)]
        >>> fruit = sonde.index(rows, to=folder / "fruit.sonde", text="text")
        >>> words = ["parcel late", "parcel lost", "battery dead", "battery weak"]
        >>> shop = sonde.index([f"{words[n % 4]} {n}" for n in range(16)], to=folder / "shop.sonde")
    """

    def cluster(
        self, name: str | None = None, *, replace: bool = False, settings: "ClusterSettings | None" = None,
        progress: Notify = silent, **options: Unpack[ClusterOptions],
    ) -> "Clustering":  # fmt: skip
        """Cluster the documents by meaning and store the result as a run.

        Args:
            name: The run's name; the name of the method by default.
            replace: Whether to replace an existing run of this name.
            settings: Base settings; each option overrides the field of the same name.
            progress: Receives progress.
            **options: Any field of `sonde.ClusterSettings`: `method`, `k`, `seed`, `outliers` …

        Raises:
            UsageError: A setting is not valid, k is larger than the number of distinct texts, or the name is taken.
            SondeError: The collection is empty, or another process is writing.
            MissingExtraError: The method needs libraries that are not installed.

        Example:
            >>> [found.data["size"] for found in fruit.cluster(k=2).clusters]
            [2, 1]
        """
        from ...pipelines.cluster import ClusterSettings, cluster

        given = settings_from(ClusterSettings, settings, options, "cluster", ("name", "replace", *PROGRESS))
        return cluster(self.stored, given, name=name, replace=replace, notify=progress)

    def update_clusters(self, run: str | None = None, *, progress: Notify = silent) -> "Updated":
        """Assign documents that are new since a cluster run to its clusters; the cluster numbers do not change.

        Raises:
            SondeError: The run does not exist, or another process is writing.

        Example:
            >>> fruit.update_clusters("kmeans").added
            0
        """
        from ...pipelines.cluster import update

        return update(self.stored, run, progress)

    def cluster_run(self, name: str | None = None) -> "kept.RunDetails":
        """Return a cluster run with its clusters, or the newest run if no name is given.

        Raises:
            SondeError: The run does not exist.

        Example:
            >>> fruit.cluster_run().run.name
            'kmeans'
        """
        from ...pipelines.analysis import runs as kept

        with self.stored.view() as view:
            run = find_run(view.catalog, CLUSTER, name)
            return kept.RunDetails(run, items_of(view.catalog, run))

    def merge_clusters(self, numbers: Sequence[int], run: str | None = None) -> Item:
        """Merge clusters into the first one and return it; it keeps its number.

        Args:
            numbers: Numbers of two or more clusters.
            run: The cluster run; the newest if None.

        Raises:
            UsageError: Fewer than two numbers were given.
            SondeError: The run or a cluster does not exist, or another process is writing.

        Example:
            >>> [found.data["size"] for found in shop.cluster("words", k=4).clusters]
            [4, 4, 4, 4]
            >>> shop.merge_clusters([0, 1], "words").data["size"]
            8
        """
        from ...pipelines.cluster.update import merge_clusters

        return merge_clusters(self.stored, numbers, run)

    def topics(
        self,
        name: str = "topics",
        *,
        replace: bool = False,
        match: str | None = None,
        settings: "TopicSettings | None" = None,
        progress: Notify = silent,
        **options: Unpack[TopicOptions],
    ) -> "Topics":
        """Find topics at three nested levels, store them as a run, and return those of the suggested level.

        Args:
            name: The run's name.
            replace: Whether to replace an existing run of this name. Topics that stay the same keep their numbers.
            match: Another run. Topics that are the same as in that run get the same numbers.
            settings: Base settings; each option overrides the field of the same name.
            progress: Receives progress.
            **options: Any field of `sonde.TopicSettings`: `level`, `method`, `reduce_to`, `outliers`, `seed` …

        Raises:
            UsageError: A setting is not valid, or the name is taken.
            SondeError: Another process is writing.
            MissingExtraError: BERTopic or EVoC is not installed.

        Example:
            >>> shop.topics(min_size=30, names="terms")  # 16 texts hold no topic of 30
            Topics('topics', 0 topics, 16 documents)
        """
        from ...pipelines.topics import Topics, TopicSettings, make_topics

        given = settings_from(TopicSettings, settings, options, "topics", ("name", "replace", "match", *PROGRESS))
        make_topics(self.stored, given, name, replace=replace, match=match, notify=progress)
        return Topics(self.stored, name, progress)

    def topic_run(self, name: str | None = None, *, progress: Notify = silent) -> "Topics":
        """Return the topics of a stored run, or of the newest run if no name is given.

        Args:
            name: The run's name; `coarse:NAME`, `middle:NAME` and `fine:NAME` return the levels of a run.
            progress: Receives progress.

        Raises:
            SondeError: The run does not exist.

        Example:
            >>> shop.topic_run("topics").outliers
            16
        """
        from ...pipelines.topics import Topics

        return Topics(self.stored, name, progress)

    def map(
        self, name: str = "map", *, replace: bool = False, settings: "MapSettings | None" = None,
        progress: Notify = silent, **options: Unpack[MapOptions],
    ) -> "Map":  # fmt: skip
        """Lay out the documents on a plane, store the map as a run, and return it.

        Args:
            name: The run's name.
            replace: Whether to replace an existing run of this name.
            settings: Base settings; each option overrides the field of the same name.
            progress: Receives progress.
            **options: Any field of `sonde.MapSettings`: `seed`, `neighbours`, `sample` …

        Raises:
            UsageError: A setting is not valid, or the name is taken.
            SondeError: The collection is empty, or another process is writing.
            MissingExtraError: umap-learn is not installed.

        Example:
            >>> shop.map().places.shape
            (16, 2)
        """
        from ...pipelines.map import Map, MapSettings, make_map

        given = settings_from(MapSettings, settings, options, "map", ("name", "replace", *PROGRESS))
        make_map(self.stored, given, name, replace=replace, notify=progress)
        return Map(self.stored, name)

    def map_run(self, name: str | None = None) -> "Map":
        """Return a stored map, or the newest map if no name is given.

        Raises:
            SondeError: The run does not exist.

        Example:
            >>> shop.map_run().draw(folder / "map.png")
        """
        from ...pipelines.map import Map

        return Map(self.stored, name)

    def update_map(self, run: str | None = None, *, progress: Notify = silent) -> int:
        """Add new documents to a map and return how many were added; the other documents do not move.

        Raises:
            SondeError: The map does not exist, or another process is writing.

        Example:
            >>> shop.update_map("map")
            0
        """
        from ...pipelines.map import update_map

        return update_map(self.stored, run, progress)

    def compare(self, **parts: Unpack[CompareParts]) -> "Contrast | RunComparison":
        """Compare two parts of the collection, or two cluster runs, and return the differences.

        Args:
            **parts: One of: `clusters=(0, 1)`, with `run="NAME"` if the run is not the newest;
                `where=("year < 2020", "year >= 2020")`; `queries=("late", "broken")`; or `runs=("kmeans", "density")`.

        Raises:
            UsageError: The call does not name exactly two parts of one kind, or one part holds no documents.
            SondeError: The run does not exist.

        Example:
            >>> fruit.compare(queries=("yellow fruit", "petrol"), k=1).sides[1].documents
            1
        """
        from ...pipelines.compare import compare

        check_options(parts, ("clusters", "where", "queries", "runs", "run", "k"), "compare")
        return compare(self.stored, **parts)

    def runs(self, kind: str | None = None) -> list[Run]:
        """Return the stored runs of the collection, oldest first.

        Example:
            >>> [(run.kind, run.name, run.documents) for run in fruit.runs()]
            [('cluster', 'kmeans', 3)]
        """
        from ...pipelines.analysis import runs as kept

        return kept.all_runs(self.stored, kind)

    def run(self, name: str, kind: str | None = None) -> "kept.RunDetails":
        """Return a run with its clusters, topics or labels.

        Raises:
            SondeError: The run does not exist.
            UsageError: Runs of several kinds have this name, and no kind was given.

        Example:
            >>> [item.number for item in fruit.run("kmeans").items]
            [0, 1]
        """
        from ...pipelines.analysis import runs as kept

        return kept.details(self.stored, name, kind)

    def members(
        self, run: str, item: int, kind: str | None = None, *, where: str | None = None, k: int = 10, offset: int = 0
    ) -> "list[kept.Member]":
        """Return the documents of a cluster, topic or label, best matches first.

        With `where`, only documents that pass this filter are returned.

        Raises:
            SondeError: The run does not exist.
            UsageError: Runs of several kinds have this name and no kind was given, the filter is not valid, k is below
                1, or offset is below 0.

        Example:
            >>> [member.text for member in fruit.members("kmeans", 1)]
            ['Cars need fuel.']
        """
        from ...pipelines.analysis import runs as kept

        return kept.members(self.stored, run, item, kind, where=where, k=k, offset=offset)

    def assignments(self, run: str, kind: str | None = None) -> "list[kept.Assignment]":
        """Return the cluster, topic or labels of every document of a run, in the order of the documents.

        Outliers have the number -1. A document with several labels comes several times, best first.

        Raises:
            SondeError: The run does not exist.
            UsageError: Runs of several kinds have this name and no kind was given.

        Example:
            >>> [found.number for found in fruit.assignments("kmeans")]
            [0, 0, 1]
        """
        from ...pipelines.analysis import runs as kept

        return kept.assignments(self.stored, run, kind)

    def memberships(self, id: str) -> "list[kept.Membership]":
        """Return the groups, labels and tags of one document: those of the newest run first.

        Raises:
            SondeError: No document has this id.

        Example:
            >>> id = next(fruit.rows())["id"]
            >>> [(found.run.name, found.number) for found in fruit.memberships(id)]
            [('kmeans', 0)]
        """
        from ...pipelines.analysis import runs as kept

        return kept.memberships(self.stored, id)

    def breakdown(
        self, run: str, column: str, kind: str | None = None, *, period: "Period | None" = None,
        where: str | None = None,
    ) -> "RunBreakdown":  # fmt: skip
        """Count a run's documents by a metadata column: by period for dates, else by class.

        Args:
            run: The run's name: of a taxonomy, the groups at the top are counted. "taxonomy:NAME" counts all its
                groups, and the column of a level, such as "taxonomy:NAME level 1", those of the level.
            column: The metadata column.
            kind: The run's kind, if runs of several kinds have this name.
            period: "year", "quarter", "month", "week" or "day", with those in which there is no document. If None, the
                dates decide: day, month or year.
            where: Count only documents that pass this filter.

        Raises:
            SondeError: The run does not exist.
            UsageError: The column does not exist or has no values, the filter is not valid, or runs of several kinds
                have this name. Or the period is not valid, the column has no dates, or there are more than
                400 periods.

        Example:
            >>> [(row["number"], row["class"], row["documents"]) for row in fruit.breakdown("kmeans", "kind").rows()]
            [(0, 'fruit', 2), (1, 'vehicles', 1)]
        """
        from ...pipelines.analysis.breakdown import breakdown

        return breakdown(self.stored, run, column, kind, period, where)

    def export_breakdown(
        self, to: str | Path, run: str, column: str, kind: str | None = None, *, item: int | None = None,
        period: "Period | None" = None, where: str | None = None, progress: Notify = silent,
    ) -> int:  # fmt: skip
        """Write `breakdown` as a table with documents, n and shares to an .xlsx, .csv or .jsonl file.

        Returns the number of rows: one for each group and class. With `item`, only this group or label is written. The
        other arguments are those of `breakdown`.

        Example:
            >>> fruit.export_breakdown(folder / "kinds.csv", "kmeans", "kind")
            4
        """
        found = self.breakdown(run, column, kind, period=period, where=where)
        return (found if item is None else found.only(item)).write(self.stored, Path(to), progress)

    def rename_run(self, name: str, to: str, *, kind: str | None = None, item: int | None = None) -> None:
        """Rename a run or, if `item` is given, the cluster, topic or label with that number.

        Raises:
            SondeError: The run or the item does not exist, or another process is writing.
            UsageError: The new name is taken or not valid, or the name matches runs of several kinds.

        Example:
            >>> fruit.rename_run("kmeans", "fruit and cars", item=0)
            >>> fruit.run("kmeans").items[0].name
            'fruit and cars'
        """
        from ...pipelines.analysis import runs as kept

        kept.rename_stored(self.stored, name, to, kind, item)

    def delete_run(self, name: str, *, kind: str | None = None) -> None:
        """Delete a run with its results; the documents do not change.

        Raises:
            SondeError: The run does not exist, or another process is writing.
            UsageError: The name matches runs of several kinds.

        Example:
            >>> fruit.delete_run("kmeans")
            >>> fruit.runs()
            []
        """
        from ...pipelines.analysis import runs as kept

        kept.delete_stored_run(self.stored, name, kind)
