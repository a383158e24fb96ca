"""bfloat16 on a CPU: taken for a long run where it is faster on the user's texts and as good, and never unasked."""

import json
from pathlib import Path

import pytest
from tiny_models import TEXTS, save_transformer

import sonde
from sonde.indexer.encoder import Encoder, load_encoder, load_encoder_for, precision
from sonde.indexer.encoder.precision import Comparison, compare, faster_precision, multiplies_in_bfloat16
from sonde.indexer.ingest import source

GOOD = Comparison(1.9, 0.9999, 4.0)


@pytest.fixture
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("precision", "loading"):
        monkeypatch.setattr(f"sonde.indexer.encoder.{place}.multiplies_in_bfloat16", lambda: True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_transformer(tmp_path)


@pytest.mark.parametrize(
    ("found", "dtype", "said"),
    [
        (GOOD, "bfloat16", "note: dtype: bfloat16 is 1.9 times as fast as float32 here, lowest cosine 0.9999 "
         "(tested for 4 s; dtype float32 keeps full precision)"),
        (Comparison(1.1, 0.9999, 4.0), "float32", "dtype: float32; bfloat16 is 1.1 times as fast as float32 here, "
         "lowest cosine 0.9999 (tested for 4 s)"),
        (Comparison(3.0, 0.9991, 4.0), "float32", "dtype: float32; bfloat16 is 3.0 times as fast as float32 here, "
         "lowest cosine 0.9991 (tested for 4 s)"),
    ],
)  # fmt: skip
def test_what_pays_is_taken(
    folder: Path, able: None, monkeypatch: pytest.MonkeyPatch, found: Comparison, dtype: str, said: str
) -> None:
    monkeypatch.setattr(precision, "compare", lambda *_: found)
    heard: list[str] = []
    encoder = load_encoder(str(folder))
    chosen = faster_precision(encoder, TEXTS, lambda: load_encoder(str(folder), dtype="bfloat16"), heard.append)
    assert (chosen.spec.dtype, heard) == (dtype, [said])
    assert chosen is encoder or dtype == "bfloat16"


def _refused() -> Encoder:
    raise AssertionError("it was loaded")


def test_a_processor_without_it_tries_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "multiplies_in_bfloat16", lambda: False)
    encoder = load_encoder(str(folder))
    assert faster_precision(encoder, TEXTS, _refused, print) is encoder


def test_another_precision_and_no_texts_try_nothing(folder: Path, able: None) -> None:
    for encoder, texts in ((load_encoder(str(folder), dtype="bfloat16"), TEXTS), (load_encoder(str(folder)), [])):
        assert faster_precision(encoder, texts, _refused, print) is encoder


def test_both_are_measured_on_the_same_texts(folder: Path) -> None:
    encoder = load_encoder(str(folder))
    assert compare(encoder, encoder, TEXTS * 3, 0.0).cosine == pytest.approx(1, abs=1e-6)
    half = compare(encoder, load_encoder(str(folder), dtype="bfloat16"), TEXTS * 3, 0.0)
    assert 0.99 < half.cosine < 1
    assert half.gain > 0


def test_the_flags_of_the_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision.sys, "platform", "linux")
    for flags, able in (("fpu avx512_bf16 vme", True), ("fpu amx_bf16", True), ("fpu avx512f", False)):
        file = tmp_path / "cpuinfo"
        file.write_text(f"processor : 0\nflags\t\t: {flags}\n")
        monkeypatch.setattr(precision, "Path", lambda _, file=file: file)
        assert multiplies_in_bfloat16() is able


def rows(file: Path) -> Path:
    file.write_text("".join(json.dumps({"id": str(n), "text": f"refund number {n}"}) + "\n" for n in range(300)))
    return file


def test_a_long_run_takes_it_and_the_collection_remembers(
    tmp_path: Path, folder: Path, able: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "compare", lambda *_: GOOD)
    monkeypatch.setattr(source, "LONG_RUN_SECONDS", 0.0)
    said: list[object] = []
    made = sonde.index(rows(tmp_path / "rows.jsonl"), tmp_path / "c.sonde", model=str(folder), progress=said.append)
    assert made.stored.spec.dtype == "bfloat16"
    assert any(str(each).startswith("note: dtype: bfloat16 is 1.9 times") for each in said)
    assert made.stored.encoder.engine == "onnxruntime"  # queries are encoded in float32
    assert load_encoder_for(made.stored.spec, passages=True).engine == "torch"
    exact = sonde.index(rows(tmp_path / "rows.jsonl"), tmp_path / "e.sonde", model=str(folder), dtype="float32")
    found, expected = (
        {hit.id: hit.scores.dense for hit in each.search("refund number 7", k=300, mode="dense")}
        for each in (made, exact)
    )
    assert len(found) == 300
    assert found == {id: pytest.approx(score, abs=0.02) for id, score in expected.items()}
    again = sonde.index(rows(tmp_path / "rows.jsonl"), tmp_path / "c.sonde")
    assert again.stored.spec == made.stored.spec
    auto = sonde.index(rows(tmp_path / "rows.jsonl"), tmp_path / "c.sonde", dtype="auto")
    assert auto.stored.spec == made.stored.spec


def test_a_long_run_that_builds_shards_here_takes_it_too(
    tmp_path: Path, folder: Path, able: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "compare", lambda *_: GOOD)
    monkeypatch.setattr(source, "LONG_RUN_SECONDS", 0.0)
    said: list[object] = []
    given = rows(tmp_path / "rows.jsonl")
    made = sonde.index(given, tmp_path / "c.sonde", shards=2, model=str(folder), progress=said.append)
    assert made.stored.spec.dtype == "bfloat16"
    assert any(str(each).startswith("note: dtype: bfloat16 is 1.9 times") for each in said)
    assert len(made.search("refund number 7", k=300, mode="dense")) == 300


def test_nobody_who_names_a_precision_gets_another(
    tmp_path: Path, folder: Path, able: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "LONG_RUN_SECONDS", 0.0)
    monkeypatch.setattr(source, "faster_precision", _refused)
    made = sonde.index(rows(tmp_path / "rows.jsonl"), tmp_path / "c.sonde", model=str(folder), dtype="float32")
    assert made.stored.spec.dtype == "float32"
    given = load_encoder(str(folder))
    made = sonde.index(rows(tmp_path / "rows.jsonl"), tmp_path / "d.sonde", encoder=given)
    assert made.stored.spec.dtype == "float32"
