"""What a collection remembers of the columns of its sources, so that the next file is read as the first one was."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ..document import Document
from ..errors import SondeError, is_unicode
from ..readers import ReadOptions
from ..readers.coercion import known_types
from ..readers.encoding import is_legacy
from ..store.catalog import ID_COLUMN, Catalog
from ..store.documents import texts_by_id
from ..store.retyping import GIVEN_TYPES
from ..store.runs import columns_of_runs
from ..store.writing import digest
from .index import is_new

FORMS, ENCODING = "forms", "encoding"
"""Properties of a catalog: how numbers and dates of columns are written, and the encoding that the user gave."""


@dataclass(frozen=True)
class KnownColumns:
    """What is known of the columns of a collection's sources.

    Attributes:
        new: Whether the collection is yet to be made.
        id: The column of the ids, "" if hashes of the texts were chosen, None if it remembers neither.
        types: Types that the user gave to metadata columns, by name, with the formats of dates.
        forms: How numbers and dates in other columns are written, such as "real:," or "date:%d/%m/%Y".
        encoding: The encoding that the user gave, for later files that are not UTF-8.
        runs: Columns that runs of the collection add to an export, and that are no metadata.
        holds: Returns whether documents are those of the collection, under the same ids.
    """

    new: bool = False
    id: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    forms: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None
    runs: tuple[str, ...] = ()
    holds: Callable[[Sequence[Document]], bool] = lambda _: False

    def hinted(self, options: ReadOptions) -> ReadOptions:
        """Return options under which a source is read as earlier ones were, where nothing else is set."""
        if options.id is None and self.id == "":
            options = replace(options, id="")
        hint = "" if self.new else self.id
        types, forms = known_types(self.types), known_types(self.forms)
        encoding = self.encoding if is_legacy(self.encoding) else None
        options = replace(options, id_hint=hint, type_hint=types, form_hint=forms, leave_out_hint=self.runs)
        return replace(options, encoding_hint=encoding)

    def remember(self, catalog: Catalog) -> None:
        """Write into a catalog what it does not know; its id column is that of the first run.

        Of two first runs that began together, the one that waited finds the other one's.
        """
        if self.new and self.id is not None and catalog.get(ID_COLUMN) is None:
            catalog.set(ID_COLUMN, self.id)
        for name, found in ((GIVEN_TYPES, self.types), (FORMS, self.forms)):
            before = catalog.get(name, {})
            if before | found != before:
                catalog.set(name, before | found)
        if is_legacy(self.encoding) and catalog.get(ENCODING) != self.encoding:
            catalog.set(ENCODING, self.encoding)


def known_columns(folder: Path) -> KnownColumns:
    """Return what a collection in one piece remembers."""
    if is_new(folder):
        return KnownColumns(new=True)
    if not (folder / "catalog.db").is_file():
        return KnownColumns()
    try:
        with closing(Catalog.open(folder / "catalog.db")) as catalog:
            runs = columns_of_runs(catalog, catalog.fields())
            types, forms = catalog.get(GIVEN_TYPES, {}), catalog.get(FORMS, {})
            holds = partial(holds_some, [folder / "catalog.db"])
            return KnownColumns(False, catalog.get(ID_COLUMN), types, forms, catalog.get(ENCODING), runs, holds)
    except SondeError:  # the run itself says what is wrong with the collection, or brings it up to date
        return KnownColumns()


def holds_some(catalogs: Iterable[Path], documents: Sequence[Document]) -> bool:
    """Return whether documents are those of a collection: at least half of the ids that it knows have the same texts.

    Row numbers may be ids of the collection, too, but of other texts.
    """
    texts = {each.key or digest(each.title, each.text).hex(): (each.title, each.text) for each in documents}
    ids = list(filter(is_unicode, texts))
    known: dict[str, bool] = {}
    for path in filter(Path.is_file, catalogs):
        with closing(Catalog.open(path)) as catalog:
            found = texts_by_id(catalog, ids)
        known |= {id: (each.title, each.text) == texts[id] for id, each in found.items()}
    return sum(known.values()) >= max(1, len(known) / 2)
