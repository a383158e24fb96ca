"""Training a reranker: wrong passages are mined and checked, and a tiny model learns the order."""
# ruff: noqa: F811  (fixtures that are imported)

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import Command, command
from fake_encoder import FakeEncoder
from tiny_training import base, one_thread  # noqa: F401  (fixtures)

from sonde.indexer.errors import SondeError, UsageError
from sonde.pipelines.pairs import load_pair_model
from sonde.pipelines.train import TrainSettings, train_reranker
from sonde.pipelines.train.nli import new_classifier
from sonde.pipelines.train.pairs import BETTER, SAME, Premise, TrainingQuery, mine_negatives, read_training_queries
from sonde.pipelines.train.reranker import RankLearner, rank_quality

FAST = TrainSettings(epochs=12, rate=5e-3, batch_tokens=256, max_tokens=32, dtype="float32", seed=3)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Passages with "died" answer, passages with "like" do not."""
    path = tmp_path / "answers.jsonl"
    nouns = ("battery", "password", "tomatoes", "profits", "company", "frost")
    rows = [
        {"query": f"{noun} {n}", "passage": f"the {noun} died {n}", "negatives": [f"the {noun} like {n}"]}
        for noun in nouns
        for n in range(4)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


class Planted(FakeEncoder):
    """Texts with vectors put in by hand; all others as the fake encoder has them."""

    spec = replace(FakeEncoder.spec, digest="2" * 64)  # similarities of another scale, which is kept per model

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        super().__init__()
        self.planted = vectors

    def encode_texts(self, texts: Any, query: bool = False) -> np.ndarray:
        found = np.zeros((len(texts), 3), np.float32)
        for place, text in enumerate(texts):
            found[place] = self.planted.get(text, (0.0, 0.6, 0.8))  # the reference texts of relevance
        return found


def test_wrong_passages_are_found_and_those_that_look_right_are_left_out() -> None:
    vectors = {
        "battery died": [1.0, 0.0, 0.0],
        "the battery died": [0.6, 0.8, 0.0],
        "a battery died early": [0.6, 0.79, 0.1],  # nearly the right passage
        "this battery died twice": [0.9, 0.0, 0.43],  # nearer to the query than the right one
        "battery of tests": [0.5, 0.0, 0.86],
        "charge the battery": [0.3, 0.0, 0.95],
    }
    queries = [
        TrainingQuery("battery died", ("the battery died",)),
        *(TrainingQuery(text, (text,)) for text in vectors if text != "battery died"),
    ]
    encoder: Any = Planted(vectors)
    found = mine_negatives(queries, encoder, 5)[0]
    assert set(found.wrong) == {"battery of tests", "charge the battery"}
    assert (SAME, BETTER) == (0.92, 1.05)


def test_given_wrong_passages_come_first_and_count() -> None:
    texts = [f"the battery number {n}" for n in range(6)]
    queries = [TrainingQuery("battery", (texts[0],), (texts[5],)), *(TrainingQuery(text, (text,)) for text in texts)]
    vectors = {text: [0.5, 0.1 * n, 0.86 - 0.1 * n] for n, text in enumerate(texts)} | {"battery": [1.0, 0.0, 0.0]}
    encoder: Any = Planted(vectors)
    found = mine_negatives(queries, encoder, 2)[0]
    assert (found.wrong[0], len(found.wrong)) == (texts[5], 2)
    assert texts[0] not in found.wrong


def test_the_loss_is_that_of_the_right_passage_among_its_list(base: Path) -> None:
    model, tokenizer = new_classifier(str(base), 3, ("relevance",))
    lists = [Premise("the battery", (("died", "right"), ("like", "wrong"), ("how", "wrong")))]
    learner = RankLearner(model, tokenizer, lists, 32)
    with torch.no_grad():
        scores = [
            model(**tokenizer("the battery", text, return_tensors="pt")).logits.item() for text, _ in lists[0].pairs
        ]
        loss = learner.loss(np.array([0])).item()
    assert loss == pytest.approx(np.log(np.exp(scores).sum()) - scores[0], abs=1e-4)


def test_ranks_count_ties_against_the_model() -> None:
    queries = [TrainingQuery("a", ("r",), ("w", "v")), TrainingQuery("b", ("r", "s"), ("w",))]
    found = rank_quality(queries, [np.array([1.0, 1.0, 0.0]), np.array([0.0, 2.0, 1.0])])
    assert (found.mrr, found.first, found.queries) == (0.75, 0.5, 2)


def test_a_trained_folder_orders_passages(base: Path, data: Path, tmp_path: Path) -> None:
    made = train_reranker(data, tmp_path / "mine", base=str(base), settings=FAST, negatives=1, share=0.2, device="cpu")
    assert (made.after.queries, made.after.first) == (5, 1.0)
    assert made.report.losses[-1][1] < made.report.losses[0][1] or made.report.losses[0][1] < 0.5
    model = load_pair_model(str(tmp_path / "mine"))
    assert (model.num_labels, model.activation) == (1, "Sigmoid")
    logits = model.logits([("frost 2", "the frost died 2"), ("frost 2", "the frost like 2")])[:, 0]
    assert logits[0] > logits[1]


def test_lines_of_one_query_are_one_query(tmp_path: Path) -> None:
    rows = [
        {"query": "a", "passage": "p", "negatives": ["n", "q"]},
        {"query": "b", "passage": "r"},
        {"query": "a", "passage": "q"},
    ]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_training_queries(tmp_path / "q.jsonl") == [
        TrainingQuery("a", ("p", "q"), ("n",)),
        TrainingQuery("b", ("r",)),
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "holds no queries"),
        ('{"query": "a"}\n', "line 1: 'passage' must be a text, not None"),
        ('{"query": "a", "passage": "b", "negatives": "c"}\n', "line 1: 'negatives' must be a list"),
        ('{"query": "a", "passage": "b", "negatives": [1]}\n', "line 1: 'negatives' must be a text, not 1"),
    ],
)
def test_data_that_cannot_be_used_is_one_line(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "bad.jsonl").write_text(content)
    with pytest.raises(SondeError, match=says):
        read_training_queries(tmp_path / "bad.jsonl")


def test_mistakes_are_found_before_anything_is_loaded(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="between 1 and 30"):
        train_reranker(data, tmp_path / "mine", negatives=0)
    (tmp_path / "one.jsonl").write_text('{"query": "a", "passage": "b"}\n')
    with pytest.raises(SondeError, match="one query only"):
        train_reranker(tmp_path / "one.jsonl", tmp_path / "mine")


def test_the_command_trains(
    base: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sonde: Command = command(capsys, monkeypatch)
    options = ("--to", str(tmp_path / "mine"), "--base", str(base), "--share", "0.2", "--max-tokens", "32")
    ran = sonde("train", "reranker", str(data), *options, "--device", "cpu", "--json")
    said = json.loads(ran.out)
    assert (ran.code, said["folder"], said["queries"]) == (0, str(tmp_path / "mine"), 5)
    sonde("train", "reranker", str(data), *options).refused("already exists", code=2)
