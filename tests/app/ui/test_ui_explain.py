"""The Explain page: two texts through every model, tokens and heads; against the models asked directly."""

# ruff: noqa: F811  (a fixture that is imported)

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_encoder import FakeEncoder
from streamlit.testing.v1 import AppTest
from tiny_models import save_static, save_transformer
from tiny_pairs import build_pairs
from ui_pages import MARKUP, Pages, pages, shown, unread  # noqa: F401  (pages: a fixture)

from sonde.indexer.encoder import load_encoder
from sonde.indexer.errors import SondeError, UsageError
from sonde.pipelines.label import entail
from sonde.pipelines.pairs import PairModel
from sonde.pipelines.search.excerpts import best_passage
from sonde.pipelines.search.rerank import LATE
from sonde.pipelines.similarity import tokens
from sonde.pipelines.similarity.similarity import Comparison
from sonde.pipelines.similarity.tokens import MOST, pair_attention, text_attention, token_matrix

A, B = "The battery died after a week.", "Great phone, lasts for days."


@pytest.fixture
def nli(monkeypatch: pytest.MonkeyPatch) -> PairModel:
    model = PairModel(*build_pairs("bert"), name="tiny")
    monkeypatch.setattr("sonde.app.ui.explain.nli", lambda device: model)
    monkeypatch.setattr(tokens, "_nli_with_attention", lambda: build_pairs("bert"))
    return model


def test_nothing_yet(pages: Pages, nli: PairModel) -> None:
    pages.collection()
    page = pages.open("explain")
    assert "Compare two texts with every kind of model" in shown(page)
    page.button(key="example0").click().run()
    assert page.query_params["a"] in ("The cat chased the dog.", ["The cat chased the dog."])
    assert "NLI" in [metric.label for metric in page.metric]


def test_three_models_side_by_side(pages: Pages, nli: PairModel) -> None:
    pages.collection()
    page = pages.open("explain", a=A, b=B)
    [found] = Comparison(FakeEncoder(), LATE, nli)([(A, B)])  # type: ignore[arg-type]
    forward, backward = entail(A, B, nli), entail(B, A, nli)
    values = {metric.label: metric.value for metric in page.metric}
    assert values["Bi-encoder, cosine"] == f"{found.cosine:.3f}"
    assert values["Late interaction, score"] == f"{found.second_stage:.3f}"
    assert values["NLI"] == ("paraphrase" if found.paraphrase else forward.label)
    table = page.dataframe[0].value
    assert table["first → second"].tolist() == pytest.approx(
        [100 * getattr(forward, name) for name in ("entailment", "neutral", "contradiction")], abs=1e-3
    )
    assert table["second → first"].tolist()[0] == pytest.approx(100 * backward.entailment, abs=1e-3)
    assert dict(pages.again("explain", page).query_params) == dict(page.query_params)


def test_token_by_token(pages: Pages, nli: PairModel) -> None:
    pages.collection()
    page = pages.open("explain", a="battery phone", b="phone battery week")
    figure = figures(page)[0]
    assert len(figure["layout"]["xaxis"]["tickvals"]) == 3
    found = token_matrix(FakeEncoder(), "battery phone", "phone battery week")  # type: ignore[arg-type]
    assert found.similarities[0, 1] == pytest.approx(1, abs=1e-5)
    assert found.similarities[1, 0] == pytest.approx(1, abs=1e-5)
    assert found.similarities[0, 2] < 0.99


def test_a_hit_from_the_address(pages: Pages, nli: PairModel) -> None:
    collection = pages.collection()
    page = pages.open("explain", a="broken screen", id="3")
    with collection.stored.view() as view:
        assert page.text_area(key="b").value == best_passage(view, "3", "broken screen")
    assert "The screen broke" in str(page.text_area(key="b").value)
    assert pages.again("explain", page).text_area(key="b").value == page.text_area(key="b").value
    page.text_area(key="b").input("Something else.").run()
    assert "id" not in page.query_params
    assert "there is no document with the id '99'" in shown(pages.open("explain", a="x", id="99")).replace("\\", "")


def test_heads(pages: Pages, nli: PairModel) -> None:
    pages.collection()
    page = pages.open("explain", a="a dog barks", b="a cat", heads="true")
    assert len(figures(page)) == 3
    found = pair_attention("a dog barks", "a cat")
    layers, heads, _, _ = found.weights.shape
    mosaic = figures(page)[1]
    assert len(mosaic["layout"]["yaxis"]["tickvals"]) == layers
    assert len(mosaic["layout"]["xaxis"]["tickvals"]) == heads
    page.segmented_control(key="read").set_value("First text, bi-encoder").run()
    assert "has no attention to show" in shown(page).replace("\\", "")  # the fake bi-encoder has none


def test_a_missing_model_is_a_sentence(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    pages.collection()

    def gone(*_: Any) -> Any:
        raise SondeError("the bundled model is not here")

    monkeypatch.setattr("sonde.app.ui.explain.nli", gone)
    page = pages.open("explain", a=A, b=B, model="")
    assert "the bundled model is not here" in shown(page)
    assert len(figures(page)) == 1  # tokens need the bi-encoder alone


@pytest.mark.parametrize("model", ["/no/such/folder", "cross-encoder/ms-marco-MiniLM-L6-v2"])
def test_no_model_is_fetched(pages: Pages, nli: PairModel, model: str) -> None:
    pages.collection()
    assert f"there is no folder {model}" in shown(pages.open("explain", a=A, b=B, model=model)).replace("\\", "")


def test_text_stays_text(pages: Pages, nli: PairModel) -> None:
    pages.collection(rows=[{"id": MARKUP, "text": MARKUP, "title": MARKUP}])
    page = pages.open("explain", a=MARKUP, id=MARKUP, heads="true")
    unread(page)
    assert "<b" not in json.dumps(figures(page)[0]["layout"]["yaxis"]["ticktext"])


def figures(page: AppTest) -> list[dict[str, Any]]:
    return [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]  # type: ignore[attr-defined]


def test_attention_of_a_text_is_the_models(tmp_path: Path) -> None:
    encoder = load_encoder(str(save_transformer(tmp_path)), device="cpu")
    found = text_attention(encoder, "a dog barks at the cat")
    [tokens] = encoder.tokenize(["a dog barks at the cat"])
    assert len(found.tokens) == len(tokens.ids) == found.total
    assert found.weights.sum(axis=-1) == pytest.approx(1, abs=1e-5)
    module = encoder.library()[0].auto_model
    kept = module.config._attn_implementation
    module.set_attn_implementation("eager")
    with torch.inference_mode():
        ids = torch.tensor([tokens.ids.tolist()])
        wanted = module(input_ids=ids, output_attentions=True).attentions
    assert kept != "eager"  # the model in use was left as it was
    assert found.weights == pytest.approx(np.stack([layer[0].numpy() for layer in wanted]), abs=1e-5)


def test_attention_of_two_texts_says_where_the_second_begins(nli: PairModel) -> None:
    found = pair_attention("a dog barks", "a cat")
    model, tokenizer = build_pairs("bert")
    ids = tokenizer("a dog barks", "a cat", return_tensors="pt")
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        wanted = model(**ids, output_attentions=True).attentions
    assert found.weights == pytest.approx(np.stack([layer[0].numpy() for layer in wanted]), abs=1e-5)
    assert found.second == ids.sequence_ids(0).index(1)
    long = pair_attention("dog " * 200, "cat " * 200)
    assert len(long.tokens) <= tokens.ATTENTION_MOST < long.total


def test_models_without_attention(tmp_path: Path) -> None:
    encoder = load_encoder(str(save_static(tmp_path)), device="cpu")
    with pytest.raises(SondeError, match="has no attention to show"):
        text_attention(encoder, "a dog")
    assert token_matrix(encoder, "a dog", "the dog").similarities.max() == pytest.approx(1, abs=1e-5)


def test_long_and_empty_texts() -> None:
    encoder: Any = FakeEncoder()
    found = token_matrix(encoder, "word", " ".join(f"w{n}" for n in range(60)))
    assert (found.similarities.shape, found.left_out) == ((1, 60), 0)
    assert found.similarities.shape[1] <= MOST
    for call in (lambda: token_matrix(encoder, " ", "a"), lambda: pair_attention("a", " "),
                 lambda: text_attention(encoder, " ")):  # fmt: skip
        with pytest.raises(UsageError, match="text is empty"):
            call()
