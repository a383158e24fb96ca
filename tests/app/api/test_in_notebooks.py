"""What a data scientist does in a notebook: progress, paths as text, models that are loaded already."""
# ruff: noqa: F811  (fixtures that are imported)

import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder
from http_service import folder, local  # noqa: F401  (fixtures)

import sonde
from sonde.app.api import Collection
from sonde.indexer.errors import UsageError


@pytest.mark.parametrize("progress", [None, False])
def test_no_progress_is_silent(local: Collection, progress: Any, capsys: pytest.CaptureFixture[str]) -> None:
    local.cluster(k=2, progress=progress)
    assert capsys.readouterr() == ("", "")


def test_progress_can_be_turned_on(local: Collection, capsys: pytest.CaptureFixture[str]) -> None:
    show: Any = True
    local.late(progress=show)
    assert "passages" in capsys.readouterr().err


@pytest.mark.parametrize("progress", ["yes", 1, sonde.ProgressBar])
def test_what_cannot_show_progress_is_refused_at_the_start(tmp_path: Path, progress: Any) -> None:
    with pytest.raises(
        UsageError, match=r"^progress is .*: give True for a progress bar, False for none, or a function"
    ):
        sonde.index(["a text"], tmp_path / "c.sonde", encoder=FakeEncoder(), progress=progress)  # type: ignore[arg-type]
    assert not (tmp_path / "c.sonde").exists()


class SentenceTransformer:
    """Like the one of Sentence-Transformers, as far as Sonde looks."""

    def encode(self, texts: list[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]


@pytest.mark.parametrize("name", ["encoder", "model"])
def test_a_loaded_model_goes_through_a_folder(tmp_path: Path, name: str) -> None:
    given: Any = {name: SentenceTransformer()}
    said = rf"^{name} is a SentenceTransformer: save it with model.save\('folder'\) and give model='folder'"
    with pytest.raises(UsageError, match=said):
        sonde.index(["a text"], tmp_path / "c.sonde", **given)


def test_a_collection_is_not_opened_with_a_loaded_model(folder: Path) -> None:
    model: Any = SentenceTransformer()
    with pytest.raises(UsageError, match="save it with"):
        Collection.open(folder, encoder=model)


def test_files_are_named_by_text(local: Collection, tmp_path: Path) -> None:
    local.label(["phone", "tablet"], engine="similarity", name="kinds")
    local.correct({"1": "tablet"}, run="kinds")
    assert local.save_corrections(str(tmp_path / "corrections.csv"), "kinds") == 1
    local.judge("battery", "1")
    local.judgements().write(str(tmp_path / "judged.qrels"), str(tmp_path / "queries.jsonl"))
    assert (tmp_path / "queries.jsonl").read_text().endswith('"text": "battery"}\n')


def test_a_collection_shows_itself_when_it_is_gone(local: Collection) -> None:
    assert repr(local) == f"Collection({str(local.path)!r}, 3 documents)"
    shutil.rmtree(local.path)
    assert repr(local) == f"Collection({str(local.path)!r}, gone)"


@pytest.mark.parametrize(
    ("where", "said"),
    [("stars < 3", "2 documents pass"), ("stars = 5", "1 document passes"), ("stars > 9", "no document passes")],
)
def test_a_filter_that_matches_is_explained_by_how_many(local: Collection, where: str, said: str) -> None:
    assert local.explain_filter(where) == f"{said} the filter"


def test_a_collection_is_pickled_as_its_path(local: Collection) -> None:
    opened = sonde.open(local.path, device="cpu")
    again = pickle.loads(pickle.dumps(opened))
    assert (type(again), again.path, again.device) == (Collection, opened.path, "cpu")
    assert again.get("1") == opened.get("1")
    with pytest.raises(UsageError, match="with an encoder or a loader of your own cannot be pickled: open it in each"):
        pickle.dumps(local)
