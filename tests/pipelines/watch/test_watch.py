"""`watch`: what is new is found in a collection, named, and kept as a run like any other."""

import datetime
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from cluster_corpus import THEMES, made
from command_line import Command, command, inject
from fake_encoder import FakeEncoder

from sonde.app.api import Collection
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.store.kinds import WATCH
from sonde.pipelines.watch.watch import EXAMPLES

OLD, NEW = datetime.date(2026, 10, 5), datetime.date(2026, 11, 5)
REFUND = ("voucher", "money", "return")


def texts(theme: str, numbers: range, day: datetime.date) -> list[dict[str, Any]]:
    """Documents of a theme, each with words of its own."""
    chance, found = random.Random(f"{theme}{numbers}"), []
    for number in numbers:
        words = [theme] * 4 + chance.choices(THEMES.get(theme, REFUND), k=2) + [f"{theme}x{number}"]
        found.append({"id": f"{theme}-{number}", "text": " ".join(words), "day": day})
    return found


def documents() -> list[dict[str, Any]]:
    """Old texts of three themes; new ones in which cars grew, music is gone, and refunds appeared."""
    old = [row for theme in THEMES for row in texts(theme, range(150), OLD)]
    new = [*texts("cars", range(150, 215), NEW), *texts("fruit", range(150, 175), NEW)]
    return [*old, *new, *texts("refund", range(10), NEW)]


@pytest.fixture
def shop(tmp_path: Path) -> Collection:
    return made(documents(), tmp_path / "shop.sonde")


def test_what_grew_shrank_and_appeared_is_found_and_kept(shop: Collection) -> None:
    found = shop.watch("2026-11-01")
    assert (found.new, found.old, found.groups, found.notes) == (100, 450, None, ())
    [appeared] = [change for change in found.changes if change.kind == "new"]
    assert (appeared.new, appeared.old, appeared.p) == (10, 0, 0.001)
    assert "refund" in appeared.name
    assert {example.id for example in appeared.examples} == {f"refund-{number}" for number in range(10)}
    assert all(example.text.startswith("refund refund") for example in appeared.examples)
    details = shop.run("watch")
    assert details.run.kind is WATCH
    assert details.run.report["found"] == len(found.changes) == len(details.items)
    assert [item.name for item in details.items] == [change.title for change in found.changes]
    rows = {row["id"]: row["watch:watch"] for row in shop.rows()}
    assert rows["refund-3"][0] == appeared.title
    count, passing = shop.matching(f"'{appeared.title}' IN \"watch:watch\"", k=20)
    assert (count, {each.id for each in passing}) == (10, {example.id for example in appeared.examples})


def test_groups_of_a_run_that_knows_only_old_documents_are_compared(tmp_path: Path) -> None:
    rows = documents()
    shop = made([row for row in rows if row["day"] == OLD], tmp_path / "shop.sonde")
    shop.cluster("before", k=3)
    names = {item.data["representatives"][0].split("-")[0]: item.name for item in shop.run("before").items}
    shop.put([{"id": row["id"], "text": row["text"], "metadata": {"day": row["day"]}} for row in rows[450:]])
    found = shop.watch("before")
    assert (found.groups, found.new, found.old) == ("before", 100, 450)
    moved = {change.title: change for change in found.changes if change.kind != "new"}
    assert set(moved) == {f"grew: {names['cars']}", f"shrank: {names['music']}"}
    cars, music = moved[f"grew: {names['cars']}"], moved[f"shrank: {names['music']}"]
    assert (cars.old, music.old, cars.p, music.p) == (150, 150, 0.001, 0.001)
    assert cars.new >= 65
    assert music.new <= 10
    assert {example.id.split("-")[0] for example in music.examples} == {"music"}
    assert all(int(example.id.split("-")[1]) >= 150 for example in cars.examples if example.id.startswith("cars"))
    assert len(cars.examples) == EXAMPLES
    shop.watch("before", "later", run="before")
    assert [item.data for item in shop.run("later").items] == [item.data for item in shop.run("watch").items]


def test_new_texts_like_the_old_raise_no_alarm(tmp_path: Path) -> None:
    rows = [row for theme in THEMES for row in texts(theme, range(150), OLD)]
    chance = random.Random(0)
    for row in chance.sample(rows, 90):
        row["day"] = NEW
    shop = made(rows, tmp_path / "shop.sonde")
    found = shop.watch("2026-11-01")
    assert (found.changes, found.new, found.old) == ((), 90, 360)
    assert shop.run("watch").items == []
    assert "No significant change." in found.html()


def test_the_order_of_the_documents_changes_nothing(shop: Collection, tmp_path: Path) -> None:
    turned = made(documents()[::-1], tmp_path / "turned.sonde")
    first, second = (each.watch("2026-11-01") for each in (shop, turned))
    one, two = ({change.kind: change for change in found.changes if change.kind == "new"} for found in (first, second))
    assert {example.id for example in one["new"].examples} == {example.id for example in two["new"].examples}
    assert (one["new"].new_share, one["new"].p) == (two["new"].new_share, two["new"].p)


def test_a_watch_keeps_what_is_taken_and_gives_the_same_again(shop: Collection) -> None:
    first = shop.watch("2026-11-01")
    with pytest.raises(UsageError, match="the watch run 'watch' already exists"):
        shop.watch("2026-11-01")
    assert shop.watch("2026-11-01", replace=True).to_dict() == first.to_dict()
    assert len(shop.runs(WATCH)) == 1


@pytest.mark.parametrize(
    ("since", "options", "error", "message"),
    [
        ("", {}, UsageError, "say what is new: since takes a date such as 2026-11-01, or the name of a run"),
        ("2026-01-01", {}, SondeError, "there are no old documents to compare since '2026-01-01': give a later date"),
        ("october", {}, SondeError, "there is no run 'october' in this collection"),
        ("october", {"date": "day"}, UsageError, "since 'october' is not a date, which date needs"),
        ("2026-11-01", {"date": "week"}, UsageError, "the column 'week' does not exist: .* there is only day"),
        ("2026-11-01", {"run": "none"}, SondeError, "there is no run 'none' in this collection"),
        ("2030-01-01", {"run": "none"}, SondeError, "there is no run 'none' in this collection"),
        ("2026-11-01", {"alarms": 0.0}, UsageError, "alarms is 0.0: give a chance from 0.001 to 0.5"),
        ("2026-11-01", {"seed": -1}, UsageError, "seed is -1: give a whole number from 0"),
    ],
)
def test_a_watch_that_cannot_be_made_changes_nothing(
    shop: Collection, since: str, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        shop.watch(since, **options)
    assert shop.runs() == []


def test_runs_and_columns_that_cannot_tell_are_refused(shop: Collection) -> None:
    shop.tag("mine", ids=["cars-1"])
    with pytest.raises(UsageError, match="the tag run 'mine' does not know every document: give a cluster, topic"):
        shop.watch("mine")
    with pytest.raises(
        UsageError, match="the tag run 'mine' has no groups to compare: give a cluster, topic or taxonomy run"
    ):
        shop.watch("2026-11-01", run="mine")
    shop.cluster("all", k=2)
    found = shop.watch("all", name="quiet")
    assert (found.new, found.old, found.changes, found.groups) == (0, 550, (), None)
    shop.put([{"id": "other", "text": "cars", "metadata": {"sent": NEW}}])
    with pytest.raises(UsageError, match=r"several columns hold dates: choose one with date \(day, sent\)"):
        shop.watch("2026-11-01")
    assert shop.watch("2026-11-01", date="day").notes == ("1 document without a date in 'day' left out",)


def test_texts_are_escaped_on_the_page(shop: Collection) -> None:
    shop.put(
        [{"id": f"<b>{n}", "text": f"<script>alert</script> odd thing{n}", "metadata": {"day": NEW}} for n in range(12)]
    )
    page = shop.watch("2026-11-01").html()
    assert "&lt;script&gt;alert&lt;/script&gt; odd thing" in page
    assert "<script" not in page
    assert "<b>" not in page
    assert re.findall(r"(?:src|href)=", page) == []


@pytest.fixture
def sonde(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    inject(monkeypatch, FakeEncoder())
    return command(capsys, monkeypatch)


def test_the_command_prints_writes_and_alerts(shop: Collection, sonde: Command, tmp_path: Path) -> None:
    page = tmp_path / "new.html"
    shown = sonde("watch", shop.path, "--since", "2026-11-01", "-k", 1, "--html", page)
    assert shown.code == 0
    new = r"    10 new documents \([\d.]+% of the new texts\), 0 old texts among them · p 0.001"
    assert re.search(rf"^new: .*refund.*\n{new}\n {{8}}refund-", shown.out)
    assert re.search(r"watch: \d changes? · 100 new documents and 450 old", shown.said[-1])
    assert page.read_text().startswith("<!doctype html>")
    again = sonde("watch", shop.path, "--since", "2026-11-01", "--json", "--alert")
    assert again.code == 3
    assert json.loads(again.out)["changes"][0]["kind"] == "new"
    assert "a watch run 'watch' already exists, so the new run is named 'watch-2'" in again.err
    rare = [f"--{name}" for name in ("alarms", "alert")]
    assert sonde("watch", shop.path, "--since", "2026-11-01", rare[0], "0.001", rare[1], "--name", "sure").code == 3


def test_without_a_change_an_alert_ends_with_0(sonde: Command, tmp_path: Path) -> None:
    rows = [row for theme in THEMES for row in texts(theme, range(60), OLD)]
    for row in rows[::5]:
        row["day"] = NEW
    shop = made(rows, tmp_path / "shop.sonde")
    quiet = sonde("watch", shop.path, "--since", "2026-11-01", "--alert")
    assert (quiet.code, quiet.out) == (0, "no significant change\n")


def test_without_new_documents_the_command_is_one_line_and_ends_with_0(shop: Collection, sonde: Command) -> None:
    quiet = sonde("watch", shop.path, "--since", "2027-01-01", "--alert")
    assert (quiet.code, quiet.out, quiet.err) == (0, "no new documents since '2027-01-01'\n", "")
    assert shop.run("watch", WATCH).items == []
    found = json.loads(sonde("watch", shop.path, "--since", "2027-01-01", "--json", "--name", "again").out)
    assert (found["new"], found["old"], found["changes"]) == (0, 550, [])


def test_bad_usage_of_the_command_is_one_line(shop: Collection, sonde: Command, tmp_path: Path) -> None:
    sonde("watch", shop.path, "--since", "2026-11-01", "--alarms", "2").refused("--alarms is 2.0", code=2)
    page = tmp_path / "new.pdf"
    sonde("watch", shop.path, "--since", "2026-11-01", "--html", page).refused("must end in .html", code=2)
    sonde("watch", shop.path, "--since", "octobre").refused("there is no run 'octobre'")
    assert shop.runs() == []


def test_midnight_is_the_day(shop: Collection) -> None:
    """A date column without times stores days, and a day begins at midnight."""
    parts = [shop.watch(since, name=since.replace(":", "-")) for since in ("2026-11-05", "2026-11-05T00:00", "2026-11")]
    assert [(found.new, found.old) for found in parts] == [(100, 450)] * 3
    assert len({tuple(change.title for change in found.changes) for found in parts}) == 1
    assert parts[0].changes
    assert shop.watch("2026-11-05T12:00").new == 0


@pytest.mark.parametrize("since", ["2026-11-31", "01/11/2026", "2026-11-1", "1.11.2026"])
def test_what_looks_like_a_date_is_told_from_a_run(shop: Collection, since: str) -> None:
    with pytest.raises(UsageError, match=rf"'{re.escape(since)}' is not a date: write it as 2026-11-01"):
        shop.watch(since)


def _kept(shop: Collection) -> list[dict[str, Any]]:
    """Make a taxonomy of clusters of the old documents; return the new ones, which are not in the collection yet."""
    shop.cluster("before", k=3)
    shop.make_taxonomy("before")
    rows = [row for row in documents() if row["day"] == NEW]
    return [{"id": row["id"], "text": row["text"], "metadata": {"day": row["day"]}} for row in rows]


def test_groups_of_a_taxonomy_are_compared_as_people_keep_them(tmp_path: Path) -> None:
    shop = made([row for row in documents() if row["day"] == OLD], tmp_path / "shop.sonde")
    shop.put(_kept(shop))
    shop.update_taxonomy()
    shop.edit_taxonomy("add", name="sold")
    shop.edit_taxonomy("move", ids=[f"cars-{n}" for n in range(150, 215)], to="sold")
    told: list[Any] = []
    found = shop.watch("2026-11-01", run="taxonomy", progress=told.append)
    moved = {change.title: (change.new, change.old) for change in found.changes if change.kind != "new"}
    assert moved["grew: sold"] == (65, 0)
    assert not any("cars" in title and title.startswith("grew") for title in moved)
    assert not any("does not know" in str(each) for each in told)


def test_what_a_taxonomy_does_not_know_is_new(tmp_path: Path) -> None:
    shop = made([row for row in documents() if row["day"] == OLD], tmp_path / "shop.sonde")
    shop.put(_kept(shop))
    told: list[Any] = []
    found = shop.watch("taxonomy", progress=told.append)
    assert (found.new, found.old, found.groups) == (100, 450, "taxonomy")
    assert any(change.kind == "grew" and change.new >= 65 for change in found.changes)
    [said] = [each for each in told if isinstance(each, str) and "does not know" in each]
    assert said == (
        "the taxonomy 'taxonomy' does not know 100 documents yet, so similar documents decide the group of each: "
        "to compare its groups as they are, run `sonde taxonomy update` first"
    )


def test_a_text_column_of_dates_is_told_how_to_become_dates(tmp_path: Path) -> None:
    """The messages said to index the texts with a date column, which they had."""
    rows = [{**row, "day": f"{row['day']:%d/%m/%Y}", "theme": row["id"][:5]} for row in documents()]
    shop = made(rows, tmp_path / "text.sonde")
    way = r"its dates are not all in one clear form \('05/10/2026'\); index the file again with a type, such as "
    way += r"read=sonde.ReadOptions\(type={'day': 'date:%d/%m/%Y'}\)"
    cases: list[tuple[Any, str]] = [
        ({}, f"^no column holds dates: 'day' is text: {way}, or give since the name of a run$"),
        ({"date": "day"}, f"^the column 'day' is text: {way}$"),
        ({"date": "theme"}, r"^the column 'theme' has no dates \('\w+-?\d?' is not a date\)$"),
    ]
    for given, message in cases:
        with pytest.raises(UsageError, match=message):
            shop.watch("2026-11-01", **given)
