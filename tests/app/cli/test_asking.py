"""What cannot be made again is deleted after a question, if a person at a terminal can answer it."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import Command
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index

pytest.importorskip("pty")
GONE, KEPT = 0, 1
END = "the end of what is shown"


Asked = Callable[..., tuple[int, str]]


@pytest.fixture
def asked(sonde: Command, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    """Runs a command whose standard input and error are a terminal: returns its exit code and what is shown there."""
    person, program = os.openpty()
    with os.fdopen(program) as stdin, os.fdopen(os.dup(program), "w") as stderr:

        def run(answer: str, *words: object) -> tuple[int, str]:
            os.write(person, f"{answer}\n".encode())
            with monkeypatch.context() as patch:
                patch.setattr(sys, "stdin", stdin)
                patch.setattr(sys, "stderr", stderr)
                code = sonde(*words).code
                print(END, file=stderr, flush=True)
            shown = ""
            while END not in shown:  # a terminal hands over what was written to it in pieces
                shown += os.read(person, 100_000).decode()
            return code, shown

        yield run
    os.close(person)


@pytest.mark.parametrize(
    ("answer", "words", "question", "code"),
    [
        ("n", ["--where", "stars < 5"], "delete 2 of 3 documents? [y/N] ", KEPT),
        ("", ["2", "3"], "delete 2 of 3 documents? [y/N] ", KEPT),
        ("y", ["--where", "stars < 5"], "delete 2 of 3 documents? [y/N] ", GONE),
        ("n", ["--where", "stars < 5", "--yes"], None, GONE),
        ("n", ["--where", "stars = 5"], None, GONE),
    ],
)
def test_most_documents(
    asked: Asked, reviews: Path, answer: str, words: list[str], question: str | None, code: int
) -> None:
    before = len(Collection.open(reviews))
    done, shown = asked(answer, "delete", reviews, *words)
    assert done == code and ("[y/N]" in shown) == bool(question) and (question or "") in shown
    assert ("sonde: nothing was deleted" in shown, len(Collection.open(reviews)) == before) == (code == KEPT,) * 2


def test_runs_that_a_person_made(asked: Asked, reviews: Path, encoder: FakeEncoder) -> None:
    opened = Collection.open(reviews, encoder=encoder)  # type: ignore[arg-type]
    opened.cluster("c", k=2)
    opened.tag("mine", ids=["1"])
    opened.make_taxonomy("c", "plain")
    opened.make_taxonomy("c", "edited")
    opened.edit_taxonomy("add", "edited", name="new")
    for name, kind in (("mine", "tag"), ("edited", "taxonomy")):
        done, shown = asked("n", "runs", "delete", reviews, name)
        said = f"the {kind} {name!r} was made by hand and cannot be computed again. Delete it? [y/N] "
        assert (done, said in shown) == (KEPT, True)
    for words in (["c"], ["plain"], ["mine", "--yes"]):
        assert asked("n", "runs", "delete", reviews, *words)[0] == GONE
    assert [run.name for run in opened.runs()] == ["edited"]


@pytest.mark.parametrize("words", ["export R --to F.csv", "duplicates R --to F.csv", "taxonomy export R --to F.csv",
                                   "export R --page F.html", "runs draw R c --by stars --to F.html"])  # fmt: skip
def test_files_that_exist(asked: Asked, sonde: Command, reviews: Path, encoder: FakeEncoder, words: str) -> None:
    opened = Collection.open(reviews, encoder=encoder)  # type: ignore[arg-type]
    opened.cluster("c", k=2)
    opened.map()
    opened.make_taxonomy("c")
    given = [reviews.parent / word if word.startswith("F.") else reviews if word == "R" else word
             for word in words.split()]  # fmt: skip
    file = Path(given[-1])
    assert sonde(*given).code == 0  # nothing to ask, so a typed answer would be left for the next question
    file.write_text("mine")
    done, shown = asked("n", *given)
    assert (done, f"{file} exists. Replace it? [y/N] " in shown, "nothing was written" in shown) == (KEPT, True, True)
    assert file.read_text() == "mine"
    for answer, more in (("y", []), ("n", ["--yes"])):
        file.write_text("mine")
        assert asked(answer, *given, *more)[0] == GONE
        assert file.read_bytes() != b"mine"
    file.write_text("mine")
    assert sonde(*given).code == 0
    assert file.read_bytes() != b"mine"


def test_several_files_are_one_question(asked: Asked, sonde: Command, reviews: Path, tmp_path: Path) -> None:
    Collection.open(reviews).make_taxonomy()
    given = ("taxonomy", "export", reviews, "--to", tmp_path / "t.json", "--documents", tmp_path / "d.csv")
    assert sonde(*given).code == 0
    assert f"{tmp_path / 't.json'} and {tmp_path / 'd.csv'} exist. Replace them? [y/N]" in asked("n", *given)[1]


def test_the_source_is_refused_whatever_the_answer(asked: Asked, tmp_path: Path, encoder: FakeEncoder) -> None:
    source = tmp_path / "s.jsonl"
    source.write_text('{"id": "1", "text": "one"}\n')
    index(source, tmp_path / "s.sonde", encoder=encoder).close()  # type: ignore[arg-type]
    before = source.read_bytes()
    for answer, code in (("y", 2), ("n", 1)):
        assert asked(answer, "export", tmp_path / "s.sonde", "--to", source)[0] == code
        assert source.read_bytes() == before


def test_a_script_is_not_asked(sonde: Command, reviews: Path) -> None:
    assert sonde("delete", reviews, "--where", "stars > 0").out == (
        "3 documents deleted; `sonde compact` removes what is left of them on the disk\n"
    )


@pytest.mark.parametrize("way", ["--from", "import"])
def test_a_taxonomy_that_somebody_edited(asked: Asked, reviews: Path, tmp_path: Path, way: str) -> None:
    opened = Collection.open(reviews, encoder=FakeEncoder())  # type: ignore[arg-type]
    opened.cluster("k", k=2, refits=0)
    opened.make_taxonomy("k")
    (tmp_path / "groups.csv").write_text("name\nparcels\n")
    words = ["show", reviews, "--from", "k"] if way == "--from" else ["import", reviews, tmp_path / "groups.csv"]
    opened.edit_taxonomy("add", name="mine")
    code, shown = asked("n", "taxonomy", *words, "--replace")
    assert code == KEPT and "the taxonomy 'taxonomy' has 1 edit. Replace it and its log? [y/N]" in shown
    assert "sonde: nothing was changed" in shown
    assert "mine" in [group.name for group in opened.taxonomy().groups]
    code, shown = asked("y", "taxonomy", *words, "--replace")
    assert code == GONE and "mine" not in [group.name for group in opened.taxonomy().groups]
    code, shown = asked("n", "taxonomy", *words, "--replace")  # nobody has edited it
    assert code == GONE and "[y/N]" not in shown


def test_a_taxonomy_that_somebody_edited_under_the_name_in_a_file(asked: Asked, reviews: Path, tmp_path: Path) -> None:
    opened = Collection.open(reviews, encoder=FakeEncoder())  # type: ignore[arg-type]
    opened.import_taxonomy("name\nparcels\n", "csv", "ours")
    (tmp_path / "ours.json").write_text(opened.export_taxonomy("json", "ours"))
    opened.edit_taxonomy("add", "ours", name="mine")
    code, shown = asked("n", "taxonomy", "import", reviews, tmp_path / "ours.json", "--replace")
    assert code == KEPT and "the taxonomy 'ours' has 1 edit. Replace it and its log? [y/N]" in shown
    assert [group.name for group in opened.taxonomy("ours").groups] == ["parcels", "mine"]
