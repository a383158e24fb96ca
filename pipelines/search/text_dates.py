"""Why a text column holds no dates, and what to do about it."""

from collections.abc import Iterable
from typing import Any

from ...indexer.errors import give_type
from ...indexer.readers.column_types import MOST_DATES, date_form, looks_like_a_date
from ...indexer.store.fields import first_day
from ...indexer.wording import shown_id


def why_no_dates(column: str, cells: Iterable[Any], lack: str = "is not a date") -> str:
    """Return the end of a sentence that begins with a text column: why it has no dates, and what to do if it should.

    It names the first value that is not a date. That may not be the first one that `first_day` cannot read: in a text
    column, a good date is stored as the file wrote it, such as 03.04.2026.

    Args:
        column: Its name.
        cells: Its values, without missing ones.
        lack: What is wrong with a value of a column that holds other things than dates.
    """
    dates, others, strange, odd = 0, 0, "", ""
    for cell in cells:
        text = str(cell).strip()
        if looks_like_a_date(text):
            dates, odd = dates + 1, odd or ("" if first_day(text) else text)
        else:
            others, strange = others + 1, strange or text
    if not dates + others:
        return "has no dates (it is empty)"
    if dates < MOST_DATES * (dates + others):
        return f"has no dates ({shown_id(strange)} {lack})"
    if others:
        return f"is text: {shown_id(strange)} is not a date; {give_type(column, 'date')}"
    if odd:
        why = f"is text: its dates are not all in one clear form ({odd!r})"
        return f"{why}; {give_type(column, date_form(odd))}"
    return f"is text; {give_type(column, 'date')}"
