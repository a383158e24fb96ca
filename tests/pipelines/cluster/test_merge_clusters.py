"""Clusters merged by hand, and documents of a run counted by a column."""

import json
from pathlib import Path

import pytest
from command_line import Command
from themes import collection, rows

from sonde.app.api import Collection
from sonde.indexer.errors import SondeError, UsageError
from sonde.pipelines.analysis.breakdown import breakdown
from sonde.pipelines.analysis.runs import members
from sonde.pipelines.cluster.clustering import clusters_near
from sonde.pipelines.cluster.update import merge_clusters


@pytest.fixture
def shop(tmp_path: Path) -> Collection:
    made = collection(tmp_path / "shop.sonde", rows())
    made.cluster("k", k=4, refits=0)
    return made


def numbers(shop: Collection) -> dict[str, int]:
    """The cluster of each theme, which hold nothing else."""
    found = {row["id"].split("-")[0]: row["cluster:k"] for row in shop.rows()}
    assert len({(row["id"].split("-")[0], row["cluster:k"]) for row in shop.rows()}) == len(found)
    return found


def test_merged_clusters_are_one_now_and_for_new_documents(shop: Collection) -> None:
    before = numbers(shop)
    assert sorted(before.values()) == [0, 1, 2, 3]
    one, other = before["parcel"], before["refund"]
    item = merge_clusters(shop.stored, [one, other], "k")
    assert (item.number, item.data["size"]) == (one, 60)
    assert {term.split()[0] for term, _ in item.data["terms"]} <= {"parcel", "refund"} | {
        word for row in rows() if row["theme"] in ("parcel", "refund") for word in row["text"].split()
    }
    assert numbers(shop) == before | {"refund": one}
    assert [found.number for found in shop.run("k").items] == sorted({*before.values()} - {other})
    assert sum(found.data["size"] for found in shop.run("k").items) == 120
    collection(shop.path, rows(32))
    assert shop.update_clusters("k").added == 8
    assert numbers(shop) == before | {"refund": one}
    third = before["screen"]
    merge_clusters(shop.stored, [third, one], "k")
    collection(shop.path, rows(34))
    shop.update_clusters("k")
    assert numbers(shop) == {"parcel": third, "refund": third, "screen": third, "battery": before["battery"]}


def test_a_name_given_by_hand_stays(shop: Collection) -> None:
    found = numbers(shop)
    shop.rename_run("k", "post", item=found["parcel"])
    assert merge_clusters(shop.stored, [found["parcel"], found["screen"]], "k").name == "post"


def test_a_name_given_by_hand_goes_to_the_cluster_that_replaces_it(shop: Collection) -> None:
    shop.rename_run("k", "post", item=numbers(shop)["parcel"])
    shop.cluster("k", k=4, refits=0, seed=7, replace=True)
    named = {item.name: item.number for item in shop.run("k").items}
    assert named["post"] == numbers(shop)["parcel"]
    shop.cluster("k", k=4, refits=0, seed=8, replace=True)
    assert {item.name: item.number for item in shop.run("k").items}["post"] == numbers(shop)["parcel"]
    merge_clusters(shop.stored, [numbers(shop)["parcel"], numbers(shop)["refund"]], "k")
    said: list[object] = []
    shop.cluster("k", k=4, refits=0, replace=True, progress=said.append)
    assert "no cluster has most of the documents of 'post' any more: that name is gone" in said
    assert "post" not in {item.name for item in shop.run("k").items}


def test_what_cannot_be_merged(shop: Collection) -> None:
    with pytest.raises(UsageError, match="merging needs the numbers of two clusters or more"):
        merge_clusters(shop.stored, [1, 1])
    with pytest.raises(SondeError, match="the run 'k' has no cluster 9: there are 0, 1, 2, 3"):
        merge_clusters(shop.stored, [1, 9])


def test_merging_from_the_command_line(shop: Collection, sonde: Command) -> None:
    found = numbers(shop)
    ran = sonde("runs", shop.path, "k", "--merge", f"{found['parcel']},{found['refund']}")
    assert ran.code == 0 and ran.said[-1].endswith("which has 60 documents now"), ran.err
    sonde("runs", shop.path, "k", "--merge", "a,b").refused("--merge is 'a,b'", code=2)
    shop.tag("t", ids=["parcel-1"])
    sonde("runs", shop.path, "t", "--merge", "0,1").refused("'t' is a tag run", code=2)


def test_clusters_nearest_to_a_query(shop: Collection) -> None:
    found = numbers(shop)
    (first, cosine), *rest = clusters_near(shop.stored, "screen pixel glass", "k")
    assert first.number == found["screen"] and cosine > max(other for _, other in rest)
    assert len(clusters_near(shop.stored, "screen", "k", k=2)) == 2
    with pytest.raises(UsageError, match="the query is empty"):
        clusters_near(shop.stored, " ")


def test_documents_by_period_and_class(shop: Collection, sonde: Command) -> None:
    found = numbers(shop)
    by_theme = breakdown(shop.stored, "k", "theme")
    assert by_theme.period is None and sorted(by_theme.parts) == sorted(found)
    assert {(row["number"], row["class"], row["documents"]) for row in by_theme.rows()} == {
        (number, theme, 30) for theme, number in found.items()
    }
    days = breakdown(shop.stored, "k", "day")
    assert (days.period, days.parts) == ("day", ("2024-01-10", "2024-02-11", "2024-03-12", "2024-04-13"))
    assert days.counts.sum() == 120 and days.counts[0].tolist() == [8, 8, 7, 7]
    stars = breakdown(shop.stored, "k", "stars")
    assert stars.parts == ("0", "1", "2", "3", "4") and stars.counts.tolist() == [[6] * 5] * 4
    with pytest.raises(UsageError, match="no metadata column 'colour': there are theme, day, stars"):
        breakdown(shop.stored, "k", "colour")
    header = sonde("runs", shop.path, "k", "--by", "theme").out.splitlines()[0]
    assert header.split() == ["documents", "theme", "number", "name"]
    lines = sonde("runs", shop.path, "k", "--by", "theme", "--json").out.splitlines()
    assert len(lines) == 4 and json.loads(lines[0])["documents"] == 30


def test_members_come_by_score(shop: Collection) -> None:
    number = numbers(shop)["parcel"]
    found = members(shop.stored, "k", number, "cluster", k=30)
    scores = [member.score or 0 for member in found]
    assert scores == sorted(scores, reverse=True) and {member.id.split("-")[0] for member in found} == {"parcel"}
    assert [m.id for m in members(shop.stored, "k", number, k=2, offset=3)] == [m.id for m in found[3:5]]
    with pytest.raises(UsageError, match="k is 0"):
        members(shop.stored, "k", number, k=0)
