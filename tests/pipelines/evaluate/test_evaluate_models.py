"""Forms of a model: each is what its name says, its quality is that of the product's other commands."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import Command, command
from sts_files import PAIRS, stsb
from tiny_models import TEXTS, save_transformer

import sonde
from sonde.indexer.errors import SondeError, UsageError
from sonde.pipelines.evaluate.models import cells, evaluate_models, markdown, read_retrieval, table_notes
from sonde.pipelines.evaluate.search import evaluate_search, modes
from sonde.pipelines.evaluate.sts import evaluate_sts
from sonde.pipelines.evaluate.variants import check_form, load_form, prune
from sonde.pipelines.similarity.pair_file import PairFile

DOCUMENTS = [text for text in TEXTS if text and len(text) < 100] + [one for one, _, _ in PAIRS]
QUERIES = [("1", "reset password", "4"), ("2", "dead battery", "0"), ("3", "a garden", "1"), ("4", "refund", "9")]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_transformer(tmp_path_factory.mktemp("tiny")))


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SONDE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def pairs() -> PairFile:
    firsts, seconds, scores = zip(*PAIRS, strict=True)
    return PairFile("sts.csv", firsts, seconds, scores, ())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set in BEIR's layout."""
    made = tmp_path_factory.mktemp("beir")
    with gzip.open(made / "corpus.jsonl.gz", "wt") as stream:
        stream.writelines(
            json.dumps({"_id": str(n), "title": "", "text": text}) + "\n" for n, text in enumerate(DOCUMENTS)
        )
    (made / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": key, "text": text}) + "\n" for key, text, _ in QUERIES)
    )
    (made / "qrels").mkdir()
    rows = "".join(f"{key}\t{document}\t1\n" for key, _, document in QUERIES)
    (made / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows)
    return made


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return command(capsys, monkeypatch)


def test_retrieval_is_that_of_dense_search_over_a_collection(
    tmp_path: Path, tiny: str, pairs: PairFile, folder: Path
) -> None:
    retrieval = read_retrieval(folder)
    assert (len(retrieval.ids), retrieval.texts[0], len(retrieval.queries)) == (len(DOCUMENTS), DOCUMENTS[0], 4)
    [found] = evaluate_models(pairs, retrieval, model=tiny, forms=["float32"], device="cpu")
    collection = sonde.index(folder / "corpus.jsonl.gz", tmp_path / "c.sonde", model=tiny, device="cpu")
    [expected] = evaluate_search(collection.stored, retrieval.queries, retrieval.qrels, modes(["dense"]))
    assert found.ndcg == pytest.approx(expected.measures["ndcg@10"], abs=1e-6)
    assert 0.1 < expected.measures["ndcg@10"] < 1
    assert found.p is None


def test_each_form_has_the_quality_of_the_model_that_it_names(tiny: str, pairs: PairFile) -> None:
    forms = ["float32", "bfloat16", "dims:8", "static"]
    found = {row.form: row for row in evaluate_models(pairs, model=tiny, forms=forms, device="cpu")}
    assert list(found) == ["float32", "dims:8", "bfloat16", "static"]
    expected = {
        "float32": evaluate_sts([pairs], [tiny], device="cpu"),
        "dims:8": evaluate_sts([pairs], [tiny], device="cpu", truncate_dim=8),
        "bfloat16": evaluate_sts([pairs], [tiny], device="cpu", dtype="bfloat16"),
        "static": evaluate_sts([pairs], [f"static:{tiny}"], device="cpu"),
    }
    for form, [quality] in expected.items():
        assert found[form].spearman == pytest.approx(quality.spearman, abs=1e-6), form
        assert found[form].dimension == quality.dimension
    assert found["bfloat16"].size * 2 == found["float32"].size == found["dims:8"].size
    assert (found["float32"].vector, found["dims:8"].vector) == (64, 16)
    assert found["dims:8"].texts_per_second == found["float32"].texts_per_second


def test_pruning_sets_the_smallest_weights_of_each_layer_to_zero(tiny: str) -> None:
    exact, pruned = load_form(tiny, "float32", "cpu"), load_form(tiny, "pruned:0.25", "cpu")
    pairs = zip(exact.library().modules(), pruned.library().modules(), strict=True)
    layers = [(one.weight.detach(), two.weight.detach(), two) for one, two in pairs if isinstance(one, torch.nn.Linear)]
    assert len(layers) == 13
    for before, after, layer in layers:
        limit = before.abs().flatten().sort().values[before.numel() // 4 - 1]
        np.testing.assert_array_equal(after.numpy(), torch.where(before.abs() > limit, before, 0).numpy())
        assert not hasattr(layer, "weight_orig")  # for good: no mask is left
    changed, kept = pruned.encode_texts(TEXTS), exact.encode_texts(TEXTS)
    assert 0.5 < (changed * kept).sum(axis=1).min() < 0.9999


def test_a_static_model_has_nothing_to_prune(tiny: str) -> None:
    with pytest.raises(UsageError, match="no linear layer that could be pruned"):
        prune(load_form(tiny, "static", "cpu").library(), 0.2)


@pytest.mark.long
def test_int8_by_matrix_and_by_channel(tiny: str) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra int8")
    exact = load_form(tiny, "float32", "cpu").encode_texts(TEXTS)
    found = {form: load_form(tiny, form, "cpu") for form in ("int8-tensor", "int8")}
    near = {form: float((encoder.encode_texts(TEXTS) * exact).sum(axis=1).mean()) for form, encoder in found.items()}
    # Which is nearer depends on the processor for a model this small: without VNNI, sums of 8-bit products overflow.
    assert all(0.9 < each < 0.99999 for each in near.values()) and near["int8-tensor"] != near["int8"]
    assert found["int8-tensor"].loss is not None and found["int8-tensor"].spec.dtype == "int8"


@pytest.mark.parametrize(("form", "written"), [("pruned", "pruned:0.2"), (" int8 ", "int8"), ("dims:064", "dims:64")])
def test_forms(form: str, written: str) -> None:
    assert check_form(form) == written


@pytest.mark.parametrize("form", ["int4", "pruned:1", "pruned:0", "dims", "dims:0", "dims:1.5", ""])
def test_forms_that_are_none(form: str) -> None:
    with pytest.raises(UsageError, match=f"there is no model form {form!r}: give float32, bfloat16"):
        check_form(form)


def test_the_table(tmp_path: Path, tiny: str, pairs: PairFile, folder: Path) -> None:
    forms = ["float32", "dims:4", "pruned"]
    rows = evaluate_models(pairs, read_retrieval(folder), model=tiny, forms=forms, device="cpu", repeats=2)
    assert rows[1].p is not None and 0 < rows[1].p <= 1
    quiet = [replace(row, others=0.0) for row in rows]
    assert [row[0] for row in cells(quiet)] == ["float32", "float32, 4 dimensions", "20% pruned"]
    assert cells(quiet)[0][7] == "1.00" and cells([replace(rows[0], others=0.5)])[0][5].endswith("*")
    assert [note[:14] for note in table_notes(quiet)] == ["Pruned weights", "Shortened vect"]
    assert "up to 50% of the processor" in table_notes([replace(rows[0], others=0.5)])[0]
    page = markdown(quiet, "tiny", "sts.csv", "beir", len(DOCUMENTS))
    assert f"| float32 | 32 | {rows[0].spearman:.4f} | {rows[0].ndcg:.4f} | – |" in page
    assert "neither time nor memory nor disk" in page


def test_on_the_command_line(tmp_path: Path, tiny: str, folder: Path, run: Command) -> None:
    file, to = stsb(tmp_path), tmp_path / "table.md"
    options = ("--model", tiny, "--forms", "float32,dims:8", "--retrieval", folder)
    ran = run("evaluate", "models", "--on", file, *options, "--to", to)
    assert ran.code == 0, ran.err
    assert [line.split("  ")[0] for line in ran.out.splitlines()] == ["form", "float32", "float32, 8 dimensions"]
    assert "| float32, 8 dimensions | 8 |" in to.read_text()
    rows = [json.loads(line) for line in run("evaluate", "models", "--on", file, *options, "--json").out.splitlines()]
    assert [(row["form"], row["dimension"]) for row in rows] == [("float32", 32), ("dims:8", 8)]


def test_mistakes(tmp_path: Path, tiny: str, folder: Path, run: Command) -> None:
    file = stsb(tmp_path)
    on = ("evaluate", "models", "--model", tiny, "--on", file)
    run(*on, "--to", "table.txt").refused("must end in .md", code=2)
    run(*on, "--to", tmp_path / "no" / "t.md").refused("no does not exist")
    run(*on, "--forms", "int9").refused("there is no model form 'int9'", code=2)
    run(*on, "--forms", "dims:8").refused("dims:8 cuts the vectors of float32: name float32 too", code=2)
    run(*on, "--forms", "float32,dims:64").failed("dims:64 is more than the model's 32 dimensions", code=2)
    run(*on, "--repeats", "0").refused("repeats is 0", code=2)
    run(*on, "--retrieval", tmp_path).refused("has no corpus.jsonl: give a folder in BEIR's layout")
    (tmp_path / "corpus.jsonl").write_text((json.dumps({"_id": "x", "text": "a text"}) + "\n") * 2)
    (tmp_path / "queries.jsonl").write_text((folder / "queries.jsonl").read_text())
    (tmp_path / "qrels.tsv").write_text((folder / "qrels" / "test.tsv").read_text())
    with pytest.raises(SondeError, match="names both a query and a document of it: do the ids match"):
        read_retrieval(tmp_path)
