"""Numbers of documents on the pages Labels and Clusters after documents have changed: they agree with each other."""
# ruff: noqa: F811  (fixtures that are imported)

import re

import pytest
from themes import rows
from ui_overview import shop, topics
from ui_pages import Pages, pages, shown  # noqa: F401  (fixture)

from sonde.app.api import Collection

GONE, LEFT = 40, 80


@pytest.fixture
def made(pages: Pages) -> Collection:
    """120 documents of four groups, of which 30 have changed and 10 were deleted since."""
    made = shop(pages)
    made.cluster("k", k=4, refits=0)
    made.label(["parcel", "battery", "screen", "refund"])
    topics(made)
    changed = [row | {"text": f"{row['text']} again"} for row in rows() if row["theme"] == "parcel"]
    pages.collection("shop", changed)
    made.delete([row["id"] for row in rows() if row["theme"] == "refund"][:10])
    return made


def counts(page: object) -> list[int]:
    """Return the numbers of documents that have a share beside them."""
    return [int(number) for number in re.findall(r"(\d+)(?: documents?)? · \d+\.\d%", shown(page))]  # type: ignore[arg-type]


def shares(page: object) -> float:
    return sum(float(share) for share in re.findall(r" · (\d+\.\d)%", shown(page)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "run"),
    [("labels", "labels"), ("clusters", "cluster:k"), ("clusters", "topic:topics")],
)
def test_the_groups_of_a_run_sum_to_its_documents(pages: Pages, made: Collection, name: str, run: str) -> None:
    page = pages.open(name, collection="shop", run=run)
    assert f"Documents {LEFT}" in shown(page)
    assert sum(counts(page)) == LEFT
    assert abs(shares(page) - 100) < 0.3


def test_documents_without_a_label_are_counted_too(pages: Pages) -> None:
    made = shop(pages)
    made.label(["parcel", "battery"], multi_label=True, threshold=0.999999)
    made.delete(["refund-0"])
    page = pages.open("labels", collection="shop")
    assert "Documents 119" in shown(page) and "none of these119 · 100.0%" in shown(page)


@pytest.mark.parametrize("run", ["cluster:k", "topic:topics"])
def test_groups_near_a_query_have_the_same_numbers(pages: Pages, made: Collection, run: str) -> None:
    page = pages.open("clusters", collection="shop", run=run, q="battery")
    assert "cosine" in shown(page)
    assert sum(counts(page)) == LEFT


def test_a_download_has_as_many_documents_as_its_button_says(pages: Pages, made: Collection) -> None:
    kept = {item.number: item.data["size"] for item in made.run("labels").items}
    assert kept == {number: made.item_sizes(made.run("labels").run).get(number, 0) for number in kept}
    page = pages.open("labels", collection="shop")
    largest = max(kept.values())
    labels = [each.proto.label for each in page.get("download_button") if "document" in each.proto.label]
    assert labels == [f"Download {largest} documents as {kind}" for kind in ("Excel", "CSV", "JSONL")]
    for found in (made.counted_run(made.run("k").run), made.newest_run("cluster")):
        assert sum(item.data["size"] for item in found.items) == found.run.documents == LEFT
