"""Cross-encoders and multi-vector models as second stages: the same numbers as their own libraries; bad models."""

import re
from pathlib import Path

import numpy as np
import pytest
import tiny_models
from fake_encoder import FakeEncoder

import sonde
from sonde.indexer.errors import SondeError
from sonde.pipelines.pairs import load_pair_model
from sonde.pipelines.search.rerank import models
from sonde.pipelines.search.rerank.models import load_reranker

QUERY = "How do I reset my battery?"
SCORED = [text for text in tiny_models.TEXTS if text]


def cross_encoder(folder: Path, kind: str = "Bert", labels: int = 1, activation: str | None = None) -> Path:
    """Save a tiny cross-encoder with random weights."""
    import torch
    import transformers
    from sentence_transformers import CrossEncoder

    torch.manual_seed(7)
    tokenizer = tiny_models.bytelevel() if kind == "Roberta" else tiny_models.wordpiece()
    more = {"pad_token_id": 1} if kind == "Roberta" else {}
    config = getattr(transformers, f"{kind}Config")(**tiny_models.SMALL, num_labels=labels, **more)
    model = getattr(transformers, f"{kind}ForSequenceClassification")(config)
    with torch.no_grad():
        for weight in model.parameters():  # initial weights are so small that all pairs would look alike
            weight.mul_(4 if weight.dim() > 1 else 1)
    model.eval().save_pretrained(folder / "raw")
    tokenizer.save_pretrained(folder / "raw")
    made = CrossEncoder(str(folder / "raw"), device="cpu", max_length=tiny_models.WINDOW)
    if activation:
        made.activation_fn = getattr(torch.nn, activation)()
    made.save(str(folder / "cross"))
    return folder / "cross"


@pytest.mark.parametrize(
    ("kind", "activation", "unit"),
    [("Bert", None, "probability"), ("Bert", "Identity", "logit"), ("Roberta", "Tanh", "tanh")],
)
def test_scores_are_those_of_predict(tmp_path: Path, kind: str, activation: str | None, unit: str) -> None:
    from sentence_transformers import CrossEncoder

    folder = cross_encoder(tmp_path, kind, activation=activation)
    texts = [*SCORED, " ".join(SCORED) * 3]
    expected = CrossEncoder(str(folder), device="cpu").predict([(QUERY, text) for text in texts])
    reranker = load_reranker(str(folder), "cpu")
    assert (reranker.kind, reranker.unit, reranker.name) == ("cross-encoder", unit, str(folder))
    assert reranker.score(QUERY, texts) == pytest.approx(np.asarray(expected), abs=1e-5)
    assert len({round(float(score), 6) for score in expected}) > 3


@pytest.mark.parametrize("activation", ["Identity", "Sigmoid"])
def test_the_stored_activation_belongs_to_the_model(tmp_path: Path, activation: str) -> None:
    folder = cross_encoder(tmp_path, activation=activation)
    assert "activation_fn" in (folder / "config_sentence_transformers.json").read_text("utf-8")
    assert load_pair_model(str(folder)).activation == activation
    (folder / "config_sentence_transformers.json").write_text('{"activation_fn": "mine.Secret"}', "utf-8")
    assert load_pair_model(str(folder)).activation == "Sigmoid"


def test_a_search_says_which_model_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cross_encoder(tmp_path)
    rows = [{"id": str(n), "text": text} for n, text in enumerate(SCORED)]
    made = sonde.index(rows, tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    found = made.search(QUERY, rerank=True, rerank_model=str(folder))
    scores = load_reranker(str(folder), "cpu").score(QUERY, SCORED)
    assert found.reranking is not None and found.reranking.model == str(folder)
    assert {hit.id: hit.scores.rerank for hit in found} == {
        str(n): pytest.approx(float(score), abs=1e-5) for n, score in enumerate(scores)
    }
    monkeypatch.setattr(models, "_loading", None)  # a model that is loaded waits for no other one
    again = made.search(QUERY, rerank=True, rerank_model=str(folder))
    assert [(hit.id, hit.scores) for hit in again] == [(hit.id, hit.scores) for hit in found]


def test_a_multi_vector_model_scores_as_its_library_does(tmp_path: Path) -> None:
    import torch
    from sentence_transformers import MultiVectorEncoder

    torch.manual_seed(7)
    model, tokenizer = tiny_models.build_encoder()
    model.save_pretrained(tmp_path / "raw")
    tokenizer.save_pretrained(tmp_path / "raw")
    made = MultiVectorEncoder(str(tmp_path / "raw"), device="cpu")
    made.save(str(tmp_path / "many"))
    asked = made.encode_query([QUERY])
    expected = made.similarity(asked, made.encode_document(SCORED))[0].numpy() / len(asked[0])
    reranker = load_reranker(str(tmp_path / "many"), "cpu")
    assert reranker.kind == "multi-vector model"
    assert reranker.score(QUERY, SCORED) == pytest.approx(expected, abs=1e-5)


def test_models_that_score_no_pairs(tmp_path: Path) -> None:
    with pytest.raises(SondeError, match=r"is a bi-encoder, which reads no pairs: give rerank_model late, or"):
        load_reranker(str(tiny_models.save_transformer(tmp_path)))
    with pytest.raises(SondeError, match=r"has 3 labels, a reranker has one: give rerank_model"):
        load_reranker(str(cross_encoder(tmp_path / "three", labels=3)), "cpu")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(SondeError, match=re.escape(f"{empty} holds no model")):
        load_reranker(str(empty))
    folder = cross_encoder(tmp_path / "pickled")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(SondeError, match="holds pickled weights"):
        load_reranker(str(folder), "cpu")
