"""What is wrong in the data, and what is new: checks, duplicates, and changes among new documents."""

from datetime import date
from typing import TYPE_CHECKING, Unpack

from ...indexer.progress import Notify, silent
from .arguments import PROGRESS, settings_from
from .opened import Opened
from .options import CheckOptions, DuplicateOptions, WatchOptions

if TYPE_CHECKING:
    from ...pipelines.check import Checked, CheckSettings
    from ...pipelines.duplicates import Duplicates, DuplicateSettings
    from ...pipelines.watch import Watched, WatchSettings


class Checking(Opened):
    """The methods that look for mistakes in the data, and for changes.

    Example:
        >>> texts = ["Apples are red.", "Bananas are yellow.", "Cars need fuel."]
        >>> fruit = sonde.index(texts, to=folder / "fruit.sonde")
        >>> words = ["parcel late", "parcel lost", "battery dead", "battery weak"]
        >>> rows = [{"text": f"{words[n % 4]} {n}", "about": words[n % 4].split()[0]} for n in range(40)]
        >>> rows[0]["about"] = "battery"
        >>> shop = sonde.index(rows, to=folder / "shop.sonde", text="text")
        >>> run = shop.cluster("before", k=2)
        >>> new = shop.put([{"id": f"n{n}", "text": f"screen flickers {n}"} for n in range(30)])
    """

    def check(
        self, name: str = "check", *, replace: bool = False, settings: "CheckSettings | None" = None,
        progress: Notify = silent, **options: Unpack[CheckOptions],
    ) -> "Checked":  # fmt: skip
        """Look for mistakes in the data and store the result as a run; a document can be in several of its groups.

        Args:
            name: The run's name.
            replace: Whether to replace an existing run of this name.
            settings: Base settings; each option overrides the field of the same name.
            progress: Receives progress.
            **options: Any field of `sonde.CheckSettings`: `label`, `split`, `kinds`, `region` …

        Raises:
            UsageError: A setting is not valid, a column does not exist, or the name is taken.
            SondeError: The collection is empty, or another process is writing.

        Example:
            >>> [found.why for found in shop.check(label="about", kinds=["label"]).found["label"]]
            ['battery; more likely: parcel']
        """
        from ...pipelines.check import CheckSettings, check

        given = settings_from(CheckSettings, settings, options, "check", ("name", "replace", *PROGRESS))
        return check(self.stored, given, name=name, replace=replace, notify=progress)

    def watch(
        self, since: str | date, name: str = "watch", *, replace: bool = False, settings: "WatchSettings | None" = None,
        progress: Notify = silent, **options: Unpack[WatchOptions],
    ) -> "Watched":  # fmt: skip
        """Report groups that grew, shrank or appeared among the new documents, and store the result as a run.

        Args:
            since: A date such as "2026-11-01", a `datetime.date` or a `pandas.Timestamp`: documents of that day or
                later are new. Or the name of a cluster, topic, map or label run or a taxonomy: documents that it does
                not know are new.
            name: The run's name.
            replace: Whether to replace an existing run of this name.
            settings: Base settings; `since` and each option override the field of the same name.
            progress: Receives progress.
            **options: Any field of `sonde.WatchSettings`: `date`, `run`, `alarms`, `seed`.

        Raises:
            UsageError: A setting is not valid, a column cannot tell what is new, or the name is taken.
            SondeError: There is no such run, there is no new or no old document, or another process is writing.

        Example:
            >>> [(change.kind, change.new) for change in shop.watch("before").changes if change.kind == "new"]
            [('new', 30)]
        """
        from ...pipelines.watch import WatchSettings, watch

        own = ("since", "name", "replace", *PROGRESS)
        since = since.isoformat() if isinstance(since, date) else since
        given = settings_from(WatchSettings, settings, {**options, "since": since}, "watch", own)
        return watch(self.stored, given, name=name, replace=replace, notify=progress)

    def duplicates(
        self,
        *,
        settings: "DuplicateSettings | None" = None,
        progress: Notify = silent,
        **options: Unpack[DuplicateOptions],
    ) -> "Duplicates":
        """Return groups of duplicate documents: exact, near or by meaning.

        Args:
            settings: Base settings; each option overrides the field of the same name.
            progress: Receives progress.
            **options: Any field of `sonde.DuplicateSettings`: `kinds`, `near`, `meaning`, `keep`.

        Raises:
            UsageError: A setting is not valid.

        Example:
            >>> fruit.duplicates(kinds=("exact",)).groups
            ()
        """
        from ...pipelines.duplicates import DuplicateSettings, find_duplicates

        given = settings_from(DuplicateSettings, settings, options, "duplicates", PROGRESS)
        return find_duplicates(self.stored, given, progress)
