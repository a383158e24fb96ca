"""A look at the whole of a source: exact where there is time, extrapolated where there is not."""

from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder

from sonde.indexer.document import Document
from sonde.indexer.ingest import estimate_source
from sonde.indexer.ingest.estimate import START_SECONDS, STORED_PER_BYTE, STORING_SECONDS, estimate, survey
from sonde.indexer.readers import Reading, read_source

ROWS = [("short" if n < 200 else "a much longer text than that, " * 5).strip() + f" {n}" for n in range(1_000)]
"""The first texts are not like the others."""


def csv(path: Path) -> Path:
    path.write_text("text\n" + "".join(f'"{text}"\n' for text in ROWS))
    return path


def xlsx(path: Path) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for text in ("text", *ROWS):
        book.active.append([text])
    book.save(path)
    return path


def reading_of(tmp_path: Path, kind: str) -> Reading:
    return read_source(csv(tmp_path / "s.csv") if kind == "csv" else xlsx(tmp_path / "s.xlsx"))


def test_what_can_be_read_only_once_is_counted_to_its_end(tmp_path: Path) -> None:
    encoder: Any = FakeEncoder()
    assert estimate_source(iter(ROWS), tmp_path / "new.sonde", encoder=encoder).documents == len(ROWS)


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_all_of_a_source_is_counted(tmp_path: Path, kind: str) -> None:
    found = survey(reading_of(tmp_path, kind), 64)
    assert (found.documents, found.characters, len(found.sample)) == (1_000, sum(map(len, ROWS)), 64)
    short = sum(each.text.startswith("short") for each in found.sample)
    assert 4 <= short <= 24, "about a fifth of the sample, as of the source"
    assert [each.text for each in survey(reading_of(tmp_path, kind), 64).sample] == [e.text for e in found.sample]


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_a_part_of_a_source_is_extrapolated(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from sonde.indexer.ingest import estimate as module

    ticks = iter(range(10_000))
    monkeypatch.setattr(module.time, "perf_counter", lambda: float(next(ticks)))
    found = survey(reading_of(tmp_path, kind), 64, limit=499)
    assert len(found.sample) == 64
    assert 700 <= found.documents <= 1_700
    assert found.seconds == pytest.approx(found.documents, rel=0.02), "one second for each document"


def test_the_estimate_scales_by_characters() -> None:
    encoder: FakeEncoder = FakeEncoder()
    sample = [Document("ten letter") for _ in range(8)]
    short = estimate(sample, 100, encoder, characters=1_000)  # type: ignore[arg-type]
    long = estimate(sample, 100, encoder, characters=10_000, reading=50.0)  # type: ignore[arg-type]
    assert (short.documents, short.passages, long.passages) == (100, 100, 100)
    assert short.seconds >= START_SECONDS + 100 * STORING_SECONDS
    assert long.seconds > 50 + START_SECONDS
    assert long.disk - short.disk == pytest.approx(9_000 * STORED_PER_BYTE)


def test_an_empty_source_has_no_sample() -> None:
    found = survey(read_source([Document("  ")]), 4)
    assert (found.documents, found.characters, found.sample) == (0, 0, [])
