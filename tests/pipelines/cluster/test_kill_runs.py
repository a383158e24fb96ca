"""SIGKILL while a clustering, topics or a map are made: the run does not exist, and the collection is untouched."""

import signal
from importlib.util import find_spec
from pathlib import Path

import pytest
from clustered_run import make
from command_line import contents, problems
from forked import Forked
from themes import collection, rows

from sonde.app.api import Collection

RUNNER = Path(__file__).parents[2] / "support" / "clustered_run.py"
MOMENTS = [
    ("cluster", "writing"),
    pytest.param("topic", "fitting topics", marks=pytest.mark.long),
    pytest.param("topic", "writing", marks=pytest.mark.long),
    ("map", "naming regions"),
]
LIBRARIES = {"cluster": "faiss", "topic": "bertopic", "map": "umap"}


@pytest.fixture
def shop(tmp_path: Path) -> Collection:
    return collection(tmp_path / "shop.sonde", rows())


@pytest.mark.parametrize(("kind", "moment"), MOMENTS)
def test_a_killed_run_does_not_exist(shop: Collection, kind: str, moment: str) -> None:
    if find_spec(LIBRARIES[kind]) is None:  # importing BERTopic would take longer than the test
        pytest.skip(f"needs {LIBRARIES[kind]}")
    shop.cluster("r", k=2, refits=0)  # the killed clustering is to replace it, and the others stand beside it
    before = contents(shop.path)
    process = Forked(RUNNER, shop.path, kind, moment)
    assert process.stdout.readline() == "here\n"
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert contents(shop.path) == before
    assert problems(shop.path) == []
    assert [(run.kind, run.report["clusters"]) for run in shop.runs()] == [("cluster", 2)]
    assert [hit.id.split("-")[0] for hit in shop.search("parcel courier", k=3)] == ["parcel"] * 3
    make(shop.path, kind, lambda _: None)
    made = shop.runs()[-1]
    assert (made.kind, made.name, made.documents, made.complete) == (kind, "r", 120, True)
