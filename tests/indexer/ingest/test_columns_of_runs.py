"""An export that is read back: the columns of runs do not become metadata, which would hide the runs."""

from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder

from sonde import ReadOptions
from sonde.app.api import Collection, index

ROWS = [{"id": f"d{n}", "text": f"text {n} about {'tea' if n % 2 else 'coffee'}", "stars": n % 5} for n in range(20)]
LEFT_OUT = "columns of runs of {} are left out of the metadata: "


def run(folder: Path, source: Any, **given: Any) -> list[str]:
    """Index a source; return what was said of columns of runs."""
    encoder: Any = FakeEncoder()
    said: list[str] = []
    index(source, folder, encoder=encoder, progress=lambda each: said.append(str(each)), **given).close()
    return [each for each in said if "columns of runs" in each]


@pytest.fixture(params=[None, 2])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A collection with clusters, labels and a tag, whole or in shards."""
    folder = tmp_path / "t.sonde"
    assert run(folder, ROWS, shards=request.param) == []
    with Collection.open(folder, encoder=FakeEncoder()) as collection:  # type: ignore[arg-type]
        collection.cluster(k=2, name="two", seed=1)
        collection.tag("kept", ids=["d1", "d2"])
    return folder


@pytest.mark.parametrize("form", ["csv", "jsonl", "xlsx"])
def test_an_export_is_read_back(folder: Path, form: str) -> None:
    path = folder.parent / f"back.{form}"
    with Collection.open(folder) as collection:
        collection.export(path)
        before = collection.count_by("cluster:two").values
        collection.rename_run("two", "late texts", kind="cluster", item=0)
    said = run(folder, path)
    names = "cluster:two, cluster:two name, tag:kept"
    advice = ". To keep such a column, rename it in the source"
    assert said == [f"note: {path}: {LEFT_OUT.format(folder)}{names}{advice}"]
    with Collection.open(folder) as collection:
        assert list(collection.info().fields) == ["stars"]
        assert collection.count_by("cluster:two").values == before
        assert collection.count_by("tag:kept").values == ((False, 18), (True, 2))
        assert collection.matching("\"cluster:two name\" = 'late texts'")[0] > 0
        assert len(collection) == 20


def test_a_data_frame_is_put_back(folder: Path) -> None:
    said: list[str] = []
    with Collection.open(folder, encoder=FakeEncoder()) as collection:  # type: ignore[arg-type]
        frame = collection.to_pandas()
        assert {"cluster:two", "tag:kept"} <= set(frame.columns)
        frame["stars"] += 1
        report = collection.put(frame, progress=lambda each: said.append(str(each)))
        assert (report.added, report.replaced, report.embedded) == (0, 20, 0)
        assert list(collection.info().fields) == ["stars"]
        assert collection.count_by("tag:kept").values == ((False, 18), (True, 2))
        assert collection.matching('"cluster:two" >= 0')[0] == 20
    names = "cluster:two, cluster:two name, tag:kept"
    assert [each for each in said if "runs" in each] == [f"note: columns of runs are left out of the metadata: {names}"]


def test_a_column_without_such_a_run_stays_metadata(folder: Path) -> None:
    rows = [row | {"topic:gone": 1, "cluster:two": 5} for row in ROWS]
    assert len(run(folder, rows)) == 1
    with Collection.open(folder) as collection:
        assert list(collection.info().fields) == ["stars", "topic:gone"]


def test_metadata_of_the_same_name_from_before_stays(tmp_path: Path) -> None:
    """A later run of the same source must not take the places of the user's own from the documents."""
    rows = [row | {"tag:kept": "a"} for row in ROWS]
    run(tmp_path / "t.sonde", rows)
    with Collection.open(tmp_path / "t.sonde") as collection:
        collection.tag("kept", ids=["d1"])
    assert run(tmp_path / "t.sonde", [row | {"stars": 9} for row in rows]) == []
    with Collection.open(tmp_path / "t.sonde") as collection:
        assert collection.get("d1").metadata == {"stars": 9, "tag:kept": "a"}


def test_no_role_is_found_for_such_a_column_but_it_can_be_chosen(folder: Path) -> None:
    with Collection.open(folder) as collection:
        collection.rename_run("two", "my text", kind="cluster")
    rows = [{"id": f"n{n}", "cluster:my text": f"a long text number {n}", "words": f"words {n}"} for n in range(5)]
    run(folder, rows)
    with Collection.open(folder) as collection:
        assert collection.get("n1").text == "words 1"
    assert run(folder, rows, read=ReadOptions(text="cluster:my text")) == []
    with Collection.open(folder) as collection:
        assert collection.get("n1").text == "a long text number 1"
