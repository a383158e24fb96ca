"""Which column becomes the id of a table without being asked, and what happens to repeated ids."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Command

TICKETS = [{"Ticket": f"TCK-{n}", "Message": f"My card {n} was declined", "category": "App"} for n in range(12)]


def csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in (rows[0].keys(), *(r.values() for r in rows))))
    return path


@pytest.fixture
def tickets(tmp_path: Path) -> Path:
    """A table of 12 tickets whose codes are all different."""
    return csv(tmp_path / "tickets.csv", TICKETS)


def test_codes_become_the_ids_and_stay_the_ids(sonde: Command, tmp_path: Path, tickets: Path) -> None:
    target = tmp_path / "new.sonde"
    ran = sonde("index", tickets, "--to", target)
    said = "id: the column 'Ticket', because its values are all different; choose another with --id, or a hash"
    assert ran.code == 0 and ran.said[0].startswith(said)
    assert sonde("get", target, "TCK-3").out.startswith("TCK-3\ncategory: App\n")
    csv(tmp_path / "more.csv", [TICKETS[0], TICKETS[1] | {"Message": "Solved."}])
    ran = sonde("index", tmp_path / "more.csv", "--to", target, "--json")
    assert "id: Ticket (as before)" in ran.said[0]
    assert {key: json.loads(ran.out)[key] for key in ("added", "replaced", "unchanged")} == {
        "added": 0, "replaced": 1, "unchanged": 1,
    }  # fmt: skip


def test_no_id_is_taken_against_the_word_of_the_user(sonde: Command, tmp_path: Path, tickets: Path) -> None:
    ran = sonde("index", tickets, "--to", tmp_path / "new.sonde", "--id", "")
    assert "id: none, using a hash of the text" in ran.said[0]
    ran = sonde("index", tickets, "--to", tmp_path / "new.sonde")
    assert "id: none, using a hash of the text" in ran.said[0] and "12 unchanged" in ran.out


def test_codes_that_repeat_are_no_ids(sonde: Command, tmp_path: Path) -> None:
    rows = [{"Ticket": f"T-{n % 1_100}", "Message": f"Text {n} of many"} for n in range(1_200)]
    csv(tmp_path / "long.csv", rows)
    ran = sonde("index", tmp_path / "long.csv", "--to", tmp_path / "new.sonde", "--json")
    assert ran.code == 0 and json.loads(ran.out)["added"] == 1_200
    assert ran.said[0].endswith("Ticket looks like an id, but its values repeat after the first rows")
    assert "id: none" in ran.said[1]


@pytest.mark.parametrize(
    ("name", "values", "taken"),
    [
        ("order number", [4711, 4712, 4720], True),
        ("order number", [1, 2, 3], False),
        ("price", [4711, 4712, 4720], False),
    ],
)
def test_which_whole_numbers_are_ids(sonde: Command, tmp_path: Path, name: str, values: list[int], taken: bool) -> None:
    csv(tmp_path / "s.csv", [{name: value, "text": f"Some text about {n}"} for n, value in enumerate(values)])
    ran = sonde("index", tmp_path / "s.csv", "--to", tmp_path / "new.sonde")
    assert (f"id: {name} (unique codes)" in ran.err) == taken


@pytest.mark.parametrize(
    ("values", "taken"),
    [
        (["A-1", "A-2", "A-3"], True),
        (["A-1", "A-2"], False),
        (["A-1", "A-2", "A-2"], False),
        (["red", "green", "blue"], False),
        (["on 1 May", "on 2 May", "on 3 May"], False),
    ],
)
def test_what_is_a_code(sonde: Command, tmp_path: Path, values: list[str], taken: bool) -> None:
    csv(tmp_path / "s.csv", [{"mark": value, "text": f"Some text about {n}"} for n, value in enumerate(values)])
    ran = sonde("index", tmp_path / "s.csv", "--to", tmp_path / "new.sonde")
    assert ("id: mark (unique codes)" in ran.err) == taken


def test_the_same_row_twice_is_not_lost(sonde: Command, tmp_path: Path) -> None:
    csv(tmp_path / "s.csv", [TICKETS[0], TICKETS[1], TICKETS[0]])
    ran = sonde("index", tmp_path / "s.csv", "--to", tmp_path / "new.sonde", "--id", "Ticket")
    assert ran.code == 0 and "2 added, 1 with a repeated id (the last one was kept)" in ran.out


def test_a_column_named_id_that_repeats_is_refused_too(sonde: Command, tmp_path: Path) -> None:
    rows = [{"id": 1, "text": "One text"}, {"id": 1, "text": "Another text"}, {"id": 2, "text": "A third text"}]
    csv(tmp_path / "s.csv", rows)
    words = ("index", tmp_path / "s.csv", "--to", tmp_path / "new.sonde")
    sonde(*words).refused("the id column 'id' has repeated values, so 1 row of 3 would replace another row", code=2)
    assert not (tmp_path / "new.sonde").exists()
    assert "3 added" in sonde(*words, "--id", "").out


def test_the_last_of_repeated_ids_is_kept_if_asked(sonde: Command, tmp_path: Path) -> None:
    rows = [row | {"Ticket": "TCK-3"} if n in (7, 9) else row for n, row in enumerate(TICKETS)]
    words = ("index", csv(tmp_path / "repeated.csv", rows), "--to", tmp_path / "new.sonde", "--id", "Ticket", "--keep")
    sonde(*words, "first").refused("--keep is 'first': use last", code=2)
    ran = sonde(*words, "last")
    assert ran.code == 0 and "10 added, 2 with a repeated id (the last one was kept)" in ran.out


def test_a_row_that_is_left_out_repeats_no_id(sonde: Command, tmp_path: Path) -> None:
    rows = [{"id": f"r{n}", "text": f"Parcel {n} came late"} for n in range(5)] + [{"id": "r2", "text": ""}]
    ran = sonde("index", csv(tmp_path / "rows.csv", rows), "--to", tmp_path / "new.sonde", "--json")
    assert ran.code == 0
    assert (json.loads(ran.out)["added"], json.loads(ran.out)["skipped"]) == (5, 1)
    rows[-1]["text"] = "Another text"
    ran = sonde("index", csv(tmp_path / "rows.csv", rows), "--to", tmp_path / "other.sonde")
    assert ran.code == 2
    assert "1 row of 6 would replace another row with the same id; the first repeated ids are 'r2'" in ran.err
