"""The page of all benchmarks: Sonde beside its peers with the spread of the runs; what failed stands in it."""

import runpy
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(str(FOLDER))
    return runpy.run_path(str(FOLDER / "report.py"))


def test_a_script_that_fails_says_so_on_the_page(report: dict[str, Any], tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("print('half a table')\nraise SystemExit('no data at /nowhere')")
    assert report["output_of"](script, 60) == "Failed: no data at /nowhere"
    script.write_text("while True: pass")
    assert report["output_of"](script, 0.5) == "Not done after 0 s."
    script.write_text("print('speed', 3)")
    assert report["output_of"](script, 60) == "speed 3"
    script.write_text("")
    assert report["output_of"](script, 60) == "Printed nothing."


def test_a_peer_has_its_row_with_the_spread_and_a_loss_is_said(report: dict[str, Any]) -> None:
    outputs = {
        "index": "12 texts\nbeside a peer: index texts | txtai | 1.5 1.25 1.75 | top 10 in common 0.91\n",
        "lexical": "beside a peer: search | FTS5 | 0.5 0.7 2 | same scores\n| engine | ms |\n|---|---|\n| FTS5 | 3 |",
        "gpu": "Failed: no CUDA device here",
    }
    assert report["page"]("# Head", outputs) == (
        "# Head\n\n"
        "| work | peer | times as fast: median (least to greatest) | runs | outputs | |\n"
        "|---|---|---|---|---|---|\n"
        "| index texts | txtai | 1.50 (1.25 to 1.75) | 3 | top 10 in common 0.91 |  |\n"
        "| search | FTS5 | 0.70 (0.50 to 2.00) | 3 | same scores | **Sonde is slower** |\n\n"
        "## index\n\n12 texts\n\n"
        "## lexical\n\n| engine | ms |\n|---|---|\n| FTS5 | 3 |\n\n"
        "## gpu\n\nFailed: no CUDA device here\n"
    )


def test_what_a_script_says_of_its_peer_is_what_the_page_reads(
    report: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    shared = runpy.run_path(str(FOLDER / "_side_by_side.py"))
    shared["beside"]("embed", "a peer", shared["times_as_fast"]([(1.0, 2.0), (2.0, 3.0)]), "the same")
    said = capsys.readouterr().out.strip()
    assert report["peer_row"](said) == "| embed | a peer | 1.75 (1.50 to 2.00) | 2 | the same |  |"


def test_what_has_a_peer_comes_first(report: dict[str, Any]) -> None:
    scripts = sorted(FOLDER.glob("[!_]*.py"), key=report["_peers_first"])
    names = [script.stem for script in scripts if script.stem != "report"]
    assert names[:2] == ["ann_search", "clusters"]
    assert names.index("pairs_rerank") < names.index("ask_threshold") < names.index("ui_pages")


def test_tools_are_not_run_as_benchmarks(report: dict[str, Any]) -> None:
    assert all((FOLDER / f"{name}.py").exists() for name in report["TOOLS"])
