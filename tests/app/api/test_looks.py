"""What pages look at, compared with the collection read in full: documents, filters, numbers, runs, states."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.errors import SondeError, UsageError

ENCODER: Any = FakeEncoder()
WORDS = ("parcel", "battery", "refund")
ROWS = [{"id": f"r{n}", "text": f"{WORDS[n % 3]} {n}", "stars": n} for n in range(12)]


@pytest.fixture
def made(tmp_path: Path) -> Collection:
    return index(ROWS, tmp_path / "shop.sonde", id="id", encoder=ENCODER)


def test_a_document_by_its_id(made: Collection) -> None:
    found = made.get("r4")
    assert (found.id, found.text, found.metadata) == ("r4", "battery 4", {"stars": 4})
    with pytest.raises(SondeError, match=r"there is no document with the id 'r99'$"):
        made.get("r99")


def test_documents_come_in_the_order_of_the_collection(made: Collection) -> None:
    order = [row["id"] for row in made.rows()]
    asked = ["r7", "nobody", "r2", "r11"]
    assert list(made.documents(asked)) == [id for id in order if id in asked]
    numbers = made.numbers(asked)
    assert [document.id for document in made.numbered(sorted(numbers.values()))] == list(made.documents(asked))
    assert {each.id: each.text for each in made.beginnings(list(numbers.values()), 3).values()} == {
        "r2": "ref", "r7": "bat", "r11": "ref",
    }  # fmt: skip


def test_what_passes_a_filter(made: Collection) -> None:
    passing = [row["id"] for row in made.rows() if row["stars"] >= 9]
    count, first = made.matching("stars >= 9", k=2, length=4)
    assert (count, [each.id for each in first]) == (3, passing[:2])
    assert [each.text for each in first] == [made.get(id).text[:4] for id in passing[:2]]
    with pytest.raises(UsageError, match="prices"):
        made.matching("prices > 1")


def test_a_state_changes_with_runs_and_that_of_documents_does_not(made: Collection, tmp_path: Path) -> None:
    state, documents = made.state(), made.documents_state()
    made.tag("some", where="stars < 3")
    assert made.state() != state and made.documents_state() == documents
    index(ROWS[:-1], tmp_path / "shop.sonde", id="id", sync=True, encoder=ENCODER)
    assert made.documents_state()[:-1] == documents[:-1] and made.generation > documents[-1]
    assert made.counts() == (11, 11)


def test_runs_without_counts_and_counted(made: Collection, tmp_path: Path) -> None:
    made.tag("some", where="stars < 3")
    made.delete("r0")
    [run] = made.uncounted_runs("tag")
    assert (run.documents, made.counted_run(run).run.documents) == (3, 2)
    assert made.counted_run(run).run == made.runs("tag")[0]
    assert made.documents_of(run).tolist() == sorted(made.numbers(["r1", "r2"]).values())
    with pytest.raises(UsageError, match="'tags' is not a kind of run"):
        made.uncounted_runs("tags")


def test_a_selection_is_tagged_and_written(made: Collection, tmp_path: Path) -> None:
    docs = np.array(sorted(made.numbers(["r1", "r5"]).values()))
    assert made.tag_numbered("two", docs).documents == 2
    assert made.colorings() == ["tag:two", "stars"]
    assert made.coloring(docs, "tag:two")[0].codes.tolist() == [0, 0]
    assert made.export_numbered(docs, tmp_path / "two.csv") == 2
    with (tmp_path / "two.csv").open(newline="") as stream:
        assert [row["id"] for row in csv.DictReader(stream)] == ["r1", "r5"]
    assert made.export_numbered(np.array([docs[1], 10_000, docs[0], docs[1]]), tmp_path / "more.csv") == 2
    assert (tmp_path / "more.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
