"""Two texts through three kinds of models: each number is that of its own library; what no vector sees is said."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Command, command
from tiny_models import TEXTS, WINDOW, save_transformer
from tiny_pairs import save_pairs

import sonde
from sonde.indexer.errors import SondeError, UsageError
from sonde.pipelines.label import entail
from sonde.pipelines.pairs import load_pair_model
from sonde.pipelines.similarity.similarity import comparison_notes, load_comparison

FULL = [text for text in TEXTS if text]
PAIRS = [(one, two) for one in FULL[:4] for two in FULL[2:]]
Models = tuple[str, str, str]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    """A bi-encoder, a cross-encoder and an NLI model."""
    from sentence_transformers import CrossEncoder

    folder = tmp_path_factory.mktemp("models")
    raw = save_pairs(folder / "raw", "roberta", {0: "score"})
    CrossEncoder(str(raw), device="cpu", max_length=WINDOW).save(str(folder / "cross"))
    return str(save_transformer(folder)), str(folder / "cross"), str(save_pairs(folder / "nli"))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return command(capsys, monkeypatch)


def test_every_number_is_that_of_its_library(models: Models) -> None:
    from sentence_transformers import CrossEncoder, SentenceTransformer

    compare = load_comparison(*models, "cpu")
    found = list(compare(PAIRS))
    assert compare.names == models
    library = SentenceTransformer(models[0], device="cpu")
    firsts, seconds = (library.encode(list(texts), normalize_embeddings=True) for texts in zip(*PAIRS, strict=True))
    expected = (firsts * seconds).sum(axis=1)
    np.testing.assert_allclose([each.cosine for each in found], expected, atol=1e-5)
    angular = 1 - np.arccos(np.clip(expected, -1, 1)) / np.pi
    np.testing.assert_allclose([each.angular for each in found], angular, atol=5e-4)
    scores = CrossEncoder(models[1], device="cpu").predict(PAIRS)
    np.testing.assert_allclose([each.second_stage for each in found], scores, atol=1e-5)  # type: ignore[arg-type]
    nli = load_pair_model(models[2], device="cpu")
    for (one, two), each in zip(PAIRS, found, strict=True):
        for verdict, judged in ((each.forward, entail(one, two, nli)), (each.backward, entail(two, one, nli))):
            assert verdict is not None and verdict.label == judged.label
            assert verdict.entailment == pytest.approx(judged.entailment, abs=1e-5)
            assert verdict.contradiction == pytest.approx(judged.contradiction, abs=1e-5)


def test_late_interaction_against_its_definition(models: Models) -> None:
    encoder = load_comparison(models[0], "late", "none", "cpu").encoder
    found = sonde.similarity(FULL[0], FULL[1], model=models[0], second_stage="late", nli="none", device="cpu")
    one, two = (each.vectors for each in encoder.token_vectors(encoder.tokenize(FULL[:2])))
    alike = one @ two.T
    expected = (alike.max(axis=1).mean() + 0.3 * alike.max(axis=0).mean()) / 1.3
    assert found.second_stage == pytest.approx(float(expected), abs=1e-5)
    assert (found.forward, found.backward, found.paraphrase) == (None, None, None)


def test_what_is_not_asked_for_is_not_loaded(models: Models) -> None:
    found = sonde.similarity("a battery", "refund", model=models[0], second_stage="none", nli="none")
    assert (found.second_stage, found.forward, found.notes) == (None, None, ())
    assert found.to_dict()["paraphrase"] is None


def test_a_text_and_itself(models: Models) -> None:
    found = sonde.similarity(FULL[0], FULL[0], model=models[0], second_stage="late", nli="none")
    assert (found.cosine, found.angular, found.notes) == (1.0, 1.0, ())
    assert found.second_stage == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("An elephant is bigger than a lion.", "A lion is bigger than an elephant.", "same words in another order"),
        ("The dog bit the man", "the man bit the dog!", "same words in another order"),
        ("at 3 pm", "at 5 pm", "other numbers: 3 and 5"),
        ("costs 1,000.50 or 2", "costs 2 or 1,000.50", "same words in another order"),
        ("at 3 pm", "in the afternoon", ""),
        ("Same words.", "same words", ""),
    ],
)
def test_notes(first: str, second: str, expected: str) -> None:
    found = comparison_notes(first, second, 0.9)
    assert (expected in found[0] and len(found) == 1) if expected else found == ()
    assert comparison_notes(first, second, 0.3) == ()


def test_one_pair_on_the_command_line(models: Models, run: Command) -> None:
    options = ("--model", models[0], "--rerank-model", models[1], "--nli", models[2])
    row = json.loads(run("similarity", FULL[0], FULL[1], *options, "--json").out)
    assert (row["model"], row["rerank_model"], row["forward"]["model"]) == models
    ran = run("similarity", FULL[0], FULL[1], *options)
    assert ran.out.splitlines()[0].startswith(f"cosine        {row['cosine']:.3f}  angular {row['angular']:.3f}")
    assert ran.out.splitlines()[1] == f"second stage  {row['second_stage']:.3f}  {models[1]}"
    assert ran.out.splitlines()[2].startswith(f"1 → 2         {row['forward']['label']}  (entailment ")
    assert run("similarity", "the dog bit a man", "a man bit the dog", *options[:2], "--nli", "none").err == (
        "note: the same words in another order: embeddings do not show who does what\n"
    )


def test_a_file_of_pairs(tmp_path: Path, models: Models, run: Command) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("\n".join(["id,premise,hypothesis", "1,a battery,a dead battery", "2,refund,password", ""]))
    options = ("--model", models[0], "--nli", "none")
    rows = [json.loads(line) for line in run("similarity", "--pairs", file, *options, "--json").out.splitlines()]
    assert [(row["first"], row["second"]) for row in rows] == [("a battery", "a dead battery"), ("refund", "password")]
    ran = run("similarity", "--pairs", file, "--columns", "3,2", *options)
    assert "a dead battery | a battery" in ran.out.splitlines()[1]
    assert ran.said[-1].startswith("2 pairs · ")


def test_mistakes(tmp_path: Path, models: Models, run: Command) -> None:
    run("similarity", "a").refused("give two texts, or a file of pairs with --pairs FILE", code=2)
    run("similarity", "a", "b", "--pairs", "x.csv").refused("not both", code=2)
    run("similarity", "a", "b", "--columns", "1,2").refused("give the file with --pairs", code=2)
    run("similarity", "a", " ", "--model", models[0], "--nli", "none").refused("a text is empty", code=2)
    run("similarity", "a", "b", "--rerank-model", "lat").refused("there is no reranker 'lat': give late", code=2)
    run("similarity", "a", "b", "--model", models[0], "--nli", models[1]).refused("is no NLI model")
    run("similarity", "--pairs", tmp_path / "gone.tsv").refused("gone.tsv does not exist")
    with pytest.raises(SondeError, match=r"has 3 labels, a reranker has one"):
        load_comparison(models[0], models[2], "none", "cpu")
    with pytest.raises(UsageError, match="a text of pair 2 is empty"):
        list(load_comparison(models[0], "none", "none", "cpu")([("a", "b"), ("c", "")]))
