"""Groups by the periods of a column: topics and the runs of every other kind."""

import re
from pathlib import Path

import pytest
from extras import needs
from themes import collection, rows

from sonde.app.api import Collection
from sonde.indexer.errors import UsageError
from sonde.indexer.store.fields import Period

pytestmark = needs("bertopic")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """Topics and clusters of 120 documents: their day, its month, two of the months, and texts that name the time."""
    made = [
        {**row, "code": f"c-{row['id']}", "month": row["day"][:7],
         "two": row["day"][:7] if row["day"] < "2024-03" else "",
         "slip": "soon" if row["id"] == rows()[9]["id"] else f"{row['day'][8:10]}.{row['day'][5:7]}.2026",
         "when": row["day"][: 10 if row["day"] > "2024-04" else 7] if row["day"] > "2024-02" or row["stars"] else None}
        for row in rows()
    ]  # fmt: skip
    opened = collection(tmp_path_factory.mktemp("over") / "shop.sonde", made)
    opened.topics(min_size=10)
    opened.cluster("k", k=4, refits=0)
    return opened


def test_a_column_of_months_is_counted_by_month(shop: Collection) -> None:
    assert (shop.fields()["month"], shop.fields()["two"]) == ("date", "date")
    over = shop.topic_run().over("two")
    assert over.parts == ("2024-01", "2024-02")
    assert over.totals.tolist() == [32, 32]
    clusters = shop.breakdown("k", "month")
    assert (clusters.period, clusters.parts) == ("month", ("2024-01", "2024-02", "2024-03", "2024-04"))
    assert clusters.totals.tolist() == [32, 32, 28, 28]
    assert shop.breakdown("k", "day").period == "day"


@pytest.mark.parametrize(
    ("period", "parts"),
    [
        ("year", ["2024"]),
        ("quarter", ["2024-Q1", "2024-Q2"]),
        ("month", ["2024-01", "2024-02", "2024-03", "2024-04"]),
        ("week", ["2024-W02", "2024-W06", "2024-W11", "2024-W15"]),
        ("day", ["2024-01-10", "2024-02-11", "2024-03-12", "2024-04-13"]),
    ],
)
def test_topics_and_counts_have_the_same_periods(shop: Collection, period: Period, parts: list[str]) -> None:
    over = shop.topic_run().over("day", period)
    assert [part for part, total in zip(over.parts, over.totals, strict=True) if total] == parts
    counted = shop.count_by("day", period=period).values
    assert [part for part, _ in counted] == parts
    assert [number for _, number in counted] == [total for total in over.totals.tolist() if total]


def test_plots_go_to_files_that_are_named_by_text(shop: Collection, tmp_path: Path) -> None:
    topics = shop.topic_run()
    topics.draw_tree(str(tmp_path / "tree.svg"))
    topics.over("day").draw(str(tmp_path / "over.svg"), "Topics")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["over.svg", "tree.svg"]


def test_texts_that_name_months_or_days_are_in_order_of_time(shop: Collection) -> None:
    assert shop.fields()["when"] == "text"
    expected = (("2024-01", 24), ("2024-02", 32), ("2024-03", 28), ("2024-04-13", 28))
    assert shop.count_by("when").values == expected
    by = shop.topic_run().by("when")
    assert tuple(zip(by.parts, by.totals.tolist(), strict=True)) == expected
    assert by.timed and not shop.topic_run().by("theme").timed
    clusters = shop.breakdown("k", "when")
    assert tuple(zip(clusters.parts, clusters.totals.tolist(), strict=True)) == expected


def test_documents_without_a_value_are_counted(shop: Collection) -> None:
    """Counts by a column did not say how many documents they left out."""
    lacking, high = (sum(1 for _ in shop.rows(where=f"two IS NULL AND {more}")) for more in ("stars >= 0", "stars > 2"))
    high_without = shop.breakdown("k", "two", where="stars > 2").without
    assert (shop.breakdown("k", "two").without, high_without) == (lacking, high)
    assert shop.breakdown("k", "theme").without == shop.breakdown("k", "two").only(0).without == 0
    assert 0 < high < lacking


def test_a_text_column_of_dates_names_the_value_that_keeps_it_text(shop: Collection) -> None:
    """The message quoted the first value, a good date."""
    said = (
        "column 'slip' is text: 'soon' is not a date; index the file again with a type, such as "
        "read=sonde.ReadOptions(type={'slip': 'date'}); columns"
    )
    with pytest.raises(UsageError, match=f"^{re.escape(said)} of dates here: day, month, two$"):
        shop.topic_run().over("slip")
    with pytest.raises(UsageError, match=r"^column 'theme' has no dates \('parcel' is not a date\); columns of dates"):
        shop.topic_run().over("theme", "month")


def test_rare_values_are_one_part_that_says_how_many_they_are(shop: Collection) -> None:
    """The number is of values, which the name says: beside bars of documents, a bare one looked like documents."""
    found = shop.breakdown("k", "code")
    assert (len(found.parts), found.parts[-1], found.totals[-1]) == (30, "others (91 values)", 91)


@pytest.mark.parametrize(
    ("method", "arguments", "said"),
    [
        ("merge", (1,), "numbers is 1: give a list"),
        ("merge", ("01",), "numbers is '01': give a list"),
        ("merge", ([0, "1"],), "numbers is '1': give a whole number"),
        ("reduce", ("three",), "count is 'three': give a whole number"),
        ("documents", (0, "5"), "k is '5': give a whole number"),
        ("topic", ({},), "number is {}: give a whole number"),
        ("by", (["day"],), r"column is \['day'\]: give a string"),
    ],
)
def test_arguments_of_topics_are_checked(
    shop: Collection, method: str, arguments: tuple[object, ...], said: str
) -> None:
    """They ended in a TypeError and, over HTTP, in an answer of 500."""
    with pytest.raises(UsageError, match=f"^{said}$"):
        getattr(shop.topic_run(), method)(*arguments)
