"""Questions and answers: the best answer or none, a threshold from examples, and whether the model fits."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Command, command, inject
from fake_encoder import FakeEncoder

import sonde as package
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.store.collection import StoredCollection
from sonde.pipelines.search.ask import ask, fit_of_model
from sonde.pipelines.search.settings import SearchDefaults, store_defaults, stored_defaults
from sonde.pipelines.tune.threshold import Question, find_threshold, read_questions

THINGS = (
    "battery",
    "parcel",
    "screen",
    "refund",
    "garden",
    "music",
    "kettle",
    "lamp",
    "chair",
    "window",
    "oven",
    "shoe",
)


@pytest.fixture
def faq(tmp_path: Path) -> StoredCollection:
    encoder: Any = FakeEncoder()
    rows = [{"id": str(n), "question": f"How do I return a {thing}?", "answer": f"Send the {thing} back."}
            for n, thing in enumerate(THINGS)]  # fmt: skip
    return package.index(rows, tmp_path / "faq.sonde", text="question", id="id", encoder=encoder).stored


def examples() -> tuple[list[Question], list[Question]]:
    answered = [Question(f"how to return a {thing}", (str(n),)) for n, thing in enumerate(THINGS)]
    return answered, [Question(f"who wrote the {n} novel about whales") for n in range(12)]


def test_the_answer_is_the_field_and_below_the_threshold_there_is_none(faq: StoredCollection) -> None:
    found = ask(faq, "how do I return a kettle", threshold=0.5)
    assert (found.answer, found.hit and found.hit.id) == ("Send the kettle back.", "6")
    assert found.similarity is not None and found.similarity > 0.5
    nothing = ask(faq, "how do I return a kettle", threshold=1.01)
    assert (nothing.answer, nothing.hit, nothing.threshold) == (None, None, 1.01)
    assert nothing.similarity == found.similarity
    assert ask(faq, "return a lamp", field="question") if "question" in faq.open_catalog().fields() else True


def test_the_stored_threshold_is_heeded(faq: StoredCollection) -> None:
    unset = ask(faq, "return a lamp")
    assert unset.hit is not None and "no threshold is stored" in unset.notes[0]
    assert ask(faq, "who wrote the novel").hit is None, "its relevance is weak"
    store_defaults(faq, SearchDefaults(threshold=0.99))
    found = ask(faq, "who wrote the novel")
    assert (found.hit, found.threshold, found.notes) == (None, 0.99, ())


def test_the_threshold_has_the_highest_f1_of_all_on_its_half(faq: StoredCollection) -> None:
    found = find_threshold(faq, *examples())
    assert (found.answered, found.unanswerable, found.aware) == (12, 12, True)
    assert found.learned.f1 == max(point.f1 for point in [found.learned])
    hits = list(package.Collection(faq).search_many([q.text for part in examples() for q in part], k=1, mode="dense"))
    scores = np.array([results[0].scores.dense for results in hits])
    right = np.array([results[0].id == str(n) for n, results in enumerate(hits[:12])] + [False] * 12)
    has = np.arange(24) < 12
    for point in found.curve:
        given = scores >= point.threshold
        assert point.recall == pytest.approx((given & right).sum() / 12)
        assert point.false_answers == pytest.approx((given & ~has).sum() / 12)
        assert point.precision == pytest.approx((given & right).sum() / max(1, given.sum()))
    assert found.checked.recall > 0.8
    assert found.checked.false_answers < 0.2


def test_without_ids_every_hit_above_the_threshold_is_right(faq: StoredCollection) -> None:
    answered, unanswerable = examples()
    found = find_threshold(faq, [replace(question, answers=()) for question in answered], unanswerable)
    assert found.aware is False
    assert found.curve[0].recall == 1.0


def test_questions_come_from_lines_or_tables(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("\n".join(f"question {n}" for n in range(10)) + "\n\n")
    assert read_questions(tmp_path / "q.txt")[3] == Question("question 3")
    (tmp_path / "q.csv").write_text("question,id\n" + "".join(f"q{n % 11},{n}\n" for n in range(12)))
    assert read_questions(tmp_path / "q.csv")[0] == Question("q0", ("0", "11"))
    (tmp_path / "few.txt").write_text("one\n")
    with pytest.raises(SondeError, match="1 question: at least 10"):
        read_questions(tmp_path / "few.txt")
    (tmp_path / "bad.csv").write_text("page,n\n" + "a,1\n" * 12)
    with pytest.raises(UsageError, match="a column question, not page, n"):
        read_questions(tmp_path / "bad.csv")


def test_what_cannot_be_asked_is_one_line(faq: StoredCollection) -> None:
    answered, unanswerable = examples()
    with pytest.raises(UsageError, match="'lexical' has not"):
        ask(faq, "x", mode="lexical")
    with pytest.raises(UsageError, match=r"no field 'reply'.*answer"):
        ask(faq, "x", field="reply")
    with pytest.raises(SondeError, match="2 unanswerable questions"):
        find_threshold(faq, answered, unanswerable[:2])
    with pytest.raises(SondeError, match="do the ids match those of the collection"):
        find_threshold(faq, [Question(q.text, ("elsewhere",)) for q in answered], unanswerable)


@pytest.mark.parametrize(
    ("name", "prompt", "text", "says"),
    [
        ("org/msmarco-bert-base", "", "How do I return a {}?", "symmetric model compares these better"),
        ("org/any", "query: ", "How do I return a {}?", "marks queries and documents differently"),
        ("org/paraphrase-mpnet-base", "", "The {} was sent back by a customer after it had broken.", "holds passages"),
        ("org/paraphrase-mpnet-base", "", "How do I return a {}?", None),
        ("all-MiniLM-L6-v2", "", "How do I return a {}?", None),
        ("intfloat/e5-small", "query: ", "How do I return a {}?", None),
    ],
)
def test_a_model_that_does_not_fit_is_warned_of(
    tmp_path: Path, name: str, prompt: str, text: str, says: str | None
) -> None:
    encoder: Any = FakeEncoder()
    encoder.spec = replace(FakeEncoder.spec, name=name, query_prompt=prompt)
    rows = [{"text": text.format(thing)} for thing in THINGS]
    collection = package.index(rows, tmp_path / "c.sonde", text="text", encoder=encoder).stored
    found = fit_of_model(collection)
    assert (found is None) == (says is None)
    assert says is None or says in (found or "")


def test_the_commands(
    faq: StoredCollection, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder: Any = FakeEncoder()
    inject(monkeypatch, encoder)
    sonde: Command = command(capsys, monkeypatch)
    answered, unanswerable = examples()
    table = "question,id\n" + "".join(f"{q.text},{q.answers[0]}\n" for q in answered)
    (tmp_path / "answered.csv").write_text(table)
    (tmp_path / "unanswerable.txt").write_text("\n".join(q.text for q in unanswerable))
    options = ("--answered", tmp_path / "answered.csv", "--unanswerable", tmp_path / "unanswerable.txt")
    plot = tmp_path / "curve.html"
    ran = sonde("tune", "threshold", faq.path, *options, "--plot", plot)
    assert ran.code == 0, ran.err
    threshold = stored_defaults(faq).threshold
    assert f"threshold {threshold:.3f} stored" in ran.out
    assert "answers to unanswerable questions" in plot.read_text("utf-8")
    assert sonde("ask", faq.path, "how to return a shoe").out == "Send the shoe back.\n"
    nothing = sonde("ask", faq.path, "who wrote the novel about whales")
    below = re.escape(f"below the threshold {threshold:g}")
    assert nothing.code == 0
    assert re.fullmatch(rf"nothing similar enough: the best similarity is 0\.\d{{3}}, {below}\n", nothing.out)
    assert "relevance" not in nothing.err
    said = json.loads(sonde("ask", faq.path, "how to return a shoe", "--json").out)
    assert (said["answer"], said["hit"]["id"], said["threshold"]) == ("Send the shoe back.", "11", threshold)
    sonde("tune", "threshold", faq.path, *options, "--plot", tmp_path / "curve.pdf").refused(".png", code=2)


def test_a_refusal_without_a_threshold_shows_the_relevance_and_says_what_it_is(
    sonde: Command, faq: StoredCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = sonde("ask", faq.path, "zzz qqq")
    assert re.fullmatch(
        r"nothing similar enough: the highest relevance is 0\.\d\d, and hits below 0\.\d\d are weak "
        r"\(relevance: the estimated chance, 0 to 1, that it answers\)\n", refused.out,
    )  # fmt: skip
    assert "nothing here seems to answer this" not in refused.err, "it is said once"
    assert json.loads(sonde("ask", faq.path, "zzz qqq", "--json").out)["notes"][0].startswith("nothing here seems")
