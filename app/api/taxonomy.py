"""Taxonomies: groups that people edit, with a log, and that survive new documents."""

from typing import TYPE_CHECKING, Unpack

from ...indexer.progress import Notify, silent
from .arguments import PROGRESS, settings_from
from .opened import Opened
from .options import EditOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...pipelines.taxonomy import EditSettings, LogEntry, Taxonomy, TaxonomyUpdate
    from ...pipelines.taxonomy.files import Form
    from ...pipelines.taxonomy.settings import Operation


class Editing(Opened):
    """The methods that make, edit and exchange taxonomies.

    Example:
        >>> words = ["parcel late", "parcel lost", "battery dead", "battery weak"]
        >>> rows = [{"id": str(n), "text": f"{words[n % 4]} {n}"} for n in range(16)]
        >>> shop = sonde.index(rows, to=folder / "shop.sonde", id="id", text="text")
        >>> run = shop.cluster("words", k=4)
    """

    def make_taxonomy(
        self, source: str | None = None, name: str = "taxonomy", *, kind: str | None = None, replace: bool = False,
        flat: bool = False, by: str | None = None, progress: Notify = silent,
    ) -> "Taxonomy":  # fmt: skip
        """Make a taxonomy of a run that groups or labels the documents, and store it as a run.

        The levels of a topic run become levels of the taxonomy; topics that you named, merged or split stay as they
        are. A document belongs to one group: its best.

        Args:
            source: Name of a cluster, topic or label run, or of another taxonomy. None makes one without groups.
            name: The taxonomy's name.
            kind: Kind of the run, if runs of several kinds have its name.
            replace: Whether to replace an existing taxonomy of this name, with its log.
            flat: Whether to take only the topics of a topic run, without its levels.
            by: Who makes it, for the log; the user of this process if None.
            progress: Receives a message if labels were left out, because documents have several.

        Raises:
            UsageError: The name is taken, or the run has no groups.
            SondeError: The run does not exist, or another process is writing.

        Example:
            >>> [(group.number, group.documents) for group in shop.make_taxonomy("words").groups]
            [(0, 4), (1, 4), (2, 4), (3, 4)]
        """
        from ...pipelines.taxonomy import make, read_taxonomy

        make(self.stored, source, name, kind, replace=replace, flat=flat, by=by, notify=progress)
        return read_taxonomy(self.stored, name)

    def taxonomy(self, name: str | None = None) -> "Taxonomy":
        """Return a taxonomy with its groups in the order of the tree, the newest one if no name is given.

        Raises:
            SondeError: The taxonomy does not exist.

        Example:
            >>> shop.taxonomy().documents
            16
        """
        from ...pipelines.taxonomy import read_taxonomy

        return read_taxonomy(self.stored, name)

    def edit_taxonomy(
        self, operation: "Operation", taxonomy: str | None = None, *, by: str | None = None,
        settings: "EditSettings | None" = None, progress: Notify = silent, **options: Unpack[EditOptions],
    ) -> "LogEntry | None":  # fmt: skip
        """Edit a taxonomy and return the entry of its log; None if nothing is different. `undo_taxonomy` undoes it.

        Args:
            operation: "add" (`name`, `to`, `description`), "rename" (`groups` or `level`, `name`), "describe"
                (`groups`, `description`), "merge" (`groups`: into the first), "split" (`groups`, and `k`, `run`, or
                `where` and `examples`), "move" (`groups`, or `ids` and `where`; `to`), "remove" (`groups`), "lock" and
                "unlock" (`groups`, `level`, or `ids` and `where`), "rule" (`groups`, `where`, `examples`, `near`),
                "accept" and "reject" (`groups` that are proposed).
            taxonomy: Its name; the newest one if None. Adding a group makes a taxonomy if there is none.
            by: Who edits it, for the log; the user of this process if None.
            settings: Base settings; each option overrides the field of the same name.
            progress: Receives progress.
            **options: Any field of `sonde.EditSettings`. Groups are numbers, names or paths ("Shipping > Late").

        Raises:
            UsageError: An option is missing, unknown or contradicts another, or a group is locked.
            SondeError: A group or document does not exist, or another process is writing.

        Example:
            >>> shop.edit_taxonomy("rename", groups=[0], name="Late parcels").number
            2
            >>> shop.edit_taxonomy("move", ids=["3"], to="Late parcels").documents
            1
            >>> shop.taxonomy()[0].name
            'Late parcels'
        """
        from ...pipelines.taxonomy import EditSettings, edit_taxonomy

        own = ("operation", "taxonomy", "by", *PROGRESS)
        given = settings_from(EditSettings, settings, options, "edit_taxonomy", own)
        return edit_taxonomy(self.stored, operation, given, taxonomy, by=by, notify=progress)

    def undo_taxonomy(self, steps: int = 1, taxonomy: str | None = None, *, by: str | None = None) -> "list[LogEntry]":
        """Undo the last edits that are not undone yet, and return their entries of the log, the last edit first.

        Documents that were deleted in the meantime stay deleted.

        Raises:
            UsageError: There are fewer edits than steps.
            SondeError: The taxonomy does not exist, or another process is writing.

        Example:
            >>> [entry.operation for entry in shop.undo_taxonomy(2)]
            ['move', 'rename']
        """
        from ...pipelines.taxonomy import undo

        return undo(self.stored, taxonomy, steps, by)

    def taxonomy_log(self, taxonomy: str | None = None, k: int = 20) -> "list[LogEntry]":
        """Return the last entries of a taxonomy's log, the newest first.

        Raises:
            SondeError: The taxonomy does not exist.

        Example:
            >>> [(entry.number, entry.operation) for entry in shop.taxonomy_log()]
            [(5, 'undo'), (4, 'undo'), (3, 'move'), (2, 'rename'), (1, 'make')]
        """
        from ...pipelines.taxonomy import read_log

        return read_log(self.stored, taxonomy, k)

    def update_taxonomy(
        self, taxonomy: str | None = None, *, by: str | None = None, seed: int = 0, progress: Notify = silent
    ) -> "TaxonomyUpdate":
        """Put new documents into the groups of a taxonomy, and propose groups for what is new.

        The documents that it knows stay where they are, unless a rule moves them.

        Raises:
            SondeError: The taxonomy does not exist, it was edited in the meantime, or another process is writing.

        Example:
            >>> more = shop.put([{"id": "16", "text": "parcel late 16"}])
            >>> shop.update_taxonomy().added
            1
        """
        from ...pipelines.taxonomy import update

        return update(self.stored, taxonomy, by=by, seed=seed, notify=progress)

    def refit_taxonomy(
        self, taxonomy: str | None = None, *, k: int | None = None, by: str | None = None, seed: int = 0,
        progress: Notify = silent,
    ) -> "TaxonomyUpdate":  # fmt: skip
        """Learn the groups of a taxonomy again from all documents, around what is locked.

        Args:
            taxonomy: Its name; the newest one if None.
            k: Number of groups to learn from scratch; if None, the groups are moved from where they are.
            by: Who does it, for the log; the user of this process if None.
            seed: Random seed.
            progress: Receives progress.

        Raises:
            UsageError: k is out of range.
            SondeError: The taxonomy does not exist, it was edited in the meantime, or another process is writing.

        Example:
            >>> shop.refit_taxonomy().kept  # all four groups are still themselves
            (4, 4)
        """
        from ...pipelines.taxonomy import refit

        return refit(self.stored, taxonomy, k=k, by=by, seed=seed, notify=progress)

    def export_taxonomy(self, form: "Form" = "json", taxonomy: str | None = None) -> str:
        """Return a taxonomy as the text of a file.

        Args:
            form: "json" (all of it), "csv" (groups), "documents" (documents as CSV), "ttl" or "jsonld" (SKOS).
            taxonomy: Its name; the newest one if None.

        Raises:
            UsageError: The form does not exist.
            SondeError: The taxonomy does not exist.

        Example:
            >>> shop.export_taxonomy("documents").splitlines()[0]
            'id,group,path,score,locked,name'
        """
        from ...pipelines.taxonomy import export_taxonomy

        return export_taxonomy(self.stored, form, taxonomy)

    def import_taxonomy(
        self, text: str, form: "Form" = "json", name: str | None = None, *, documents: str | None = None,
        columns: "Mapping[str, str] | None" = None, label: bool = False, replace: bool = False, by: str | None = None,
        progress: Notify = silent,
    ) -> "Taxonomy":  # fmt: skip
        """Store a taxonomy from the text of a file, and return it.

        Documents that the collection has are put where the file says.

        Args:
            text: What the file holds.
            form: As for `export_taxonomy`, or "rdf": SKOS in RDF/XML.
            name: Of the taxonomy; the one in the file, or "taxonomy", if None.
            documents: A table of documents, beside a table of groups.
            columns: Which columns of these tables are which, such as `{"name": "Title"}`, if they have other names.
            label: Whether to label the other documents by the groups' names, descriptions and examples.
            replace: Whether to replace an existing taxonomy of this name, with its log.
            by: Who imports it, for the log; the user of this process if None.
            progress: Receives progress.

        Raises:
            UsageError: The form does not exist, or the name is taken.
            SondeError: The text is not valid, or another process is writing.
            MissingExtraError: rdflib, which reads SKOS, is not installed.

        Example:
            >>> rows = ["name,description", "parcels,delivery of parcels", "batteries,batteries of phones"]
            >>> groups = chr(10).join(rows)
            >>> [group.documents for group in shop.import_taxonomy(groups, "csv", "seeded", label=True).groups]
            [9, 8]
        """
        from ...pipelines.taxonomy import import_taxonomy, read_taxonomy

        name = import_taxonomy(
            self.stored, text, form, name, documents=documents, columns=columns, label=label, replace=replace, by=by,
            notify=progress,
        )  # fmt: skip
        return read_taxonomy(self.stored, name)
