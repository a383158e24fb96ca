"""Labels from a few examples: the linear model's own answer, kept as a run, on stored or on tuned vectors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tiny_models
import torch
from command_line import Command, command, inject
from fake_encoder import FakeEncoder

import sonde as package
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.store.collection import StoredCollection
from sonde.pipelines.evaluate.labels import evaluate_labels
from sonde.pipelines.label import LabelSettings
from sonde.pipelines.label.examples import LabelledExample, read_labelled
from sonde.pipelines.train.few_shot import label_by_examples

SUBJECTS = {"garden": ("basil", "frost", "water"), "money": ("profits", "company", "refund"), "post": ("parcel",)}


def rows() -> list[dict[str, str]]:
    return [
        {"id": f"{subject}{n}", "text": f"{subject} {subject} {subject} {words[n % len(words)]} {n}", "truth": subject}
        for subject, words in SUBJECTS.items()
        for n in range(10)
    ]


@pytest.fixture
def collection(tmp_path: Path) -> StoredCollection:
    encoder: Any = FakeEncoder()
    return package.index(rows(), tmp_path / "c.sonde", text="text", id="id", encoder=encoder).stored


def test_examples_teach_the_labels_of_all_documents(collection: StoredCollection) -> None:
    taught = [
        LabelledExample(subject, text=f"{subject}, {subject} {word}") for subject, ws in SUBJECTS.items() for word in ws
    ]
    report = label_by_examples(collection, taught)
    assert (report.engine, report.documents, report.calls) == ("examples", 30, 0)
    assert dict(report.counts) == {"garden": 10, "money": 10, "post": 10}
    assert evaluate_labels(collection, "labels", "truth").accuracy == 1.0
    with pytest.raises(UsageError, match="labels"):
        label_by_examples(collection, taught)


def test_the_regression_is_scikit_learns(collection: StoredCollection) -> None:
    from sklearn.linear_model import LogisticRegression

    taught = [LabelledExample(row["truth"], id=row["id"]) for row in rows()[::3]]
    label_by_examples(collection, taught)
    vectors = 8.0 * collection.encoder.encode_texts([row["text"] for row in rows()])
    model = LogisticRegression(C=1.0, tol=1e-8, max_iter=2000).fit(vectors[::3], [row["truth"] for row in rows()[::3]])
    shares = model.predict_proba(vectors)
    with collection.view() as view:
        sql = "SELECT d.key, i.name, r.score FROM run_documents r JOIN documents d ON d.doc = r.doc"
        sql += " JOIN run_items i ON i.run = r.run AND i.item = r.item"
        stored = {key: (name, score) for key, name, score in view.catalog.connection.execute(sql)}
    for place, row in enumerate(rows()):
        if place % 3 == 0:
            assert stored[row["id"]][0] == row["truth"]  # an example keeps its label
            assert stored[row["id"]][1] > 0.999
        else:
            best = int(np.argmax(shares[place]))
            assert stored[row["id"]][0] == model.classes_[best]
            assert stored[row["id"]][1] == pytest.approx(shares[place, best], abs=5e-3)


@pytest.mark.long
def test_a_tuned_model_reads_the_documents_again(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="needs the extra train")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    base = tiny_models.save_transformer(tmp_path / "base")
    collection: Any = package.index(
        rows(), tmp_path / "c.sonde", text="text", id="id", model=str(base), device="cpu"
    ).stored
    taught = [LabelledExample(row["truth"], id=row["id"]) for row in rows()[::2]]
    settings = LabelSettings(name="tuned", device="cpu")
    report = label_by_examples(collection, taught, settings, fine_tune=tmp_path / "tuned")
    torch.set_num_threads(threads)
    assert report.model == str(tmp_path / "tuned")
    assert evaluate_labels(collection, "tuned", "truth").accuracy > 0.9
    facts = json.loads((tmp_path / "tuned" / "training.json").read_text())
    assert (facts["labels"], facts["examples"]) == (3, 15)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("text,label\na,x\nb,x\n", "examples of one label only, 'x'"),
        ("text,label\na,x\nb,\n", "an example needs a label and a text or an id"),
        ("page,n\na,1\n", r"must have the columns label, and text or id, not page, n"),
        ("id,label\n7,x\n8,y\n7,y\n", "e.csv: the example '7' has two labels, 'x' and 'y': keep the right one"),
        ("id,text,label\n7,a,x\n8,b,y\n7,a,y\n", "e.csv: the example '7' has two labels, 'x' and 'y'"),
    ],
)
def test_examples_that_cannot_be_used_are_one_line(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "e.csv").write_text(content)
    with pytest.raises(SondeError, match=says):
        read_labelled(tmp_path / "e.csv")


def test_texts_of_one_document_may_have_different_labels(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("doc_id,sentence,label\n7,a,x\n7,b,y\n7,a,x\n")
    assert [(each.text, each.id, each.label) for each in read_labelled(tmp_path / "e.csv")] == [
        ("a", None, "x"), ("b", None, "y"), ("a", None, "x"),
    ]  # fmt: skip


def test_a_document_with_two_labels_is_refused_before_a_model_reads(collection: StoredCollection) -> None:
    given = [LabelledExample("a", id="7"), LabelledExample("b", id="8"), LabelledExample("b", id="7")]
    with pytest.raises(UsageError, match=r"^the example '7' has two labels, 'a' and 'b': keep the right one"):
        label_by_examples(collection, given)


def test_an_example_must_be_a_document(collection: StoredCollection) -> None:
    with pytest.raises(SondeError, match=r"'gone' .* is no document"):
        label_by_examples(collection, [LabelledExample("a", id="gone"), LabelledExample("b", text="b")])
    with pytest.raises(UsageError, match="leave out multi_label"):
        label_by_examples(collection, [LabelledExample("a", text="a")], LabelSettings(multi_label=True))


def test_the_command(
    collection: StoredCollection, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder: Any = FakeEncoder()
    inject(monkeypatch, encoder)
    sonde: Command = command(capsys, monkeypatch)
    examples = tmp_path / "e.csv"
    examples.write_text("text,label\nbasil garden garden,garden\nprofits money money,money\nparcel post post,post\n")
    ran = sonde("label", collection.path, "--examples", examples, "--name", "few", "--json")
    assert json.loads(ran.out)["counts"] == {"garden": 10, "money": 10, "post": 10}
    sonde("label", collection.path, "--examples", examples, "--labels", "a,b").refused("give one of --labels", code=2)
    sonde("label", collection.path, "--labels", "a,b", "--fine-tune", tmp_path / "m").refused("--examples", code=2)


def forms(taught: list[dict[str, str]]) -> dict[str, Any]:
    labels = {row["id"]: row["label"] for row in taught}
    return {
        "a table": pd.DataFrame(taught),
        "dictionaries": taught,
        "labels by id": labels,
        "a Series": pd.Series(labels),
        "examples": [package.LabelledExample(row["label"], id=row["id"]) for row in taught],
    }


def test_examples_come_as_a_table_or_as_labels_by_id(collection: StoredCollection) -> None:
    taught = [{"id": row["id"], "label": row["truth"]} for row in rows()[::5]]
    opened: Any = package.Collection(collection)
    for name, given in forms(taught).items():
        assert opened.label_by_examples(given, name=name).counts == {"garden": 10, "money": 10, "post": 10}
    texts = pd.DataFrame(
        {"text": ["garden basil", "money refund", "post parcel"], "label": ["garden", "money", "post"]}
    )
    assert opened.label_by_examples(texts, name="texts").documents == 30


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([("garden0", "garden")], r"^examples is \[\('garden0', 'garden'\)\]: give a path, a table with the columns"),
        (3, "^examples is 3: give a path"),
        (
            pd.DataFrame({"id": ["garden0"], "kind": ["garden"]}),
            "^examples must have the columns label, and text or id",
        ),
        ([{"id": "garden0", "label": None}], "^examples, row 1: an example needs a label"),
        ({"garden0": "garden"}, "^examples has examples of one label only, 'garden'"),
        ({"garden0": 3.5}, r"^3\.5 is not a valid label"),
        ({}, "^examples has no examples: give some"),
    ],
)
def test_other_examples_are_refused(collection: StoredCollection, given: Any, says: str) -> None:
    with pytest.raises(SondeError, match=says):
        package.Collection(collection).label_by_examples(given)
