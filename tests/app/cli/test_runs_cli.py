"""Clusterings and other runs from the command line: `sonde cluster`, its updates, and `sonde runs`."""

import json
from pathlib import Path

import pytest
from cluster_corpus import collection, made, rows
from command_line import Command, contents, problems

from sonde.app.api import Collection


@pytest.fixture
def themed(tmp_path: Path) -> Collection:
    return collection(tmp_path / "themes.sonde")


def exported(sonde: Command, themed: Collection, tmp_path: Path) -> dict[str, dict[str, object]]:
    target = tmp_path / "export.jsonl"
    assert sonde("export", themed.path, "--to", target).code == 0
    return {row["id"]: row for row in map(json.loads, target.read_text().splitlines())}


@pytest.mark.parametrize("method", ["kmeans", "density"])
def test_new_documents_join_the_clusters_of_their_theme(
    themed: Collection, sonde: Command, tmp_path: Path, method: str
) -> None:
    own = ["-k", 3] if method == "kmeans" else ["--method", "density", "--min-size", 10, "--outliers", "nearest"]
    ran = sonde("cluster", themed.path, *own, "--refits", 0)
    assert ran.code == 0 and f"{method}: 3 clusters · 120 documents" in ran.said[-1], ran.err
    before = exported(sonde, themed, tmp_path)
    cluster_of = {theme: before[f"{theme}-1"][f"cluster:{method}"] for theme in ("fruit", "cars", "music")}
    assert {row[f"cluster:{method}"] for row in before.values()} == set(cluster_of.values()) == {0, 1, 2}
    new = [row for row in rows(42) if int(row["id"].split("-")[1]) >= 40]
    made(new, themed.path)
    ran = sonde("cluster", themed.path, "--update", method)
    assert ran.out == f"{method}: 6 documents added, 0 outliers among them\n"
    after = exported(sonde, themed, tmp_path)
    assert {id: row[f"cluster:{method}"] for id, row in after.items() if id in before} == {
        id: row[f"cluster:{method}"] for id, row in before.items()
    }
    assert all(after[row["id"]][f"cluster:{method}"] == cluster_of[row["theme"]] for row in new)
    again = sonde("cluster", themed.path, "--update", method, "--json")
    assert json.loads(again.out) == {"run": method, "added": 0, "outliers": 0, "documents": 126}
    shown = json.loads(sonde("runs", themed.path, method, "--json").out)
    assert [item["size"] for item in shown["items"] if item["number"] >= 0] == [42, 42, 42]
    assert problems(themed.path) == []


def test_runs_are_listed_renamed_and_deleted(themed: Collection, sonde: Command) -> None:
    assert "no runs" in sonde("runs", themed.path).err
    for name in ("a", "b"):
        lines = [
            json.loads(line)
            for line in sonde("cluster", themed.path, "-k", 3, "--name", name, "--json").out.splitlines()
        ]
        assert [(line["run"], line["number"], line["size"]) for line in lines] == [(name, n, 40) for n in range(3)]
        assert sorted(line["name"].split(",")[0].split()[0] for line in lines) == ["cars", "fruit", "music"]
    assert sonde("runs", themed.path, "a", "--item", 0, "--rename", "first").code == 0
    assert "  first\n" in sonde("runs", themed.path, "a").out
    assert (
        sonde("runs", themed.path, "a", "--rename", "c").code == sonde("runs", themed.path, "b", "--delete").code == 0
    )
    (line,) = sonde("runs", themed.path, "--json").out.splitlines()
    assert (json.loads(line)["name"], json.loads(line)["documents"]) == ("c", 120)


def test_mistakes_leave_the_collection_as_it_was(themed: Collection, sonde: Command) -> None:
    assert sonde("cluster", themed.path, "-k", 3, "--refits", 0).code == 0
    before = contents(themed.path)
    for arguments, words, code in (
        (["-k", "three"], ["'three'", "auto"], 2),
        (["-k", 0], ["k is 0"], 2),
        (["-k", 500, "--name", "x"], ["k is 500", "only 117 documents"], 2),
        (["--method", "bogus"], ["'bogus'", "kmeans, density"], 2),
        (["--method", "density", "-k", 3], ["leave out -k"], 2),
        (["--outliers", "bogus"], ["'bogus'"], 2),
        (["--update", "nope"], ["'nope'", "kmeans"], 1),
        (["--update", "kmeans", "--name", "x"], ["leave out --name"], 2),
        (["--update", "kmeans", "-k", 5], ["leave out --method, -k"], 2),
    ):
        sonde("cluster", themed.path, *arguments).refused(*words, code=code)
    for arguments, words, code in (
        (["nope"], ["'nope'", "kmeans (cluster)"], 1),
        (["--delete"], ["say which run"], 2),
        (["--kind", "bogus"], ["'bogus'", "cluster, topic, coarse"], 2),
        (["kmeans", "--item", 9, "--rename", "x"], ["no cluster 9"], 1),
        (["kmeans", "--item", 1], ["--item needs --rename"], 2),
        (["kmeans", "--delete", "--rename", "x"], ["--delete cannot be combined with --rename or --item"], 2),
        (["kmeans", "--rename", ""], ["name"], 2),
    ):
        sonde("runs", themed.path, *arguments).refused(*words, code=code)
    assert contents(themed.path) == before


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["--by", "exact,bogus"], ["'bogus'", "exact, near, meaning"], 2),
        (["--by", ","], ["exact, near, meaning"], 2),
        (["--near", "0"], ["near is 0"], 2),
        (["--meaning", "1.5"], ["meaning is 1.5"], 2),
        (["--keep", "oldest"], ["'oldest'", "first, longest, newest"], 2),
        (["--keep", "newest", "--date", "nope"], ["'nope'", "none"], 2),
        (["--date", "day"], ["--keep newest"], 2),
        (["--pairs", "-1"], ["pairs is -1"], 2),
        (["--to", "x.txt"], ["must end in .parquet, .csv or .jsonl"], 2),
        (["--to", "nowhere/x.csv"], ["does not exist"], 1),
    ],
)
def test_mistakes_about_duplicates(
    sonde: Command, unchanged: Path, arguments: list[str], words: list[str], code: int
) -> None:
    sonde("duplicates", unchanged, *arguments).refused(*words, code=code)
