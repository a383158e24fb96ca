"""A verification reports damage, and nothing that a writer was just replacing; its work is linear."""

from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.errors import WriterBusyError
from sonde.indexer.store.lock import writer_lock
from sonde.indexer.upkeep import verify as verifying

ROWS = [{"id": str(number), "text": f"text number {number}"} for number in range(40)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    encoder: Any = FakeEncoder()
    index(ROWS, tmp_path / "c.sonde", encoder=encoder).close()
    return tmp_path / "c.sonde"


def opened(folder: Path) -> Collection:
    return Collection.open(folder, loader=lambda *_, **__: FakeEncoder())  # type: ignore[arg-type]


@pytest.mark.parametrize("times", [1, 3], ids=["once", "at-every-attempt"])
def test_what_a_writer_replaces_meanwhile_is_no_fault(
    folder: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """It reported that the indexes were missing or held too few passages in about every second verification."""
    left, real = [times], verifying._lexical  # pyright: ignore[reportPrivateUsage]

    def overtaken(view: Any, loaded: Any) -> Any:
        if left[0]:
            left[0] -= 1
            beside = opened(folder)
            beside.delete([str(left[0])])
            beside.compact()
            beside.close()
        return real(view, loaded)

    monkeypatch.setattr(verifying, "_lexical", overtaken)
    assert opened(folder).verify() == []
    assert left == [0]


def test_damage_is_found_also_where_a_writer_was_killed(folder: Path) -> None:
    (folder / "writer.json").write_text("{}")
    next((folder / "vectors").glob("*.npy")).unlink()
    assert [finding.part for finding in opened(folder).verify()] == ["vectors"]
    assert not (folder / "writer.json").exists()


def test_damage_beside_a_writer_that_goes_on_is_not_told_from_its_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writer_lock(folder):
        assert opened(folder).verify() == []
        next((folder / "vectors").glob("*.npy")).unlink()
        with pytest.raises(WriterBusyError, match=r"is being written to by .*: wait for it to end, then try again"):
            opened(folder).verify()


def test_the_work_of_a_long_title_is_linear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part of the title was tried, the longest first, for each passage."""
    title, text = " ".join(f"word{number}" for number in range(2_000)), "It was red. " * 100
    encoder: Any = FakeEncoder()
    rows = [{"title": title, "text": text}]
    index(rows, tmp_path / "c.sonde", title="title", text="text", encoder=encoder).close()
    read, real = [0], verifying.digest

    def digest(*parts: str) -> bytes:
        read[0] += sum(map(len, parts))
        return real(*parts)

    monkeypatch.setattr(verifying, "digest", digest)
    assert opened(tmp_path / "c.sonde").verify() == []
    assert 0 < read[0] < 100 * len(title)
