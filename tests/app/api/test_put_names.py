"""`put` and `index` from Python: the id under its own name, and what a run did unasked."""

from pathlib import Path

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.errors import UsageError

ROWS = [{"ticket": "T1", "text": "a late parcel", "stars": 1}, {"ticket": "T2", "text": "a dead battery", "stars": 2}]


@pytest.fixture(params=[None, 2])
def tickets(tmp_path: Path, request: pytest.FixtureRequest) -> Collection:
    made = index(ROWS, tmp_path / "tickets.sonde", id="ticket", encoder=FakeEncoder(), shards=request.param)  # type: ignore[arg-type]
    assert made.id_column == "ticket"
    return made


@pytest.mark.parametrize(
    "given",
    [
        {"ticket": "T3", "text": "a broken lamp", "stars": 3},
        {"id": "T3", "text": "a broken lamp", "stars": 3},
        {"id": "T3", "ticket": "T3", "text": "a broken lamp", "stars": 3},
    ],
)
def test_put_takes_the_column_of_the_ids(tickets: Collection, given: dict[str, object]) -> None:
    """A column `ticket` beside the ids hid them from filters."""
    tickets.put([given])
    assert [(row["id"], row["stars"]) for row in tickets.rows()] == [("T1", 1), ("T2", 2), ("T3", 3)]
    assert list(tickets.fields()) == ["stars"]
    assert [hit.id for hit in tickets.search("lamp", where="ticket = 'T3'")] == ["T3"]


def test_put_keeps_a_column_that_says_something_else(tickets: Collection) -> None:
    tickets.put([{"id": "T3", "ticket": "older", "text": "a broken lamp"}])
    assert tickets.get("T3").metadata == {"ticket": "older"}


def test_without_any_id_the_message_says_what_is_needed(tickets: Collection) -> None:
    with pytest.raises(UsageError, match="needs an id and a text"):
        tickets.put([{"tickets": "T3", "text": "a broken lamp"}])


def test_the_report_holds_the_notes(tmp_path: Path) -> None:
    """Without `progress`, nobody learned that values were lost."""
    folder, fake = tmp_path / "c.sonde", FakeEncoder()
    rows = [{"id": "a", "text": "one", "x": 1, "y": 3}, {"id": "b", "text": "two", "x": 2, "y": 4}]
    first = index(rows, folder, id="id", encoder=fake)  # type: ignore[arg-type]
    assert first.report is not None and first.report.notes == ()
    second = index([{"id": "a", "text": "one", "x": "many"}], folder, id="id", encoder=fake)  # type: ignore[arg-type]
    assert second.report is not None
    emptied, changed = sorted(second.report.notes, key=lambda note: note.startswith("x "))
    assert "has no values for y, so 1 document that it replaced lost theirs" in emptied, emptied
    assert changed.startswith("x changes from type integer to text, because"), changed
