"""Vector indexes on disk: saved, loaded, damaged."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from clustered import KINDS, clustered, stored

from sonde.indexer.ann import AnnIndex, AnnInfo, AnnSettings, ArraySource, Kind, build, checked_info, load_index
from sonde.indexer.errors import SondeError, UsageError

faiss = pytest.importorskip("faiss")

ROWS = 1_500


@pytest.fixture(scope="module")
def source() -> ArraySource:
    return stored(clustered(ROWS))


@pytest.fixture(scope="module")
def queries() -> np.ndarray:
    return clustered(200, seed=1)


@pytest.fixture(scope="module")
def indexes(source: ArraySource) -> dict[str, AnnIndex]:
    return {kind: build(source, AnnSettings(kind=kind, threads=2)) for kind in KINDS}


@pytest.fixture(params=KINDS)
def index(request: pytest.FixtureRequest, indexes: dict[str, AnnIndex]) -> AnnIndex:
    return indexes[request.param]


@pytest.fixture(scope="module")
def saved(indexes: dict[str, AnnIndex], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    indexes["hnsw"].save(folder)
    return folder


def test_an_index_that_was_read_need_not_be_read_again(indexes: dict[str, AnnIndex], tmp_path: Path) -> None:
    info = indexes["hnsw"].save(tmp_path)
    assert checked_info(tmp_path) is None, "nobody has compared it with its digest yet"
    load_index(tmp_path)
    assert checked_info(tmp_path) == info
    file = tmp_path / info.digest[:16] / "index.faiss"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert checked_info(tmp_path) is None
    with pytest.raises(SondeError, match="its content does not match its digest"):
        load_index(tmp_path)
    assert checked_info(tmp_path) is None
    newer = indexes["ivf"].save(tmp_path)
    assert checked_info(tmp_path) is None and load_index(tmp_path).info == newer == checked_info(tmp_path)


@pytest.mark.parametrize("mapped_from", [None, 1 << 40, 1])
def test_a_saved_index_answers_the_same(
    index: AnnIndex, source: ArraySource, queries: np.ndarray, tmp_path: Path, mapped_from: int | None
) -> None:
    info = index.save(tmp_path)
    assert info.bytes == sum(file.stat().st_size for file in tmp_path.glob("*/*"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [info.digest[:16], "info.json"]
    again = load_index(tmp_path, mapped_from=mapped_from)
    assert again.info == info
    allowed = np.arange(ROWS) % 2 == 0
    for mask in (None, allowed):
        for one, other in zip(
            index.search(queries, 10, allowed=mask, vectors=source),
            again.search(queries, 10, allowed=mask, vectors=source),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other)


def test_saving_replaces_and_sweeps(source: ArraySource, tmp_path: Path) -> None:
    index = build(ArraySource(source.half[:200]), AnnSettings(kind="hnsw"))
    first = index.save(tmp_path)
    (tmp_path / ".new-left-by-a-kill").mkdir()
    assert index.save(tmp_path).digest == first.digest
    index.add(source, 200, 400)
    second = index.save(tmp_path)
    assert second.digest != first.digest
    assert sorted(path.name for path in tmp_path.iterdir()) == [second.digest[:16], "info.json"]
    assert load_index(tmp_path).info.rows == 400


@pytest.mark.parametrize("name", ["index.faiss", "rows.npy"])
@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "delete"])
def test_a_damaged_index_is_refused_in_one_line(saved: Path, tmp_path: Path, name: str, damage: str) -> None:
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    (file,) = tmp_path.glob(f"*/{name}")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "delete":
        file.unlink()
    else:
        file.write_bytes({"truncate": content[:-9], "flip": content, "empty": b""}[damage])
    with pytest.raises(SondeError, match=r"cannot be used .*; rebuild it from the embeddings") as caught:
        load_index(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"kind": "hnsw"}', "null"])
def test_a_damaged_description_is_refused(saved: Path, tmp_path: Path, content: str) -> None:
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    (tmp_path / "info.json").write_text(content)
    with pytest.raises(SondeError, match="cannot be used"):
        load_index(tmp_path)


def test_a_missing_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SondeError, match="cannot be used"):
        load_index(tmp_path / "nowhere")


def test_saving_where_nothing_can_be_written_says_so(source: ArraySource, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SondeError, match="the index cannot be written to"):
        build(ArraySource(source.half[:20]), AnnSettings()).save(tmp_path / "file")


def test_a_description_survives_json(index: AnnIndex) -> None:
    assert AnnInfo.from_dict(index.info.to_dict()) == index.info


@pytest.mark.parametrize("kind", KINDS)
def test_the_size_is_foreseen(source: ArraySource, kind: Kind, tmp_path: Path) -> None:
    index = build(source, AnnSettings(kind=kind))  # not the fixture's: once saved, it knows its size
    foreseen = index.info.bytes  # for "exact", 16 bytes a vector too many: a fifth of vectors as short as these
    assert foreseen == pytest.approx(index.save(tmp_path).bytes, rel=0.2 if kind == "exact" else 0.15)


def test_equal_input_gives_an_equal_index(source: ArraySource, tmp_path: Path) -> None:
    source = ArraySource(source.half[:1_200])
    for kind in KINDS:
        digests = {
            build(source, AnnSettings(kind=kind, seed=7, threads=1)).save(tmp_path / f"{kind}{turn}").digest
            for turn in range(2)
        }
        assert len(digests) == 1, kind


@pytest.mark.parametrize("mapped_from", [None, 1 << 40, 1])
def test_a_loaded_index_can_grow_unless_it_is_mapped(saved: Path, source: ArraySource, mapped_from: int | None) -> None:
    index = load_index(saved, mapped_from=mapped_from)
    grown = ArraySource(np.concatenate([source.half, source.half[:5] * np.float16(0.5)]))
    if mapped_from == 1:
        with pytest.raises(UsageError, match="a memory-mapped index takes no rows; load it whole"):
            index.add(grown, ROWS, ROWS + 5)
    else:
        assert index.add(grown, ROWS, ROWS + 5).rows == ROWS + 5


def test_an_index_that_keeps_its_lists_in_another_file_is_refused(source: ArraySource, tmp_path: Path) -> None:
    """FAISS would write new vectors into that file, wherever it is."""
    victim = tmp_path / "letter.txt"
    victim.write_bytes(b"dear" * 10_000)
    made = build(source, AnnSettings(kind="ivf"))
    ivf = faiss.extract_index_ivf(made.index)
    lists = faiss.OnDiskInvertedLists(ivf.nlist, ivf.code_size, str(tmp_path / "lists"))
    lists.merge_from(ivf.invlists, 0)
    lists.filename = str(victim)
    ivf.replace_invlists(lists)
    made.save(tmp_path / "index")
    before = victim.read_bytes()
    with pytest.raises(SondeError, match="consists of IndexIVFScalarQuantizer, OnDiskInvertedLists, not Index"):
        load_index(tmp_path / "index")
    assert victim.read_bytes() == before
