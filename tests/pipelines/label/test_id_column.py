"""Names in files about a collection: the column of ids as the collection calls it, and labels as the run does."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from fake_encoder import FakeEncoder

from sonde import Collection, UsageError, index
from sonde.app.api.functions import read_corrections
from sonde.pipelines.label.examples import read_labelled, read_truth
from sonde.pipelines.tune.queries import clicked

ROWS = [("T-1", "apple pie", "fruit"), ("T-2", "river bank", "water"), ("T-3", "apple tart", "fruit")]


def table(path: Path, header: str, rows: list[tuple[str, str]]) -> Path:
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([header.split(","), *rows])
    return path


@pytest.fixture(params=[None, 2])
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Collection:
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([("Ticket No", "message", "kind"), *ROWS])
    encoder: Any = FakeEncoder()
    return index(path, tmp_path / "shop.sonde", encoder=encoder, shards=request.param, id="Ticket No")


@pytest.mark.parametrize("header", ["Ticket No,label", "ticket no,label", "id,label"])
def test_labels_by_the_column_of_the_collection(shop: Collection, sonde: Command, tmp_path: Path, header: str) -> None:
    shop.label(["fruit", "water"], engine="similarity", threshold=0.0)
    given = table(tmp_path / "given.csv", header, [(id, kind) for id, _, kind in ROWS])
    assert shop.evaluate_labels(truth=given).documents == len(ROWS)
    assert shop.label_by_examples(given, name="few").documents == len(ROWS)
    ran = sonde("correct", shop.path, "--from", given)
    assert ran.said[0] == "few: 3 documents corrected, 3 corrections kept"


def test_the_column_of_the_collection_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "both.csv"
    path.write_text("id,ticket,label,text,query\nx,T-1,a,one,q\ny,T-2,b,,r\n")
    assert read_truth(path, "ticket") == read_corrections(path, "ticket") == {"T-1": ["a"], "T-2": ["b"]}
    assert [each.id for each in read_labelled(path, "ticket")] == [None, "T-2"]
    assert read_truth(path, "absent") == read_corrections(path) == {"x": ["a"], "y": ["b"]}
    path.write_text("ticket,query\n" + "".join(f"T-{n},question {n}\n" for n in range(60)))
    assert clicked(path, "ticket").truth[1] == {"T-1": 1}
    with pytest.raises(UsageError, match="must have the columns query and id, not ticket, query"):
        clicked(path)


def test_the_message_names_the_columns_and_not_a_row(tmp_path: Path) -> None:
    """It said "row 1 needs an id and a label" of a row that had both, the id under another name."""
    (path := tmp_path / "corr.csv").write_text("number,label\nT-1,fruit\n")
    reads: list[tuple[Callable[[Path, str | None], Any], str, str]] = [
        (read_corrections, "id", " and label"),
        (read_truth, "id", " and label"),
        (read_labelled, "label, and text or id", ""),
    ]
    for read, one, two in reads:
        for own, more in ((None, ""), ("id", ""), ("Ticket No", r" \(or 'Ticket No'\)")):
            with pytest.raises(
                UsageError, match=f"corr.csv must have the columns {one}{more}{two}, not number, label$"
            ):
                read(path, own)
    (tmp_path / "corr.jsonl").write_text('{"number": 1, "label": "x"}\n')
    with pytest.raises(UsageError, match=r"^row 1 of .*corr.jsonl needs id and label$"):
        read_corrections(tmp_path / "corr.jsonl")
    path.write_text("id,label\nT-1\n")
    with pytest.raises(UsageError, match=r"^row 1 of .*corr.csv gives 'T-1' an empty label"):
        read_corrections(path)


def test_classes_are_named_as_the_run_names_them(tmp_path: Path) -> None:
    texts = [{"id": str(n), "text": f"{'apple' if n % 2 else 'river'} {n}", "kind": ("APPLE", "river")[n % 2 - 1]}
             for n in range(8)]  # fmt: skip
    made = index(texts, tmp_path / "c.sonde", id="id", text="text", encoder=FakeEncoder())  # type: ignore[arg-type]
    made.label(["Apple", "River"], name="kinds")
    found = made.evaluate_labels("kinds", "kind")
    assert [each.label for each in found.classes] == ["Apple", "River"]
    assert {name for one, two, _ in found.confusion for name in (one, two)} == {"Apple", "River"}
