"""Every family of encoders: indexed, searched, reranked, asked for inference, saved, loaded, like its own library."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_encoder import FakeEncoder
from sentence_transformers import CrossEncoder, SentenceTransformer
from tiny_families import FAMILIES
from tiny_models import TEXTS, WINDOW, save_transformer
from tiny_pairs import save_pairs
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import sonde
from sonde.pipelines.search.rerank.models import load_reranker

QUERY = "How do I reset my battery?"
ROWS = [{"id": str(number), "text": text} for number, text in enumerate(TEXTS) if text]
SENTENCES = [row["text"] for row in ROWS]
every_family = pytest.mark.parametrize(
    "family", [pytest.param(name, marks=pytest.mark.long if place % 2 else ()) for place, name in enumerate(FAMILIES)]
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SONDE_CACHE", str(tmp_path / "cache"))


@every_family
def test_a_bi_encoder_indexes_and_searches(tmp_path: Path, family: str) -> None:
    folder = save_transformer(tmp_path, family)
    library = SentenceTransformer(str(folder), device="cpu")
    asked = library.encode([QUERY], prompt_name="query", normalize_embeddings=True)
    expected = (asked @ library.encode(SENTENCES, prompt_name="document", normalize_embeddings=True).T)[0]
    sonde.index(ROWS, tmp_path / "c.sonde", model=str(folder))
    opened = sonde.open(tmp_path / "c.sonde")  # another object: the model is loaded again, by what was stored
    found = {hit.id: hit.scores.dense for hit in opened.search(QUERY, mode="dense")}
    assert found.keys() == {row["id"] for row in ROWS}
    tokens = [len(library.tokenizer("passage: " + text).input_ids) for text in SENTENCES]
    whole = [place for place, count in enumerate(tokens) if count <= WINDOW]  # longer ones are split into passages
    assert len(whole) >= 4
    for place in whole:
        score = float(expected[place])
        assert found[ROWS[place]["id"]] == pytest.approx(score, abs=1e-3)  # vectors are stored in float16
    assert np.std(expected) > 0.001


@every_family
def test_a_bi_encoder_s_vectors_are_those_of_its_library(tmp_path: Path, family: str) -> None:
    folder = save_transformer(tmp_path, family)
    library = SentenceTransformer(str(folder), device="cpu")
    expected = library.encode(TEXTS, prompt_name="document", normalize_embeddings=True)
    ours = sonde.load_encoder(str(folder)).encode_texts(TEXTS)
    assert np.minimum((ours * expected).sum(axis=1), 1).min() > 0.9999
    library.save(str(tmp_path / "again"))
    assert sonde.load_encoder(str(tmp_path / "again")).spec.digest == sonde.load_encoder(str(folder)).spec.digest


@every_family
def test_late_interaction_reads_every_family(tmp_path: Path, family: str) -> None:
    made = sonde.index(ROWS, tmp_path / "c.sonde", model=str(save_transformer(tmp_path, family)))
    found = made.search(QUERY, rerank=True)
    assert found.reranking is not None and found.reranking.model == "late"
    assert all(hit.scores.rerank is not None and -1 <= hit.scores.rerank <= 1 for hit in found)


@every_family
def test_a_cross_encoder_reranks(tmp_path: Path, family: str) -> None:
    raw = save_pairs(tmp_path / "raw", family, {0: "score"})
    CrossEncoder(str(raw), device="cpu", max_length=WINDOW).save(str(tmp_path / "cross"))
    library = CrossEncoder(str(tmp_path / "cross"), device="cpu")
    expected = library.predict([(QUERY, text) for text in SENTENCES], activation_fn=torch.nn.Identity())
    logits = load_reranker(str(tmp_path / "cross"), "cpu").model.logits(  # type: ignore[attr-defined]
        [(QUERY, text) for text in SENTENCES], cut="longest"
    )
    np.testing.assert_allclose(logits[:, 0], expected, atol=1e-4)
    assert np.std(expected) > 0.001
    encoder: Any = FakeEncoder()
    made = sonde.index(ROWS, tmp_path / "c.sonde", encoder=encoder)
    found = made.search(QUERY, rerank=True, rerank_model=str(tmp_path / "cross"))
    scores = 1 / (1 + np.exp(-np.asarray(expected)))
    assert {hit.id: hit.scores.rerank for hit in found} == {
        row["id"]: pytest.approx(float(score), abs=1e-4) for row, score in zip(ROWS, scores, strict=True)
    }


@every_family
def test_an_nli_model_judges(tmp_path: Path, family: str) -> None:
    folder = save_pairs(tmp_path, family)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    inputs = tokenizer(TEXTS[1], "Basil likes frost.", return_tensors="pt")
    with torch.inference_mode():
        logits = model(**{name: inputs[name] for name in tokenizer.model_input_names}).logits[0]
    found = sonde.entail(TEXTS[1], "Basil likes frost.", model=str(folder), device="cpu")
    shares = torch.softmax(logits, 0).tolist()
    assert (found.contradiction, found.neutral, found.entailment) == pytest.approx(shares, abs=1e-5)
    labelled = sonde.classify(SENTENCES[:2], ["refund", "garden"], engine="nli", model=str(folder))
    assert [set(each.scores) for each in labelled] == [{"refund", "garden"}] * 2


def test_the_tiny_tokenizers_are_the_same_in_every_process() -> None:
    code = (
        "import hashlib; from tiny_families import FAMILIES; "
        "print(*[hashlib.sha256(FAMILIES[name].tokenizer().backend_tokenizer.to_str().encode()).hexdigest()"
        " for name in FAMILIES])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2] / "support"
    )
    from hashlib import sha256

    made = [FAMILIES[name].tokenizer().backend_tokenizer.to_str() for name in FAMILIES]
    assert ran.stdout.split() == [sha256(each.encode()).hexdigest() for each in made]
