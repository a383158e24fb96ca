"""What shows a collection as a whole: its topics and its map."""

from typing import Any

from ..indexer import collection as stored
from ..indexer.progress import Notify, silent
from ..pipelines.map import Map, MapSettings, make_map
from ..pipelines.topics import Topics, TopicSettings, make_topics
from .options import PROGRESS, settings_from


class Overviewed(stored.Collection):
    """A collection with topics and a map; `sonde.open` gives one that can also be searched.

    Example:
        >>> words = ["parcel late", "parcel lost", "battery dead", "battery weak"]
        >>> shop = sonde.index([f"{words[n % 4]} {n}" for n in range(16)], to=folder / "shop.sonde")
    """

    def topics(
        self,
        name: str = "topics",
        *,
        replace: bool = False,
        match: str | None = None,
        settings: TopicSettings | None = None,
        progress: Notify = silent,
        **options: Any,
    ) -> Topics:
        """Find topics with BERTopic, keep them as a run, and return them.

        Args:
            name: Of the run.
            replace: Whether a run of this name may be replaced; numbers stay where topics do.
            match: Another run whose numbers are taken where topics are the same.
            settings: Settings to start from; an option overrides its field.
            progress: Receives progress.
            **options: Any field of `sonde.TopicSettings`: `min_size`, `reduce_to`, `seed_words`, `outliers`, `seed` …

        Raises:
            UsageError: A setting cannot be right, or the name is taken.
            SondeError: Another process is writing.
            MissingExtraError: BERTopic is not installed.

        Example:
            >>> shop.topics(min_size=30, names="terms")  # 16 texts hold no topic of 30
            Topics('topics', 0 topics, 16 documents)
        """
        given = settings_from(TopicSettings, settings, options, "topics", ("name", "replace", "match", *PROGRESS))
        make_topics(self, given, name, replace=replace, match=match, notify=progress)
        return Topics(self, name, progress)

    def topic_run(self, name: str | None = None, *, progress: Notify = silent) -> Topics:
        """Return the topics of a run that is kept, the newest if no name is given.

        Raises:
            SondeError: There is none.

        Example:
            >>> shop.topic_run("topics").outliers
            16
        """
        return Topics(self, name, progress)

    def map(
        self, name: str = "map", *, replace: bool = False, settings: MapSettings | None = None,
        progress: Notify = silent, **options: Any,
    ) -> Map:  # fmt: skip
        """Lay out the documents on a plane, keep that as a run, and return it.

        Args:
            name: Of the run.
            replace: Whether a run of this name may be replaced.
            settings: Settings to start from; an option overrides its field.
            progress: Receives progress.
            **options: Any field of `sonde.MapSettings`: `seed`, `neighbours`, `sample` …

        Raises:
            UsageError: A setting cannot be right, or the name is taken.
            SondeError: The collection is empty, or another process is writing.
            MissingExtraError: umap-learn is not installed.

        Example:
            >>> shop.map().places.shape
            (16, 2)
        """
        given = settings_from(MapSettings, settings, options, "map", ("name", "replace", *PROGRESS))
        make_map(self, given, name, replace=replace, notify=progress)
        return Map(self, name)

    def map_run(self, name: str | None = None) -> Map:
        """Return a map that is kept, the newest if no name is given.

        Raises:
            SondeError: There is none.

        Example:
            >>> shop.map_run().draw(folder / "map.png")
        """
        return Map(self, name)
