"""The table of all benchmarks: medians and spread over runs, and what failed stands in it."""

import runpy
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(str(FOLDER))
    return runpy.run_path(str(FOLDER / "report.py"))


def test_a_figure_has_its_median_and_its_spread(report: dict[str, Any]) -> None:
    outputs = [
        "Sonde 1,200 docs/s, ratio 1.5\nall-MiniLM-L6-v2\nonly once 3\n",
        "Sonde 1,000 docs/s, ratio 1.5\nall-MiniLM-L6-v2\n",
        "Sonde 1,300 docs/s, ratio 1.5\nall-MiniLM-L6-v2\n",
    ]
    assert report["summed_up"](outputs) == ["Sonde 1200 (1000 to 1300) docs/s, ratio 1.5"]


def test_rows_that_look_alike_stay_apart(report: dict[str, Any]) -> None:
    outputs = ["| 1 | 5 |\n| 2 | 7 |\n", "| 1 | 6 |\n| 2 | 7 |\n"]
    assert report["table_rows"]("x", outputs) == ["| `x` | · 1 · 5.5 (5 to 6) · |", "| `x` | · 2 · 7 · |"]


def test_a_script_that_fails_says_so_in_the_table(report: dict[str, Any], tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("raise SystemExit('no data at /nowhere')")
    found = report["runs_of"](script, 5, 60)
    assert found == "failed: no data at /nowhere"
    assert report["table_rows"]("broken", found) == ["| `broken` | failed: no data at /nowhere |"]
    script.write_text("print('speed', 3)")
    assert report["table_rows"]("broken", report["runs_of"](script, 2, 60)) == ["| `broken` | speed 3 |"]
