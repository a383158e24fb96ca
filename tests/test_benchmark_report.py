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


def test_a_peer_has_its_row_and_a_loss_is_said(report: dict[str, Any]) -> None:
    outputs = [
        f"12 texts\nbeside a peer: index texts | txtai | {one} | top 10 in common 0.9{n}\n"
        f"beside a peer: search | FTS5 | {two} | same scores\n"
        for n, (one, two) in enumerate(((1.5, 0.5), (1.25, 0.7), (1.75, 2.0)))
    ]
    assert report["peer_rows"](outputs) == [
        "| index texts | txtai | 1.5 (1.25 to 1.75) | top 10 in common 0.91 (0.9 to 0.92) |  |",
        "| search | FTS5 | 0.7 (0.5 to 2) | same scores | **Sonde is slower** |",
    ]
    assert report["table_rows"]("x", outputs) == ["| `x` | 12 texts |"]
    assert report["peer_rows"]("failed: no data") == []


def test_what_has_a_peer_is_run_several_times(report: dict[str, Any], tmp_path: Path) -> None:
    script = tmp_path / "one.py"
    script.write_text("print('beside a peer: a | b | 2.0 | same')")
    assert len(report["runs_of"](script, 3, 60)) == 3
    script.write_text("print('recall 0.5')")
    assert len(report["runs_of"](script, 3, 60)) == 1
