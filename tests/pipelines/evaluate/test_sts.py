"""Similarity against people's scores: the numbers of the library's own evaluator; files of every kind; mistakes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import Command, command
from sts_files import PAIRS, stsb
from tiny_models import save_static, save_transformer

from sonde.indexer.errors import SondeError, UsageError
from sonde.pipelines.evaluate.sts import evaluate_sts
from sonde.pipelines.similarity.pair_file import PairFile, names_columns, read_pair_file
from sonde.pipelines.similarity.similarity import angular_similarities, cosines, load_symmetric

FIVE = "i j,k l,2\n" * 5
HEADER = ("sentence1", "sentence2", "score")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_transformer(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def sonde(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return command(capsys, monkeypatch)


def test_the_numbers_are_those_of_the_library_s_evaluator(tmp_path: Path, tiny: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    [found] = evaluate_sts([read_pair_file(stsb(tmp_path), scored=True)], [str(tiny)])
    firsts, seconds, scores = zip(*PAIRS, strict=True)
    library = EmbeddingSimilarityEvaluator(list(firsts), list(seconds), list(scores), write_csv=False)
    expected = library(SentenceTransformer(str(tiny), device="cpu"))
    assert found.spearman == pytest.approx(expected["spearman_cosine"], abs=1e-6)
    assert found.pearson == pytest.approx(expected["pearson_cosine"], abs=1e-6)
    assert found.spearman_angular == pytest.approx(found.spearman, abs=1e-6)
    assert found.pearson_angular != pytest.approx(found.pearson, abs=1e-6)
    assert found.interval[0] < found.spearman < found.interval[1]
    assert (found.pairs, found.sentences, found.dimension, found.size) == (6, 11, 32, tensors(tiny))


def tensors(model: Path) -> int:
    from safetensors.numpy import load_file

    return sum(tensor.nbytes for tensor in load_file(model / "model.safetensors").values())


def test_the_default_prompt_of_a_model_is_used_as_its_library_does(tiny: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    library = SentenceTransformer(str(tiny), device="cpu", default_prompt_name="query")
    library.save(str(tmp_path / "prompted"))
    texts = [one for one, _, _ in PAIRS]
    ours = load_symmetric(str(tmp_path / "prompted")).encode_texts(texts)
    np.testing.assert_allclose(ours, library.encode(texts, normalize_embeddings=True), atol=1e-5)
    plain = load_symmetric(str(tmp_path / "prompted"), "").encode_texts(texts)
    np.testing.assert_allclose(plain, library.encode(texts, prompt="", normalize_embeddings=True), atol=1e-5)
    assert np.abs(plain - ours).max() > 0.01


def test_angles_against_the_definition() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.standard_normal((2, 50, 8)).astype(np.float32)
    second[0], second[1] = first[0] * 2, -first[1]
    expected = (first * second).sum(axis=1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    np.testing.assert_allclose(cosines(first, second), expected, atol=1e-6)
    angular = 1 - np.arccos(np.clip(expected, -1, 1)) / np.pi
    np.testing.assert_allclose(angular_similarities(first, second), angular, atol=2e-4)
    assert angular_similarities(first, second)[:2].tolist() == [1.0, 0.0]
    assert cosines(first, second)[0] == 1.0


def test_files_of_every_layout_hold_the_same_pairs(tmp_path: Path) -> None:
    rows = [dict(zip(HEADER, row, strict=True)) for row in PAIRS]
    plain = read_pair_file(stsb(tmp_path), scored=True)
    assert (plain.firsts, plain.columns) == (tuple(row[0] for row in PAIRS), ("1", "2", "3"))
    named = tmp_path / "named.csv"
    named.write_text("sentence1,sentence2,score\n" + stsb(tmp_path).read_text())
    tabs = tmp_path / "pairs.tsv"
    tabs.write_text("split\tScore\tSentence A\tSentence B\n" + "".join(f"x\t{s}\t{a}\t{b}\n" for a, b, s in PAIRS))
    lines = tmp_path / "pairs.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "pairs.parquet")
    for path in (named, tabs, lines, tmp_path / "pairs.parquet"):
        found = read_pair_file(path, scored=True)
        assert (found.firsts, found.seconds, found.scores) == (plain.firsts, plain.seconds, plain.scores), path


def test_a_file_of_pairs_without_scores(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("Ein Hund bellt.\tA dog barks.\nEine Katze schläft.\tA cat sleeps.\n")
    found = read_pair_file(path)
    assert (found.firsts, found.seconds) == (
        ("Ein Hund bellt.", "Eine Katze schläft."),
        ("A dog barks.", "A cat sleeps."),
    )
    path.write_text("deu\teng\n" + path.read_text())
    assert (read_pair_file(path).firsts, read_pair_file(path).columns) == (found.firsts, ("deu", "eng"))
    (tmp_path / "one.csv").write_text("A dog barks.,Rain fell.\n")
    assert read_pair_file(tmp_path / "one.csv").seconds == ("Rain fell.",)
    path.rename(tmp_path / "pairs.txt")
    assert read_pair_file(tmp_path / "pairs.txt").seconds == found.seconds


@pytest.mark.parametrize(
    ("cells", "heading"),
    [(["deu", "eng"], True), (["Sentence 1", "x y z"], True), (["A dog.", "Ein Hund."], False), (["a", "a"], True),
     (["ja", "ja"], False), (["refund?", "delivery"], False), (["犬", "dog"], False)],
)  # fmt: skip
def test_what_is_a_heading(cells: list[str], heading: bool) -> None:
    assert names_columns(cells) is heading


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (f"a b,c d,1\ne f,g h,n/a\n{FIVE}", {}, "row 2: the score in column 3 is not a number: 'n/a'"),
        ("a b,c d,nan\ne f,g h,1\ni j,k l,2", {}, "row 1: the score in column 3 is not a number: 'nan'"),
        ("a b,c d,7\ne f,g h,1\ni j,k l,2", {}, "row 1: the score 7 is not between 0 and 5: if it is right, give sc"),
        ("a b,c d\ne f,g h\n", {}, "has no column of scores among the columns 1, 2: give columns"),
        ("a b,1\ne f,2\n", {}, "which two columns are the texts? It has the columns 1, 2: give columns"),
        ("a b,c d,1,2\ne f,g h,1,2\n", {}, "has 2 columns of numbers among the columns 1, 2, 3, 4: give columns"),
        ("a b,c d,1\n,g h,2\ni j,k l,3\n", {}, "row 2: column 1 is empty"),
        ("a b,c d,1\n", {"columns": "1,2"}, "columns '1,2' must name 3 different columns: the columns 1, 2, 3"),
        ("a b,c d,1\n", {"columns": "1,2,4"}, "has no column '4'; it has the columns 1, 2, 3"),
        ("one,two,score\na b,c d,1\n", {"columns": "one,tow,score"}, r"no column 'tow' (did you mean 'two'?); it has"),
        ("", {}, "is empty: give a file with content"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_right(tmp_path: Path, text: str, options: dict[str, Any], message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(SondeError) as caught:
        read_pair_file(path, scored=True, scale=(0, 5), **options)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_correlations_that_are_not_defined(tmp_path: Path, tiny: Path) -> None:
    two = PairFile("two.csv", ("a", "b"), ("c", "d"), (1.0, 2.0), ())
    with pytest.raises(SondeError, match=r"two.csv has 2 pairs: a correlation needs at least 3"):
        evaluate_sts([two], [str(tiny)])
    same = PairFile("same.csv", ("a", "b", "c"), ("d", "e", "f"), (2.5,) * 3, ())
    with pytest.raises(SondeError, match=r"all 3 scores of same.csv are 2.5: a correlation needs different ones"):
        evaluate_sts([same], [str(tiny)])
    alike = PairFile("alike.csv", ("a", "b", "c"), ("a", "b", "c"), (1.0, 2.0, 3.0), ())
    with pytest.raises(SondeError, match=r"gives all pairs of alike.csv the same similarity: there is no correlation"):
        evaluate_sts([alike], [str(tiny)])


def test_several_models_and_files_on_the_command_line(tmp_path: Path, tiny: Path, sonde: Command) -> None:
    one, two, static = stsb(tmp_path), stsb(tmp_path, PAIRS[::-1], "two.csv"), save_static(tmp_path)
    ran = sonde("evaluate", "sts", one, two, "--model", tiny, "--model", static, "--json")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [(row["file"], row["model"]) for row in rows] == [
        (file, str(model.resolve())) for file in ("sts.csv", "two.csv") for model in (tiny, static)
    ]
    assert rows[0]["spearman"] == pytest.approx(rows[2]["spearman"])
    ran = sonde("evaluate", "sts", one, "--model", tiny)
    assert ran.out.splitlines()[0] == "sts.csv: 6 pairs, 11 sentences"
    assert f"{rows[0]['spearman']:.4f}" in ran.out.splitlines()[2]


def test_mistakes_on_the_command_line(tmp_path: Path, tiny: Path, sonde: Command) -> None:
    sonde("evaluate", "sts", tmp_path / "gone.csv").refused("gone.csv does not exist: check the path")
    file = stsb(tmp_path)
    sonde("evaluate", "sts", file, "--scale", "5,0").refused("--scale '5,0' is not a valid range", code=2)
    sonde("evaluate", "sts", file, "--model", "statik").refused("did you mean 'static'?", code=2)
    sonde("evaluate", "sts", file, "--scale", "0,4").refused("row 1: the score 4.6 is not between 0 and 4")
    (tmp_path / "pairs.dat").write_text("a b,c d,1\n")
    sonde("evaluate", "sts", tmp_path / "pairs.dat").refused("pairs.dat: name it .csv, .tsv, .jsonl", code=2)
    sonde("evaluate", "sts", tmp_path, "--model", tiny).refused("cannot be read: Is a directory")


@pytest.mark.long
def test_the_default_model_on_stsb(shared_data: Any) -> None:
    file = read_pair_file(shared_data / "sts/stsb-en-dev.csv", scored=True, scale=(0, 5))
    assert len(file) == 1_500
    with pytest.raises(UsageError, match="no column 'sentence1'"):
        read_pair_file(shared_data / "sts/stsb-en-dev.csv", scored=True, columns="sentence1,sentence2,score")
    some = PairFile(file.name, file.firsts[::10], file.seconds[::10], file.scores[::10], file.columns)
    [found] = evaluate_sts([some], ["all-MiniLM-L6-v2"])
    assert found.spearman == pytest.approx(0.87, abs=0.03)  # 0.8672 over all pairs (docs/similarity.md)
