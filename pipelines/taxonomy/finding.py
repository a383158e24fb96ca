"""Which group a person means by a number, a name or a path."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from unicodedata import combining, normalize

from ...indexer.errors import SondeError, UsageError
from ...indexer.store.catalog import Catalog
from ...indexer.store.collection import StoredCollection
from ...indexer.store.kinds import TAXONOMY
from ...indexer.store.runs import find_run, list_runs
from ...indexer.wording import on_one_line
from .groups import DIGITS, LONGEST_NAME, Groups, path
from .stored import load

_NOT_HERE = "the taxonomy has no group"
"""How the message for a group that does not exist begins."""
LISTED = 5
"""Groups of the same name that an error lists."""


def find_group(groups: Groups, given: int | str) -> int:
    """Return the number of a group that is given by its number, its name, or its path ("Shipping > Late").

    Upper and lower case are the same where no group has exactly this name.

    Raises:
        SondeError: There is no such group, or several have this name.
        UsageError: A truth value is given.
    """
    if isinstance(given, bool):
        raise UsageError(f"groups has {given}: give numbers, names or paths", code="wrong-type", field="groups")
    text = str(given).strip()
    if isinstance(given, int) or text.removeprefix("-").isdecimal():
        if len(text) <= DIGITS and int(text) in groups:
            return int(text)
        said = f"{_NOT_HERE} {on_one_line(text)}"
        raise SondeError(said, code="not-found", field="groups", value=given)
    found = [number for number in groups if text in _names(groups, number)]
    found = found or [number for number in groups if _folded(text) in map(_folded, _names(groups, number))]
    if len(found) == 1:
        return found[0]
    if found:
        raise _ambiguous(groups, given, sorted(found))
    said = f"{_NOT_HERE} {on_one_line(text)!r}{_nearest(groups, text)}"
    raise SondeError(said, code="not-found", field="groups", value=given)


def _names(groups: Groups, number: int) -> tuple[str, str]:
    return groups[number].name, path(groups, number)


def _nearest(groups: Groups, text: str) -> str:
    """Return the question whether the nearest name was meant, with or without accents; "" if no name is near."""
    plain = {_plain(group.name): group.name for group in reversed([*groups.values()])}
    close = get_close_matches(_plain(text[:LONGEST_NAME]), plain, 1)
    return f": did you mean {plain[close[0]]!r}?" if close else ""


def _folded(name: str) -> str:
    return normalize("NFC", name).casefold()


def _plain(name: str) -> str:
    """Return a name in small letters without accents."""
    return "".join(sign for sign in normalize("NFKD", name.casefold()) if not combining(sign))


def _ambiguous(groups: Groups, given: int | str, found: Sequence[int]) -> UsageError:
    """Return the error for a name that several groups have, with the number and the path of each."""
    shown = ", ".join(f"{one} ({_where(groups, one)})" for one in found[:LISTED])
    more = f" and {len(found) - LISTED:,} more" if len(found) > LISTED else ""
    said = f"several groups are named {on_one_line(str(given))!r}: {shown}{more}; give a number or a path"
    return UsageError(said, code="ambiguous", field="groups", value=given, alternatives=map(str, found))


def _where(groups: Groups, number: int) -> str:
    return "at the top" if groups[number].parent is None else on_one_line(path(groups, number))


def find_groups(groups: Groups, given: Sequence[int | str]) -> list[int]:
    """Return the numbers of several groups, each once, in their order.

    Raises:
        SondeError: There is no such group.
    """
    return list(dict.fromkeys(find_group(groups, one) for one in given))


@contextmanager
def told_where_groups_are(collection: StoredCollection, name: str | None) -> Iterator[None]:
    """Let the error for a group that does not exist name its taxonomy and the other taxonomies that have the group.

    Args:
        collection: Where the taxonomies are.
        name: The taxonomy in which groups are looked up; the newest one if None.

    Raises:
        SondeError: The error with the longer message. If there is one taxonomy, the error is unchanged.
    """
    try:
        yield
    except SondeError as error:
        if not str(error).startswith(_NOT_HERE):
            raise
        with collection.view() as view:
            names = [run.name for run in list_runs(view.catalog, TAXONOMY, count=False) if run.complete]
            if len(names) < 2:
                raise
            chosen = find_run(view.catalog, TAXONOMY, name).name
            holding = [other for other in names if other != chosen and _has(view.catalog, other, error.value)]
        said = str(error).replace("the taxonomy", f"the taxonomy {chosen!r}", 1)
        said += f"; such a group is in {' and '.join(map(repr, holding))}" if holding else ""
        raise SondeError(said, code=error.code, field=error.field, value=error.value) from None


def _has(catalog: Catalog, name: str, group: object) -> bool:
    """Return whether a taxonomy has a group of this number, name or path."""
    groups = load(catalog, name, documents=False).state.groups
    try:
        find_group(groups, group if isinstance(group, int) else str(group))
    except SondeError as error:
        return error.code == "ambiguous"
    return True
