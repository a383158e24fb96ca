"""docs/interfaces.md: every capability is in the table, every name in it exists, and every gap has a reason."""

import re
from pathlib import Path
from typing import Any

import anyio
import pytest
import typer
from fake_encoder import FakeEncoder

import sonde
from sonde.app.api import Collection
from sonde.app.cli.main import app_for
from sonde.app.http.remote import OF_RUNS, READING, WRITING
from sonde.app.http.service import ROUTERS
from sonde.app.mcp import server_of
from sonde.app.ui.page import PAGES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "interfaces.md").read_text(encoding="utf-8")
HEAD, _, *ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("|")
]
COLUMNS = {name: [row[place] for row in ROWS] for place, name in enumerate(HEAD)}
PARTS_OF_OTHERS = {
    "beginnings", "choices_among", "coloring", "colorings", "contrast_with_rest", "counted_run", "documents_of",
    "documents_state", "export_numbered", "generation", "numbered", "numbers", "state", "tag_numbered",
    "uncounted_runs",
}  # fmt: skip
"""Methods by which the web UI draws its pages: document numbers, and what tells whether something changed."""
OF_THE_OBJECT = {"close", "device", "model_at_hand", "open", "path", "report"}
MADE_BY_HAND = {"classify", "map", "put", "rows", "to_pandas", "topics", "embed"}
"""Methods of a remote collection that are written out, besides those that are called by name."""


def named(cells: list[str]) -> set[str]:
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell) if not cell.startswith("no:")}


def commands() -> set[str]:
    """The visible commands: old names are not listed."""
    command: Any = typer.main.get_command(app_for())
    return {name for name, each in command.commands.items() if not each.hidden}


def test_python() -> None:
    methods = {name for name in dir(Collection) if not name.startswith("_")}
    assert named(COLUMNS["Python"]) - {"index"} == methods - PARTS_OF_OTHERS - OF_THE_OBJECT
    assert hasattr(sonde, "index")
    listed = [name for cell in COLUMNS["Python"] for name in re.findall(r"`([^`]+)`", cell)]
    assert len(listed) == len(set(listed)), "each method has one row"


def test_command_line() -> None:
    said = set(re.findall(r"`sonde (\w+)`", PAGE))
    assert named(COLUMNS["command line"]) | (said & commands()) == commands()
    assert said <= commands()


def test_http() -> None:
    served: list[Any] = [route for router in ROUTERS for route in router.routes]
    routes = {f"{method} {route.path.split('/{')[0]}" for route in served for method in route.methods}
    assert named(COLUMNS["HTTP"]) == routes - {
        "POST /read", "POST /write", "GET /health", "GET /ready", "GET /metrics", "GET /jobs",
    }  # fmt: skip
    remote = {*READING, *WRITING, *OF_RUNS} | MADE_BY_HAND
    for python, http in zip(COLUMNS["Python"], COLUMNS["HTTP"], strict=True):
        assert ("connect" in http) == bool(named([python]) & remote), python
    assert all(hasattr(sonde.RemoteCollection, name) for name in MADE_BY_HAND)


def test_assistants(tmp_path: Path) -> None:
    made = sonde.index(["one text"], tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    tools = anyio.run(server_of(made).list_tools)
    assert named(COLUMNS["MCP"]) == {tool.name for tool in tools}


def test_web_ui() -> None:
    titles = {title for title, _ in PAGES.values()}
    assert {cell for cell in COLUMNS["web UI"] if not cell.startswith("no:")} == titles


@pytest.mark.parametrize("column", ["Python", "command line", "HTTP", "MCP", "web UI"])
def test_a_gap_has_a_reason(column: str) -> None:
    for cell in COLUMNS[column]:
        assert re.fullmatch(r"no: \w.{8,}", cell) or not cell.startswith(("no", "–", "-")), cell
        assert cell
