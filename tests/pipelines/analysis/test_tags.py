"""Tags, and filters that ask what runs say: `"cluster:RUN" = 3`, `"tag:NAME"`."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from cluster_corpus import collection
from command_line import Command, contents

from sonde.app.api import Collection
from sonde.indexer.errors import SondeError, UsageError, WriterBusyError
from sonde.indexer.store.lock import writer_lock


@pytest.fixture
def themed(tmp_path: Path) -> Collection:
    return collection(tmp_path / "themes.sonde")


def ids(themed: Collection, where: str) -> list[str]:
    return sorted(hit.id for hit in themed.search("apple", k=200, mode="dense", where=where, collapse=False))


def test_a_tag_is_a_condition_a_column_and_a_run(themed: Collection, tmp_path: Path) -> None:
    made = themed.tag("seen <b>", ids=["cars-1", "fruit-2"])
    assert made.to_dict() == {"tag": "seen <b>", "documents": 2, "changed": 2}
    assert ids(themed, '"tag:seen <b>"') == ["cars-1", "fruit-2"]
    assert len(ids(themed, 'NOT "tag:seen <b>"')) == len(themed) - 2
    row = {row["id"]: row for row in themed.rows()}
    assert row["cars-1"]["tag:seen <b>"] is True and row["cars-2"]["tag:seen <b>"] is False
    from sonde.indexer.store.export import write_export

    write_export(themed.stored, tmp_path / "out.parquet")
    column = pq.read_table(tmp_path / "out.parquet")["tag:seen <b>"]
    assert str(column.type) == "bool" and sum(column.to_pylist()) == 2
    themed.rename_run("seen <b>", "read", kind="tag")
    assert [(run.kind, run.name, run.documents) for run in themed.runs()] == [("tag", "read", 2)]
    assert ids(themed, '"tag:read"') == ["cars-1", "fruit-2"]
    themed.delete(["cars-1"])
    assert themed.runs()[0].documents == 1
    themed.delete_run("read")
    with pytest.raises(UsageError, match="there is no tag 'read': there are no tags"):
        ids(themed, '"tag:read"')


def test_documents_join_and_leave_a_tag(themed: Collection) -> None:
    themed.tag("t", ids=["cars-1"])
    assert themed.tag("t", ids=["cars-1", "cars-2"], change="add").to_dict() == {
        "tag": "t",
        "documents": 2,
        "changed": 1,
    }
    assert themed.tag("t", ids=["cars-1"], change="remove").documents == 1
    assert ids(themed, '"tag:t"') == ["cars-2"]
    assert themed.tag("t", where="\"tag:t\" OR id = 'fruit-1'", change="replace").documents == 2
    before = contents(themed.path)
    for change, message in (("new", "there is a tag 't' already"), ("remove", "would lose it: delete the tag")):
        with pytest.raises(UsageError, match=message):
            themed.tag("t", where='"tag:t"', change=change)  # type: ignore[arg-type]
    with pytest.raises(SondeError, match="no document with the id 'nobody': nothing was changed"):
        themed.tag("t", ids=["nobody"], change="add")
    with pytest.raises(SondeError, match="no tag 'other' to remove"):
        themed.tag("other", ids=["cars-1"], change="remove")
    with pytest.raises(UsageError, match="no document passes"):
        themed.tag("none", where="length < 0")
    with pytest.raises(UsageError, match="say which documents"):
        themed.tag("none")
    with pytest.raises(UsageError, match="is not a valid run name"):
        themed.tag(" x", ids=["cars-1"])
    assert contents(themed.path) == before
    with writer_lock(themed.path), pytest.raises(WriterBusyError, match="is being written"):
        themed.tag("busy", ids=["cars-1"])


def test_filters_ask_runs(themed: Collection) -> None:
    themed.cluster("k", k=3, refits=0)
    rows = {row["id"]: row for row in themed.rows()}
    cluster = rows["cars-1"]["cluster:k"]
    inside = sorted(id for id, row in rows.items() if row["cluster:k"] == cluster)
    assert 0 < len(inside) < len(rows)
    assert ids(themed, f'"cluster:k" = {cluster}') == inside
    assert ids(themed, f"\"cluster:k\" = {cluster} AND id LIKE 'cars-1%'") == [
        i for i in inside if i.startswith("cars-1")
    ]
    name = rows["cars-1"]["cluster:k name"].replace("'", "''")
    assert ids(themed, f"\"cluster:k name\" = '{name}'") == inside
    themed.label(["fruit", "cars"], engine="similarity", name="l", where=f'"cluster:k" = {cluster}')
    labelled = {row["id"]: row["label:l"] for row in themed.rows()}
    assert sorted(id for id, label in labelled.items() if label) == inside
    assert ids(themed, "\"label:l\" = 'cars'") == sorted(id for id, label in labelled.items() if label == "cars")
    assert ids(themed, '"label:l" IS NOT NULL') == inside
    themed.label(["fruit", "cars"], engine="similarity", name="m", multi_label=True, threshold=0.0)
    assert len(ids(themed, "'cars' IN \"label:m\"")) == len(rows)
    with pytest.raises(UsageError, match="cluster:k is an integer; 'high' is not a number"):
        ids(themed, "\"cluster:k\" = 'high'")


def test_a_part_of_a_collection_is_clustered_and_brought_up_to_date(themed: Collection) -> None:
    from cluster_corpus import made, rows

    themed.tag("some", where="id LIKE 'cars-%'")
    found = themed.cluster("within", k=2, refits=0, where='"tag:some"')
    size = len(ids(themed, '"tag:some"'))
    assert found.report["documents"] == size == sum(item.data["size"] for item in found.clusters)
    assert {row["id"].split("-")[0] for row in themed.rows() if row["cluster:within"] is not None} == {"cars"}
    assert themed.update_clusters("within").added == 0
    themed.cluster("by id", k=2, refits=0, where="id LIKE 'cars-%'")
    made([row for row in rows(42) if int(row["id"].split("-")[1]) >= 40], themed.path)
    assert themed.update_clusters("by id").added == 2
    with pytest.raises(SondeError, match="no document passes the filter 'length < 0'"):
        themed.cluster("none", where="length < 0")


def test_tags_from_the_command_line(themed: Collection, sonde: Command, tmp_path: Path) -> None:
    listed = tmp_path / "ids.txt"
    listed.write_text("cars-1\n\nfruit-1\n")
    assert sonde("tag", themed.path, "t", "cars-2", "--ids", listed).err == "t: 3 documents, 3 changed\n"
    assert (
        json.loads(sonde("tag", themed.path, "t", "--where", "id = 'cars-1'", "--remove", "--json").out)["changed"] == 1
    )
    sonde("tag", themed.path, "t", "cars-1", "--add", "--remove").refused("choose one of --add", code=2)
    ran = sonde("export", themed.path, "--where", '"tag:t"')
    assert [json.loads(line)["id"] for line in ran.out.splitlines()] == ["fruit-1", "cars-2"] or ran.out.count(
        "\n"
    ) == 2
    assert sonde("export", themed.path, "--to", tmp_path / "t.csv", "--where", '"tag:t"').err.startswith("2 documents")
    assert "tag" in sonde("runs", themed.path, "--kind", "tag").out
    (tmp_path / "bad.txt").write_bytes(b"\xff")
    sonde("tag", themed.path, "u", "--ids", tmp_path / "bad.txt").refused("it is not UTF-8")
    sonde("tag", themed.path, "u", "--ids", tmp_path / "absent.txt").refused("No such file")
