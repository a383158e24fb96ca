"""The web UI in a real Chromium: what a person does, from a file to labelled and exported texts.

No request may leave this machine, no page may show a traceback, and every address must bring back what it showed.
"""

# ruff: noqa: F811  (fixtures that are imported)

import csv
import re
import subprocess
import sys
from pathlib import Path

from in_chromium import activate, chromium  # noqa: F401  (fixture)
from playwright.sync_api import Page, expect
from served_ui import Server, Visit, server, visit, weightless  # noqa: F401  (fixtures)

SUBJECTS = {
    "kettle": ("the water boils slowly", "the lid leaks", "the handle gets hot"),
    "phone": ("the battery died after a week", "the screen broke", "the camera is blurred"),
    "fan": ("the noise keeps me awake", "the blades wobble", "the motor smells burnt"),
}


def reviews(path: Path) -> Path:
    """600 reviews of three products; the fourth row and three more have no text."""
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "title", "review", "stars", "day", "product"])
        for number in range(600):
            product = tuple(SUBJECTS)[number % 3]
            text = f"{product}: {SUBJECTS[product][number // 3 % 3]}, after {number} days of {product}"
            row = [
                number,
                "",
                "" if number % 150 == 3 else text,
                number % 5 + 1,
                f"2024-{number % 12 + 1:02}-15",
                product,
            ]
            writer.writerow(row)
    return path


def make_reviews(visit: Visit, tmp_path: Path) -> None:
    page = visit.go("/data")
    expect(page.get_by_text("No collection yet")).to_be_visible()
    page.locator("input[type=file]").set_input_files(reviews(tmp_path / "reviews.csv"))
    expect(page.get_by_text("600 rows", exact=True)).to_be_visible()
    expect(page.get_by_text(re.compile("about 600 documents in 600 passages"))).to_be_visible()
    visit.press("Index 600 rows")


def test_from_a_file_to_hits_and_back_by_the_address(visit: Visit, tmp_path: Path) -> None:
    make_reviews(visit, tmp_path)
    page = visit.page
    expect(page.get_by_text("596 documents added.")).to_be_visible()
    expect(page.get_by_text("4 rows skipped")).to_be_visible()
    visit.check()
    visit.go_by_menu("Search")
    visit.fill("Query", "battery died")
    first = page.locator(".sonde-text").filter(has_text="the battery died after a week").first
    expect(first).to_be_visible()
    expect(page.locator("mark.sonde").filter(has_text="battery").first).to_be_visible()
    activate(page.get_by_test_id("stExpander").filter(has_text="Filters").locator("summary"))
    visit.fill("Condition", "product = 'fan'")
    expect(page.get_by_text("product = 'fan'").first).to_be_visible()
    expect(page.locator(".sonde-text").filter(has_text="fan:").first).to_be_visible()
    expect(page.locator(".sonde-text").filter(has_text="phone:")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"q=battery(\+|%20)died"))
    visit.settle()
    address, hits = page.url, page.locator(".sonde-text").all_inner_texts()
    visit.check()
    page.goto("about:blank")
    page.goto(address)
    visit.settle()
    expect(page.locator(".sonde-text")).to_have_text(hits, use_inner_text=True)


def test_a_job_goes_on_without_its_page_and_without_the_server(visit: Visit, server: Server, tmp_path: Path) -> None:
    server.hold.touch()
    make_reviews(visit, tmp_path)
    page = visit.page
    card = page.get_by_test_id("stMarkdown").get_by_text("Create reviews", exact=True)
    expect(card).to_be_visible()  # the table of collections says it too
    expect(page.get_by_text(re.compile(r"embedding: 256 of"))).to_be_visible()
    page.reload()
    expect(page.get_by_text(re.compile(r"embedding: 256 of"))).to_be_visible()
    visit.check()
    page.goto("about:blank")
    server.stop()
    server.start()
    visit.go("/data")
    visit.press("Cancel")
    expect(page.get_by_text("Cancelled. What was committed stays.")).to_be_visible()
    server.hold.unlink()
    visit.press("Resume")
    expect(page.get_by_text(re.compile(r"34\d documents added, 25\d documents unchanged\."))).to_be_visible()
    assert list((server.shelf / ".sonde-jobs" / "uploads").iterdir()) == []


def lasso(page: Page) -> None:
    """Draw around the left half of the map and a little more."""
    activate(page.get_by_role("button", name="Lasso"))
    box = page.locator(".surface").bounding_box()
    assert box is not None
    corners = [(0.02, 0.02), (0.7, 0.02), (0.7, 0.5), (0.7, 0.98), (0.02, 0.98), (0.02, 0.5), (0.02, 0.03)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=8)
    page.mouse.up()


def test_the_loop_on_the_map(visit: Visit, server: Server, tmp_path: Path) -> None:
    """Select points, cluster just them, label them, export them, and find all of it again by the address."""
    index(server, tmp_path)
    visit.go("/map?collection=reviews")
    page = visit.page
    expect(page.get_by_text("No map yet")).to_be_visible()
    visit.press("Draw the map")
    expect(page.locator("[data-drawn='596']")).to_be_visible()
    visit.settle()
    lasso(page)
    selected = page.get_by_role("heading", name=re.compile(r"^\d+ of 596 documents$"))
    expect(selected).to_be_visible()
    visit.settle()
    count = int(selected.inner_text().split()[0])
    assert 100 < count < 590
    expect(page).to_have_url(re.compile("area="))
    visit.check()
    activate(visit.open("Cluster", page.get_by_role("button", name="Cluster just these")))
    expect(page.get_by_text("Clusters of a selection: done")).to_be_visible()
    visit.settle()
    visit.open("Label", page.get_by_label("Labels, one per line")).fill("kettle\nphone\nfan")
    page.get_by_label("Labels, one per line").press("Control+Enter")
    expect(page.get_by_role("button", name="Label just these")).to_be_enabled()
    visit.press("Label just these")
    expect(page.get_by_text("Labels of a selection: done")).to_be_visible()
    visit.settle()
    expect(selected).to_have_text(f"{count} of 596 documents")
    export = visit.open("Export", page.get_by_role("button", name=f"Download {count} documents"))
    with page.expect_download() as download:
        activate(export)
    with download.value.path().open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == count
    assert {row["label:selection"] for row in rows} <= {"kettle", "phone", "fan"}
    assert len({row["cluster:selection"] for row in rows} - {""}) > 1
    visit.check()
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(selected).to_have_text(f"{count} of 596 documents")
    for title in ("Clusters and topics", "Labels", "Explain", "Evaluate", "Data", "Search"):
        visit.go_by_menu(title)
        visit.check()


def index(server: Server, tmp_path: Path) -> None:
    """Index the reviews without the UI."""
    environment = weightless()
    script = "from sonde.app.cli.main import main; main()"
    command = [sys.executable, "-c", script, "index", str(reviews(tmp_path / "reviews.csv"))]
    to = str(server.shelf / "reviews.sonde")
    subprocess.run([*command, "--to", to, "--device", "cpu"], env=environment, check=True, capture_output=True)
