"""Bars of progress for Python: one for each stage, and sentences beside them."""

import re

import pytest

from sonde.indexer.progress import Progress, ProgressBar


def test_each_stage_is_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    show = ProgressBar()
    show(Progress("embed", 0, 40, "texts"))
    show(Progress("embed", 10, 40, "texts"))
    show("half of the texts are in German")
    show(Progress("embed", 40, 40, "texts"))
    show(Progress("FAISS index", 1, None, "vectors"))
    show.close()
    show.close()
    shown = capsys.readouterr()
    assert shown.out == "half of the texts are in German\n"
    assert re.search(r"embed: 100%\|█+\| 40/40 \[", shown.err)
    assert re.search(r"FAISS index: 1 vectors \[", shown.err)
    assert shown.err.count("40/40") == 1


def test_a_stage_that_comes_again_begins_again(capsys: pytest.CaptureFixture[str]) -> None:
    show = ProgressBar()
    for _ in range(2):
        show(Progress("embed", 3, 3, "texts"))
    assert capsys.readouterr().err.count("3/3") == 2
