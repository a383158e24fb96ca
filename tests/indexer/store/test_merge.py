"""Small neighbouring segments become one, without a change of any row."""

import gc
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from fake_encoder import FakeEncoder
from kill_corpus import documents

from sonde.indexer.errors import SondeError
from sonde.indexer.ingest import BuildSettings, index_documents
from sonde.indexer.late.writer import FAN, SMALLEST, due, tier
from sonde.indexer.store.catalog import Catalog
from sonde.indexer.store.collection import StoredCollection
from sonde.indexer.store.segments import SCATTERED, Segment, Segments, write_segment
from sonde.indexer.upkeep.verify import verify


def built(folder: Path, batch: int) -> StoredCollection:
    encoder = FakeEncoder()
    index_documents(documents(), folder, settings=BuildSettings(batch=batch), encoder=encoder)  # type: ignore[arg-type]
    return StoredCollection.open(folder, encoder=encoder)  # type: ignore[arg-type]


@pytest.mark.long
def test_many_commits_leave_few_segments_and_the_same_vectors(tmp_path: Path) -> None:
    many, one = built(tmp_path / "many.sonde", batch=2), built(tmp_path / "one.sonde", batch=10_000)
    with many.view() as short, one.view() as whole:
        assert len(short.catalog.segments()) < 2 * FAN  # from 200 commits
        assert len(whole.catalog.segments()) == 1
        rows = np.arange(len(whole.generation.segments))
        np.testing.assert_array_equal(short.generation.segments.read(rows), whole.generation.segments.read(rows))
        np.testing.assert_array_equal(short.generation.owners, whole.generation.owners)
        named = {segment.path(many.vectors_path) for segment in short.catalog.segments()}
    assert set(many.vectors_path.iterdir()) == named
    assert verify(many) == []


@pytest.mark.parametrize(("rows", "expected"), [(1, 0), (SMALLEST * FAN, 0), (SMALLEST * FAN + 1, 1), (40_000, 3)])
def test_tiers(rows: int, expected: int) -> None:
    assert tier(rows) == expected


def test_runs_of_growing_commits_leave_few_segments() -> None:
    """As `sonde index` leaves them, run after run: they grow from 256 rows on, with single documents put in between."""
    segments: list[Segment] = []
    most = 0
    for number, count in enumerate([256, 512, 512, 512, 1024, 672, 1, 1, 1] * 500):
        start = segments[-1].start + segments[-1].count if segments else 0
        segments.append(Segment(number, start, count, ""))
        while tail := due([segment.count for segment in segments]):
            merged = segments[-tail:]
            segments[-tail:] = [Segment(number, merged[0].start, sum(segment.count for segment in merged), "")]
        most = max(most, len(segments))
    assert most == 49  # 4,500 commits


def test_a_large_segment_is_not_written_again_for_a_few_rows() -> None:
    assert due([100_000, *[1] * (FAN - 1)]) == 0
    assert due([100_000, *[1] * FAN]) == FAN


def test_a_few_rows_and_many_read_the_same(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).standard_normal((3 * SCATTERED, 4)).astype(np.float16)
    cuts = [(0, 1000), (1000, 1100), (1100, len(vectors))]
    segments = [write_segment(tmp_path, n, a, vectors[a:b].astype(np.float32)) for n, (a, b) in enumerate(cuts, 1)]
    stored = Segments(tmp_path, segments, 4)
    many = np.random.default_rng(1).permutation(len(vectors))
    np.testing.assert_array_equal(stored.read(many), vectors[many].astype(np.float32))
    np.testing.assert_array_equal(stored.read(many[:50]), vectors[many[:50]].astype(np.float32))
    chunks = list(stored.chunks(700))
    assert [start for start, _ in chunks] == [0, 700, 1000, 1100, 1800, 2500]
    np.testing.assert_array_equal(np.concatenate([values for _, values in chunks]), vectors.astype(np.float32))


def test_open_segments_outlive_their_files(tmp_path: Path) -> None:
    segment = write_segment(tmp_path, 1, 0, np.eye(3, dtype=np.float32))
    stored = Segments(tmp_path, [segment], 3)
    segment.path(tmp_path).unlink()
    np.testing.assert_array_equal(stored.read(np.array([2, 0])), [[0, 0, 1], [1, 0, 0]])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-1], r"000001\.npy is damaged \(it is cut off\): run `sonde repair"),
        (lambda data: b"x" + data[1:], r"000001\.npy is damaged \(the magic string is not correct"),
        (
            lambda data: data.replace(b"<f2", b"<f4"),
            r"000001\.npy is damaged \(it holds float32 \(3, 3\), expected float16",
        ),
    ],
)
def test_a_damaged_segment_is_said(tmp_path: Path, damage, message: str) -> None:
    segment = write_segment(tmp_path, 1, 0, np.eye(3, dtype=np.float32))
    path = segment.path(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(SondeError, match=message):
        Segments(tmp_path, [segment], 3)


def test_threads_may_open_segments_at_the_same_time(tmp_path: Path) -> None:
    """The garbage collector lets another thread run while NumPy's header is parsed, as libraries' callbacks do."""
    segment = write_segment(tmp_path, 1, 0, np.eye(3, dtype=np.float32))
    before = gc.get_threshold()
    gc.callbacks.append(pause := lambda *_: time.sleep(0))
    gc.set_threshold(5)
    try:
        with ThreadPoolExecutor(2) as threads:
            opened = list(threads.map(lambda _: len(Segments(tmp_path, [segment], 3)), range(200)))
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(pause)
    assert opened == [3] * 200


def test_catalog_counts_the_rows_of_merged_segments(tmp_path: Path) -> None:
    built(tmp_path / "c.sonde", batch=5).close()
    catalog = Catalog.open(tmp_path / "c.sonde" / "catalog.db")
    segments = catalog.segments()
    assert [segment.start for segment in segments[1:]] == [s.start + s.count for s in segments[:-1]]
    assert catalog.rows() == sum(segment.count for segment in segments)
