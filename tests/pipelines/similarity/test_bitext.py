"""Two languages in one space: search across them, mined translations against the definition, pictures."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Command, command
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_multilingual import WORDS, save_multilingual, sentences

import sonde
from sonde.indexer.errors import SondeError, UsageError
from sonde.pipelines.evaluate.bitext import Sides, best_cut, bilingual_map, evaluate_bitext, histogram, nearest_wrong
from sonde.pipelines.similarity.bitext import LEAST, Mined, mine_pairs, read_sentences
from sonde.pipelines.similarity.pair_file import PairFile, read_pair_file

GERMAN, ENGLISH = sentences("de"), sentences("en")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_multilingual(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model that knows both languages badly."""
    return str(save_multilingual(tmp_path_factory.mktemp("noisy"), 1.2))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return command(capsys, monkeypatch)


def unit(rng: np.random.Generator, count: int, dimension: int = 6) -> np.ndarray:
    vectors = rng.standard_normal((count, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("mode", ["dense", "hybrid"])
@pytest.mark.parametrize("asked", ["en", "fr"])
def test_a_search_in_one_language_finds_texts_of_another(tmp_path: Path, model: str, mode: str, asked: str) -> None:
    rows = [{"id": str(n), "text": text} for n, text in enumerate(GERMAN)]
    made = sonde.index(rows, tmp_path / "german.sonde", model=model)
    found = made.search_many(sentences(asked), k=1, mode=mode)  # type: ignore
    assert [results[0].id for results in found] == [row["id"] for row in rows]


def test_a_collection_of_several_languages(tmp_path: Path, model: str) -> None:
    texts = {f"{language} {word}": word for language, words in WORDS.items() for word in words}
    made = sonde.index([{"id": key, "text": text} for key, text in texts.items()], tmp_path / "c.sonde", model=model)
    for place, word in enumerate(WORDS["fr"]):
        found = {hit.id for hit in made.search(word, k=3, mode="dense")}
        assert found == {f"{language} {words[place]}" for language, words in WORDS.items()}


def naive(first: np.ndarray, second: np.ndarray, k: int) -> list[tuple[int, int, float]]:
    """The definition, pair by pair."""
    cosines = first.astype(np.float64) @ second.T.astype(np.float64)
    k_first, k_second = min(k, len(second)), min(k, len(first))
    ours = [np.sort(row)[-k_first:].sum() / (2 * k_first) for row in cosines]
    theirs = [np.sort(column)[-k_second:].sum() / (2 * k_second) for column in cosines.T]
    margin = cosines / np.maximum(np.add.outer(ours, theirs), LEAST)
    candidates = set()
    for row in range(len(first)):
        near = np.argsort(-cosines[row], kind="stable")[:k_first]
        candidates.add((row, int(near[margin[row, near].argmax()])))
    for column in range(len(second)):
        near = np.argsort(-cosines[:, column], kind="stable")[:k_second]
        candidates.add((int(near[margin[near, column].argmax()]), column))
    found: list[tuple[int, int, float]] = []
    for one, two in sorted(candidates, key=lambda pair: -margin[pair]):
        if one not in {row for row, _, _ in found} and two not in {column for _, column, _ in found}:
            found.append((one, two, float(margin[one, two])))
    return found


@settings(max_examples=60)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 5), st.integers(0, 1_000))
def test_mining_is_its_definition(n: int, m: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = unit(rng, n), unit(rng, m)
    found, expected = mine_pairs(first, second, k), naive(first, second, k)
    assert sorted(found.rows.tolist()) == sorted([one, two] for one, two, _ in expected)
    np.testing.assert_allclose(found.scores, [margin for _, _, margin in expected], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        found.cosines, (first[found.rows[:, 0]] * second[found.rows[:, 1]]).sum(axis=1), atol=1e-6
    )


def test_a_crowd_misleads_the_cosine_and_not_the_margin() -> None:
    """Twenty sentences on each side that are all alike, none a translation, beside twenty translations far apart."""
    rng = np.random.default_rng(2)
    crowd, apart = unit(rng, 1, 32), unit(rng, 20, 32)
    first = np.concatenate([crowd + 0.4 * unit(rng, 20, 32), apart + 0.8 * unit(rng, 20, 32)])
    second = np.concatenate([crowd + 0.4 * unit(rng, 20, 32), apart])
    one, two = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (first, second))
    truth = frozenset((row, row) for row in range(20, 40))
    by_margin, by_cosine = (best_cut(mine_pairs(one, two, 4, score), truth)[3] for score in ("margin", "cosine"))
    assert by_margin == 1 and by_cosine < 0.8


def test_translations_are_found_whatever_the_order(model: str) -> None:
    order = np.random.default_rng(1).permutation(len(ENGLISH))
    found = sonde.mine_bitext(GERMAN + GERMAN[:3], [ENGLISH[place] for place in order], model=model)
    assert {(pair.first, pair.second) for pair in found} == set(zip(GERMAN, ENGLISH, strict=True))
    assert [pair.margin for pair in found] == sorted((pair.margin for pair in found), reverse=True)
    most = found[4].margin
    assert sonde.mine_bitext(GERMAN, ENGLISH, model=model, threshold=most + 1e-9) == found[:4]


def test_quality_of_a_good_and_of_a_bad_model(model: str, noisy: str) -> None:
    file = PairFile("pairs.tsv", tuple(GERMAN), tuple(ENGLISH), (), ("deu", "eng"))
    [good], [bad] = (evaluate_bitext([file], name) for name in (model, noisy))
    assert (good.forward, good.backward, good.forward_margin, good.backward_margin) == (1, 1, 1, 1)
    assert (good.precision, good.recall, good.f1, good.cosine_f1, good.pairs) == (1, 1, 1, 1, 40)
    assert bad.f1 < 0.9 and bad.forward < 0.9
    assert bad.f1 == pytest.approx(2 * bad.precision * bad.recall / (bad.precision + bad.recall))


def test_the_best_cut_against_every_threshold() -> None:
    rng = np.random.default_rng(4)
    scores = np.sort(np.round(rng.random(50), 1))[::-1]
    mined = Mined(np.stack([np.arange(50), np.arange(50)], axis=1), scores, scores)
    truth = frozenset((int(n), int(n)) for n in rng.choice(60, 30, replace=False))
    tried = []
    for threshold in np.unique(scores):
        kept = [row for row, score in enumerate(scores) if score >= threshold]
        right = sum((row, row) in truth for row in kept)
        tried.append((2 * right / (len(kept) + len(truth)), threshold, right / len(kept), right / len(truth)))
    threshold, precision, recall, f1 = best_cut(mined, truth)
    assert (f1, threshold, precision, recall) == pytest.approx(max(tried))


def test_a_sentence_with_two_translations_has_two_right_answers(model: str) -> None:
    file = PairFile("pairs.tsv", ("hund", "hund", "katze"), ("dog", "dog dog", "cat"), (), ("1", "2"))
    [found] = evaluate_bitext([file], model)
    assert (found.pairs, found.forward, found.backward) == (3, 1, 1)
    assert (found.precision, found.recall) == (1, pytest.approx(2 / 3))  # one pair for each sentence


def test_pictures(tmp_path: Path, model: str) -> None:
    file = PairFile("pairs.tsv", tuple(GERMAN), tuple(ENGLISH), (), ("deu", "eng"))
    sides = Sides.of(file, sonde.load_encoder(model))
    drawn = histogram(sides, model)
    assert drawn.names[0] == "translations" and len(drawn.values[0]) == 40
    edges, shares = drawn.shares()
    assert [float(heights.sum()) for heights in shares] == pytest.approx([1, 1, 1])
    assert len(edges) == 51 and edges[0] == min(values.min() for values in drawn.values)
    cosines = sides.first @ sides.second.T
    for row, other in sides.truth:
        cosines[row, other] = -2
    np.testing.assert_allclose(nearest_wrong(sides), cosines.max(axis=1), atol=1e-6)
    pytest.importorskip("umap", reason="needs the extra cluster")
    linked = bilingual_map(sides, model)
    lines, *points = linked.interactive().data
    assert (lines.mode, len(lines.x)) == ("lines", 3 * 40)
    assert [trace.name for trace in points[:2]] == ["deu", "eng"]
    assert linked.still().axes[0].collections[-1].get_segments()[0].shape == (2, 2)


def test_on_the_command_line(tmp_path: Path, model: str, run: Command) -> None:
    one, two, to = tmp_path / "de.txt", tmp_path / "en.csv", tmp_path / "pairs.tsv"
    one.write_text("\n".join(GERMAN) + "\n")
    two.write_text("text\n" + "\n".join(reversed(ENGLISH)) + "\n")
    rows = [json.loads(line) for line in run("bitext", one, two, "--model", model, "--json").out.splitlines()]
    assert {(row["first"], row["second"]) for row in rows} == set(zip(GERMAN, ENGLISH, strict=True))
    ran = run("bitext", one, two, "--model", model, "--to", to)
    assert ran.out == "" and ran.said[-1] == f"40 pairs of 40 and 40 sentences · {to}"
    mined = read_pair_file(to)
    assert (mined.columns, mined.firsts[0]) == (("source", "target"), rows[0]["first"])
    ran = run("evaluate", "bitext", to, "--model", model, "--histogram", tmp_path / "h.png")
    assert ran.out.splitlines()[-1].split()[:3] == ["pairs.tsv", "40", "1.000"]
    assert (tmp_path / "h.png").read_bytes().startswith(b"\x89PNG")
    assert (
        run("bitext", one, two, "--model", model)
        .out.splitlines()[1]
        .endswith(f"{rows[0]['first']} | {rows[0]['second']}")
    )


def test_mistakes(tmp_path: Path, model: str, run: Command) -> None:
    one = tmp_path / "de.txt"
    one.write_text("hund\nkatze\n")
    run("bitext", one, tmp_path / "gone.txt").refused("gone.txt does not exist")
    run("bitext", one, one, "--model", model, "-k", "0").refused(
        "-k is 0: take the margin over at least 1 neighbour", code=2
    )
    run("bitext", one, one, "--to", "pairs.csv").refused("must end in .tsv", code=2)
    run("bitext", one, one, "--to", tmp_path / "no" / "p.tsv").refused("no does not exist")
    run("bitext", one, one, "--threshold", "nan").refused("is not a valid margin", code=2)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("deu\teng\nhund\tdog\n")
    on = ("evaluate", "bitext", pairs, "--model", model)
    run(*on).refused("pairs.tsv has fewer than 3 pairs")
    run(*on, "--map", "map.pdf").refused("must end in .html, .png or .svg", code=2)
    run(*on, pairs, "--map", tmp_path / "m.png").refused("a plot shows one file, not 2", code=2)
    run(*on, "--seed", "-1").refused("--seed is -1: give 0 or more", code=2)
    run(*on, "--columns", "deu").refused("--columns 'deu' must name 2 different columns", code=2)
    with pytest.raises(SondeError, match="one side has no sentence"):
        sonde.mine_bitext(["hund"], [" "], model=model)
    with pytest.raises(UsageError, match="unknown model 'multilingual'"):
        sonde.mine_bitext(["hund"], ["dog"], model="multilingual")


@pytest.mark.long
def test_real_translations(shared_data: Any) -> None:
    file = read_pair_file(shared_data / "parallel/tatoeba-deu-eng.tsv")
    assert (len(file), file.columns) == (1_000, ("deu", "eng"))
    some = PairFile(file.name, file.firsts[:200], file.seconds[:200], (), file.columns)
    [found] = evaluate_bitext([some], "all-MiniLM-L6-v2")
    assert 0.1 < found.f1 < 0.6  # the default model knows little German (docs/crosslingual.md)
    assert len(read_sentences(shared_data / "parallel/tatoeba-deu-eng.tsv")) == 1_000
