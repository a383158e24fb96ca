"""Twenty questions that an assistant answers from the tools alone; the answers are those of a loop over the rows."""

from collections import Counter
from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import pytest
from mcp_client import call
from scipy.stats import chi2_contingency

from sonde.app.api import Collection, index
from sonde.app.mcp import server_of
from sonde.pipelines.analysis.statistics import changed_beyond_chance

THEMES = {
    "parcel": ("The courier lost my parcel {n}.", "My parcel is late, courier {n}.", "No parcel, no courier {n}."),
    "battery": ("The phone battery is empty {n}.", "My phone battery gets hot {n}.", "Bad phone battery {n}."),
    "refund": ("The refund was not paid {n}.", "I want a refund, not paid {n}.", "My refund was paid twice {n}."),
}
PLANS = ("free", "basic", "pro")


def tickets() -> list[dict[str, Any]]:
    """Return tickets of six months, in which refunds grow."""
    rows: list[dict[str, Any]] = []
    for month in range(1, 7):
        for theme, texts in THEMES.items():
            for number in range(4 + 2 * (month - 1) * (theme == "refund")):
                rows.append({
                    "id": f"{theme}-{month}-{number}",
                    "text": texts[number % 3].format(n=10 * month + number),
                    "theme": theme,
                    "day": date(2026, month, 1 + number),
                    "plan": PLANS[(number + month) % 3],
                    "stars": 1 + (number + month) % 5,
                })  # fmt: skip
    return rows


ROWS = tickets()
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def assistant(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    path = tmp_path_factory.mktemp("assistant") / "tickets.sonde"
    collection = index(ROWS, path, id="id", text="text", model="static")
    collection.cluster("groups", k=3)
    collection.tag("angry", where="stars = 1")
    server = server_of(Collection.open(path))
    return lambda tool, **arguments: call(server, tool, **arguments)


def rows(**wanted: Any) -> list[dict[str, Any]]:
    return [row for row in ROWS if all(row[name] == value for name, value in wanted.items())]


def values(found: Any) -> dict[Any, int]:
    return {each["value"]: each["documents"] for each in found["values"]}


def theme_of(assistant: Ask, number: int) -> str:
    """Return the theme of a cluster, as its most typical document has it."""
    [first] = assistant("members", run="groups", number=number, k=1)["documents"]
    return first["id"].split("-")[0]


def test_what_is_there(assistant: Ask) -> None:
    [found] = assistant("collections")["collections"]
    assert (found["name"], found["documents"], found["threshold"]) == ("tickets", len(ROWS), None)
    assert found["columns"] == {"theme": "text", "day": "date", "plan": "text", "stars": "integer"}
    assert {(run["kind"], run["name"]) for run in found["runs"]} == {("cluster", "groups"), ("tag", "angry")}


def test_how_many(assistant: Ask) -> None:
    assert assistant("count") == {"documents": len(ROWS)}
    assert assistant("count", where="plan = 'pro'")["documents"] == len(rows(plan="pro"))
    both = assistant("count", where="plan = 'pro' AND stars <= 2")["documents"]
    assert both == len([row for row in rows(plan="pro") if row["stars"] <= 2])
    assert assistant("count", where='"tag:angry" = true')["documents"] == len(rows(stars=1))


def test_how_they_are_distributed(assistant: Ask) -> None:
    assert values(assistant("count", by="plan")) == Counter(row["plan"] for row in ROWS)
    stars = assistant("count", by="stars", where="theme = 'refund'")
    mean = sum(row["stars"] for row in rows(theme="refund")) / len(rows(theme="refund"))
    assert stars["mean"] == round(mean, 4)
    assert (stars["low"], stars["high"]) == (1, 5)
    months = assistant("count", by="day", period="month", where="theme = 'refund'")
    assert [each["value"] for each in months["values"]] == [f"2026-0{month}" for month in range(1, 7)]
    assert [each["documents"] for each in months["values"]] == [4, 6, 8, 10, 12, 14]
    assert assistant("count", by="day")["low"] == "2026-01-01"
    worst = max(values(assistant("count", by="plan", where="stars = 1")).items(), key=lambda pair: pair[1])
    assert worst[1] == max(Counter(row["plan"] for row in rows(stars=1)).values())


def test_a_table_of_two_columns_and_means(assistant: Ask) -> None:
    found = assistant("count", by=["theme", "plan"], mean_of="stars")
    assert (found["of"], found["by"], set(found["head"])) == ("theme", "plan", set(PLANS))
    for row in found["rows"]:
        cells = [rows(theme=row["value"], plan=plan) for plan in found["head"]]
        assert row["documents"] == [len(cell) for cell in cells]
        assert row["means"] == [round(sum(each["stars"] for each in cell) / len(cell), 4) for cell in cells]
    days = assistant("count", by=["day", "theme"], where="stars >= 1")
    assert days["period"] == "month" and [row["value"] for row in days["rows"]] == [f"2026-0{n}" for n in range(1, 7)]
    refund = days["head"].index("refund")
    assert [row["documents"][refund] for row in days["rows"]] == [4, 6, 8, 10, 12, 14]
    plans = assistant("count", by="plan", mean_of="stars")["values"]
    pro = next(each for each in plans if each["value"] == "pro")
    assert pro["mean"] == round(sum(row["stars"] for row in rows(plan="pro")) / len(rows(plan="pro")), 4)
    assert assistant("count", mean_of="stars", where="plan = 'pro'")["mean"] == pro["mean"]


def test_a_change_beyond_chance_is_certain() -> None:
    early, late = np.array([1_000, 1_000, 30, 2]), np.array([1_400, 1_000, 28, 12])
    for item, sure in enumerate(changed_beyond_chance(early, late)):
        others = early.sum() - early[item], late.sum() - late[item]
        p = float(chi2_contingency([[early[item], late[item]], others], correction=False)[1])  # type: ignore[arg-type]
        assert sure == (p * 4 < 0.05 and item != 3), "the last one is too rare for the test"
    assert changed_beyond_chance(early, late) == [True, True, False, False]
    assert changed_beyond_chance(np.array([0, 0]), np.array([5, 5])) == [False, False]


def test_what_the_groups_are_and_which_grew(assistant: Ask) -> None:
    listed = assistant("list_clusters")
    assert listed["run"] == "groups" and sum(item["documents"] for item in listed["items"]) == len(ROWS)
    themes = {theme_of(assistant, item["number"]): item for item in listed["items"]}
    assert set(themes) == set(THEMES), "each group is one theme"
    assert max(themes, key=lambda name: themes[name]["documents"]) == "refund"
    trends = assistant("trends", run="groups", by="day")
    first = trends["items"][0]
    assert theme_of(assistant, first["number"]) == "refund" and first["change"] > 0.1
    assert all(item["change"] < 0 for item in trends["items"][1:])
    assert sum(sum(item["documents"].values()) for item in trends["items"]) == len(ROWS)
    some = assistant("trends", run="groups", by="day", where="plan = 'pro'")
    assert sum(sum(item["documents"].values()) for item in some["items"]) == len(rows(plan="pro"))
    assert some["total"] == Counter(f"{row['day']:%Y-%m-%d}" for row in rows(plan="pro"))
    said = assistant("trends", run="theme", by="day")
    assert said.endswith('not a run: `count` with by ["theme", "day"] counts its values over time')


def test_what_tells_parts_apart(assistant: Ask) -> None:
    found = assistant("compare", first="theme = 'refund'", second="theme = 'battery'")
    refund, battery = found["parts"]
    assert refund["documents"] == len(rows(theme="refund")) and battery["documents"] == len(rows(theme="battery"))
    assert "refund" in refund["terms"] and "battery" in battery["terms"]
    assert "battery" not in refund["terms"]


def test_what_is_said(assistant: Ask) -> None:
    hits = assistant("search", query="courier lost the package", k=3)["hits"]
    assert {hit["id"].split("-")[0] for hit in hits} == {"parcel"}
    filtered = assistant("search", query="charged twice", where="plan = 'pro'", k=5)["hits"]
    assert filtered and {hit["metadata"]["plan"] for hit in filtered} == {"pro"}
    assert assistant("search", query="charged twice", mode="dense", threshold=0.99)["hits"] == []
    near = assistant("similar", id="battery-1-0", k=3)["hits"]
    assert {hit["id"].split("-")[0] for hit in near} == {"battery"} and "battery-1-0" not in [hit["id"] for hit in near]
    assert assistant("get_document", id="parcel-1-0")["metadata"]["day"] == "2026-01-01"
    answer = assistant("ask", question="was my refund paid?", threshold=0.3)
    assert answer["id"].startswith("refund") and answer["similarity"] > 0.3
    assert assistant("ask", question="how do I bake bread?", threshold=0.8)["answer"] is None
