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
    assert sonde("delete", themed.path, "fruit-1", "fruit-2").code == 0
    shown = json.loads(sonde("runs", themed.path, method, "--json").out)
    assert {item["number"]: item["size"] for item in shown["items"] if item["number"] >= 0} == {
        number: 40 if number == cluster_of["fruit"] else 42 for number in range(3)
    }
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


def test_texts_beyond_the_sample_are_assigned_everywhere(themed: Collection, sonde: Command) -> None:
    """One word for one thing; the key in JSON stays, because scripts read it."""
    ran = sonde("cluster", themed.path, "--method", "density", "--min-size", 8, "--sample", 100, "--refits", 0)
    number = json.loads(sonde("runs", "show", themed.path, "density", "--json").out)["report"]["carried"]
    assert 0 < number <= 20 and f"{number} more assigned by their neighbours" in ran.said[-1]
    shown = sonde("runs", "show", themed.path, "density").out
    assert f", assigned {number}, " in shown and "carried" not in shown


def test_a_merge_says_how_many_documents_moved(themed: Collection, sonde: Command) -> None:
    assert sonde("cluster", themed.path, "-k", 3, "--refits", 0).out.endswith(
        f"try: sonde runs show {themed.path} kmeans 0\n"
    )
    sizes = {item.number: item.data["size"] for item in themed.run("kmeans").items}
    ran = sonde("runs", "merge", themed.path, "kmeans", 0, 2, 0)
    said = f"{sizes[2]} documents moved to cluster 0 ("
    assert ran.code == 0 and ran.err.startswith(said) and f"has {sizes[0] + sizes[2]} documents now" in ran.err
    assert "stability" not in sonde("runs", "show", themed.path, "kmeans").out


def test_what_a_run_does_not_have_is_not_shown(themed: Collection, sonde: Command) -> None:
    assert sonde("check", themed.path).code == 0
    out = sonde("runs", "show", themed.path, "check").out
    assert "None" not in out and "number      size  name\n" in out
    assert sonde("tune", themed.path, "--reset").out == f"{themed.path}: nothing was stored\n"


def test_only_the_largest_groups_are_printed(themed: Collection, sonde: Command) -> None:
    ran = sonde("cluster", themed.path, "-k", 24, "--refits", 0)
    shown = f"sonde runs show {themed.path} kmeans"
    *lines, more, tried = ran.out.splitlines()
    assert (len(lines), more, tried) == (21, f"… and 4 more: {shown}", f"try: {shown} 0")
    assert len(sonde("cluster", themed.path, "-k", 24, "--name", "b", "--json").out.splitlines()) == 24
    made([{"id": f"{n}-{copy}", "text": f"A text {n}"} for n in range(22) for copy in range(2)], themed.path)
    ran = sonde("duplicates", themed.path, "--by", "exact")
    head, *lines, more = ran.out.splitlines()
    assert head.startswith("size  document") and sum(not line.startswith("      ") for line in lines) == 20
    assert lines[0].startswith("   4  fruit-0 · ")
    assert more == "… and 3 more groups: --json prints all, and --to FILE writes the documents to keep"
    assert len(sonde("duplicates", themed.path, "--by", "exact", "--json").out.splitlines()) == 23


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
    sonde("runs", "merge", themed.path, "kmeans", 0).refused("as in: sonde runs merge", "kmeans 3 7", code=2)
    sonde("runs", "split", themed.path, "kmeans", 1).refused(
        f"split is for topic runs; `sonde taxonomy {themed.path} --from kmeans` makes a taxonomy of it, and "
        f"`sonde taxonomy split {themed.path} 1 -k 2` splits a group", code=2,
    )  # fmt: skip
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
        (["--to", "x.txt"], ["must end in .xlsx, .csv, .parquet, .jsonl or .ris"], 2),
        (["--to", "nowhere/x.csv"], ["does not exist"], 1),
    ],
)
def test_mistakes_about_duplicates(
    sonde: Command, unchanged: Path, arguments: list[str], words: list[str], code: int
) -> None:
    sonde("duplicates", unchanged, *arguments).refused(*words, code=code)
