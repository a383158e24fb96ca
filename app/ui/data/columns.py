"""What was found in the files: the first rows, and which column is what, for the visitor to change."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from ....indexer.document import TYPES
from ....indexer.errors import SondeError, UsageError
from ....indexer.readers import Preview, ReadOptions
from ....indexer.readers.column_types import NAMED
from ....indexer.wording import counted, listed
from ...api.functions import preview
from ..page import escape_markdown, failure

NO_TITLE, HASH = "none", "a hash of the text"
READABLE = 0.7
"""Share of characters that can be printed, above which bytes count as text."""


def choose_columns(paths: Sequence[Path], key: str, id_hint: str | None = "") -> tuple[Preview, ReadOptions | None]:
    """Show what was found, and return it with the columns that the visitor chose; None while there is no text.

    Args:
        paths: The files.
        key: The beginning of the keys of the widgets.
        id_hint: The column from which a collection takes its ids, None if it remembers none; "" for a new collection.

    Raises:
        SondeError: The files cannot be read.
    """
    looked = partial(look_at, tuple(map(str, paths)), stamps(paths), id_hint=id_hint)
    try:
        found = looked(ReadOptions())
    except UsageError as error:
        if error.field != "encoding":
            raise
        found = None
    detected = found.encoding if found else NOT_DETECTED
    encoding = st.session_state.get(f"{key}-encoding") or AUTOMATIC  # the widget is below what it changes
    if encoding != AUTOMATIC:
        try:
            found = looked(ReadOptions(encoding=encoding))
        except SondeError as error:
            found = None
            st.error(failure(error))
    elif found is None:
        _refuse(
            "The file has no readable text in an encoding that can be detected. Choose another file, or choose the "
            "encoding under Advanced."
        )
    options = _choose(found, key, id_hint) if found else None
    if detected or found is None or found.fixed:
        _choose_encoding(key, detected)
    if options and encoding != AUTOMATIC:
        options = replace(options, encoding=encoding)
    return found or Preview(None), options


AUTOMATIC, NOT_DETECTED = "", "not detected"
ENCODINGS = {
    "utf-8": "UTF-8", "utf-16": "UTF-16", "cp1252": "Western European", "cp1250": "Central European",
    "cp850": "Western European, DOS",
    "cp1251": "Cyrillic", "cp1253": "Greek", "cp1254": "Turkish", "cp1255": "Hebrew", "cp1256": "Arabic",
    "shift_jis": "Japanese", "euc_jp": "Japanese", "gb18030": "Chinese", "big5": "traditional Chinese",
    "euc_kr": "Korean",
}  # fmt: skip
"""Names of encodings as Python knows them, and what they are for."""
READ_AS = "If letters in the first rows are wrong, choose another encoding, or type the name of one. "
REMEMBERED = "The collection uses it for later files too, unless they are UTF-8."


def _choose_encoding(key: str, detected: str) -> None:
    """Let the encoding of text files be chosen; the first choice is the one that was detected."""

    def named(encoding: str) -> str:
        if encoding == AUTOMATIC:
            return detected if detected == NOT_DETECTED else f"detected: {detected or 'for each file'}"
        return f"{encoding} ({ENCODINGS[encoding]})" if encoding in ENCODINGS else encoding

    with st.expander("Advanced", expanded=detected == NOT_DETECTED):
        st.selectbox(
            "Encoding", [AUTOMATIC, *ENCODINGS], key=f"{key}-encoding", format_func=named, accept_new_options=True,
            help=READ_AS + REMEMBERED,
        )  # fmt: skip


def _choose(found: Preview, key: str, id_hint: str | None) -> ReadOptions | None:
    """Show what was found, and return the columns that the visitor chose; None while there is no text."""
    names = list(found.types) or [name for row in found.rows for name in row]
    texts = found.columns.text if found.fixed and found.columns else names
    if any(_shown(name) != name for name in names) or not _has_text(found, texts):
        _refuse("The file contains no readable text. Choose another file.")
        return None
    st.markdown(_counted_or_read(found))
    if found.fixed:
        st.caption(
            "Each file is one document. Its path is the id. If you add the file again, it replaces that document."
        )
        _show_rows(found)
        return ReadOptions()
    options = _roles(found, key, id_hint)
    _show_rows(found)
    return options


def readable(found: Preview) -> int:
    """Return how many rows or files there are, without those that are known to be unreadable."""
    return found.count - (found.unreadable or 0)


def counted_rows(found: Preview) -> str:
    """Return how many rows or files there are, without those that are known to be unreadable, in words."""
    return ("" if found.exact else "about ") + counted(readable(found), "file" if found.fixed else "row")


def _show_rows(found: Preview) -> None:
    st.caption("The first rows")
    rows = [{name: _shown(text) for name, text in row.items()} for row in found.rows]
    st.dataframe(rows, height=220, hide_index=True)


def _shown(text: str) -> str:
    """Return a text whose bytes that are not valid in its encoding are question marks: no page can show them."""
    return text.encode("utf-8", "replace").decode()


def _has_text(found: Preview, columns: Iterable[str]) -> bool:
    """Return whether the first rows have a text in one of these columns."""
    return not found.rows or any(_readable(row.get(name, "")) for row in found.rows for name in columns)


def _refuse(why: str) -> None:
    st.error(escape_markdown(why))


def _readable(text: str) -> bool:
    """Return whether a text is more than space, and not bytes that are no text at all."""
    return bool(text.strip()) and sum(c.isprintable() or c.isspace() for c in text) > READABLE * len(text)


def _counted_or_read(found: Preview) -> str:
    """Return how many rows or files there are, and why the first of those that cannot be read cannot, as Markdown."""
    what = "file" if found.fixed else "row"
    why = f"{found.skipped[0].origin}: {found.skipped[0].reason}" if found.skipped else ""
    if found.unreadable:
        more = f" · {escape_markdown(f'First problem: {why}')}" if why else ""
        return f"**{readable(found):,} of {counted(found.count, what)} can be read**{more}"
    said = f"{counted(len(found.skipped), what)} at the start cannot be read: {why}"
    return f"**{counted_rows(found)}**" + (f" · {escape_markdown(said)}" if why else "")


def _roles(found: Preview, key: str, id_hint: str | None) -> ReadOptions | None:
    names = list(found.types)
    columns = found.columns
    cells = st.columns([2, 1, 1])
    text = cells[0].multiselect("Text", names, default=list(columns.text) if columns else [], key=f"{key}-text")
    title = cells[1].selectbox(
        "Title", [NO_TITLE, *names], index=_place(names, columns.title if columns else None), key=f"{key}-title"
    )
    lost = bool(id_hint) and id_hint not in names
    id = cells[2].selectbox(
        "Id", [HASH, *names], index=None if lost else _place(names, columns.id if columns else None), key=f"{key}-id",
        placeholder="Choose a column", help="Identifies a document. A row with a known id replaces that document.",
    )  # fmt: skip
    language = columns.language if columns else None
    free = [name for name in names if name not in (*text, title, id, language) and found.types[name] != "empty"]
    kept = _metadata(found, free, key)
    if id == HASH:
        st.caption("Without an Id column, a text that changes becomes a new document, and the old one stays.")
    if id is None:
        said = f"The collection takes its ids from {id_hint}. The file has no such column: choose the one with the ids."
        st.warning(escape_markdown(said))
        return None
    if not text:
        st.warning("Choose the column that contains the text." if not found.problem else
                   "No column looks like text. Choose one.")  # fmt: skip
        return None
    if not _has_text(found, text):
        _refuse(f"The first rows have no text in {', '.join(text)}. Choose another column or file.")
        return None
    if hint := _no_text(found, text):
        st.warning(escape_markdown(hint))
    types = _types(found, kept, key)
    chosen = (tuple(text), None if title == NO_TITLE else title, None if id == HASH else id)
    left_out = tuple(name for name in free if name not in kept)
    roles: dict[str, Any] = {"text": chosen[0], "title": chosen[1] or "", "id": chosen[2] or ""}
    if columns and not lost and chosen == (tuple(columns.text), columns.title, columns.id):
        roles = {}  # as they would be found again
    try:
        return ReadOptions(leave_out=left_out, type=types, **roles)
    except UsageError as error:
        _refuse(str(error))
        return None


def _metadata(found: Preview, free: Sequence[str], key: str) -> list[str]:
    """Let columns be removed from the metadata; return the others.

    A column that was the text for a while comes back: only those that the visitor removed here stay away.
    """
    box, removed = f"{key}-metadata", f"{key}-removed"
    if box not in st.session_state:
        st.session_state[removed] = set()

    def remove() -> None:
        st.session_state[removed] = (st.session_state[removed] | set(free)) - set(st.session_state[box])

    st.session_state[box] = [name for name in free if name not in st.session_state[removed]]
    kept = st.multiselect(
        "Metadata", free, key=box, format_func=lambda name: f"{name} ({found.types[name]})", on_change=remove,
        help="Columns that you can filter, colour and group by.",
    )  # fmt: skip
    if gone := [name for name in free if name not in kept]:
        columns = "The column" if len(gone) == 1 else "The columns"
        st.caption(escape_markdown(f"{columns} {listed(gone)} {'is' if len(gone) == 1 else 'are'} not kept."))
    return kept


FEWEST_ROWS, FEW_VALUES = 50, 0.1
"""Rows from which a column of the text is judged, and the share of different values below which it may be none."""


LOOKS = {"integer": "numbers", "real": "numbers", "date": "dates", "boolean": "yes and no"}
"""Types of columns that are hardly the text, and what they hold."""


def _no_text(found: Preview, texts: Sequence[str]) -> str:
    """Return a question about columns that are hardly the text; "" if one may be."""
    why = [_why_no_text(found, name) for name in texts]
    if not all(why):
        return ""
    ask = "Is it the text column?" if len(texts) == 1 else "Are they the text columns?"
    better = _likely_text(found, texts)
    return f"{'; '.join(why)}. {ask}" + (f" The longest texts are in {better}." if better else "")


def _why_no_text(found: Preview, name: str) -> str:
    """Return why a column is hardly the text: a category, numbers, dates or ids; "" if it may be."""
    if what := LOOKS.get(found.types[name]) or _codes(found, name):
        return f"{name} looks like {what}"
    if found.sampled < FEWEST_ROWS or found.different[name] > FEW_VALUES * found.sampled:
        return ""
    rows = f"{'' if found.count == found.sampled else 'the first '}{counted(found.sampled, 'row')}"
    return f"{name} has only {counted(found.different[name], 'different value')} in {rows}"


def _codes(found: Preview, name: str) -> str:
    """Return what a column of text holds if that is ids or dates, "" otherwise."""
    if found.columns and name in found.columns.dates:
        return "dates"
    cells = [cell.strip() for row in found.rows if (cell := row.get(name, "")).strip()]
    codes = all(cell.isascii() and not any(c.isspace() for c in cell) and any(map(str.isdigit, cell)) for cell in cells)
    return "ids" if len(cells) > 1 and codes else ""


def _likely_text(found: Preview, texts: Sequence[str]) -> str:
    """Return the column that is the text as far as Sonde can tell, "" if it is among `texts` or there is none."""
    detected = found.columns.text if found.columns else ()
    others = [name for name, kind in found.types.items() if name not in texts and kind == "text"]
    others = [name for name in others if not _why_no_text(found, name)]
    lengths = {name: sum(len(row.get(name, "")) for row in found.rows) for name in others}
    return max(others, key=lambda name: (name in detected, lengths[name]), default="")


def _types(found: Preview, names: Sequence[str], key: str) -> dict[str, str]:
    """Return the types that the visitor gives to columns in place of those that were found."""
    nearly = found.columns.nearly if found.columns else {}
    slips = [f"{name} ({value!r} is not {NAMED[kind]})" for name, (kind, value) in nearly.items() if name in names]
    if slips:
        st.caption(escape_markdown(f"Kept as text: {', '.join(slips)}"))
    spellings = found.columns.spellings if found.columns else {}
    for name, (one, other) in spellings.items():
        if name in names:
            st.caption(escape_markdown(f"{one} and {other} are one number in {name}; as text, they are two values"))
    changed = st.multiselect(
        "Change the type of", names, key=f"{key}-retyped", format_func=lambda name: f"{name} ({found.types[name]})",
        help="Values that do not fit the type are left out. Sonde says how many.",
    )  # fmt: skip
    types = {}
    for name in changed:
        likely = nearly[name][0] if name in nearly else found.types[name]
        types[name] = st.selectbox(
            f"Type of {escape_markdown(name)}", TYPES, index=TYPES.index(likely), key=f"{key}-type-{name}",
            accept_new_options=True, help="For dates, you can also enter the format, such as date:%d/%m/%Y.",
        ) or likely  # fmt: skip
    return types


def _place(names: list[str], name: str | None) -> int:
    return 1 + names.index(name) if name in names else 0


def role_words(options: ReadOptions) -> list[str]:
    """Return the options of `sonde index` that say the same."""
    said = [word for name in options.texts for word in ("--text", name)]
    said += ["--title", options.title] if options.title is not None else []
    said += ["--id", options.id] if options.id is not None else []
    said += [word for name, kind in options.type.items() for word in ("--type", f"{name}={kind}")]
    said += ["--encoding", options.encoding] if options.encoding is not None else []
    return said + [word for name in options.leave_out for word in ("--leave-out", name)]


def stamps(paths: Sequence[Path]) -> tuple[tuple[int, float], ...]:
    """Return what changes when files do."""
    return tuple((found.st_size, found.st_mtime) for found in (path.stat() for path in paths))


@st.cache_data(show_spinner="Looking at the first rows …", max_entries=20, ttl=600)
def look_at(
    paths: tuple[str, ...], stamp: tuple[tuple[int, float], ...], options: ReadOptions, id_hint: str | None = ""
) -> Preview:
    """Return a look at files, kept for as long as they do not change."""
    del stamp  # part of the key
    return preview([Path(path) for path in paths], options, id_hint)
