"""What cannot be made again is deleted after a question, if a person at a terminal can answer it."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import Command
from fake_encoder import FakeEncoder

from sonde.app.api import Collection

pytest.importorskip("pty")
GONE, KEPT = 0, 1


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
                stderr.flush()
            return code, os.read(person, 100_000).decode()

        yield run
    os.close(person)


@pytest.mark.parametrize(
    ("answer", "words", "question", "code"),
    [
        ("n", ["--where", "stars < 5"], "delete 2 of 3 documents? [y/N] ", KEPT),
        ("", ["2", "--where", "stars = 1"], "delete 2 of 3 documents? [y/N] ", KEPT),
        ("y", ["1", "--where", "stars < 5"], "delete 2 of 3 documents? [y/N] ", GONE),
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


def test_a_script_is_not_asked(sonde: Command, reviews: Path) -> None:
    assert sonde("delete", reviews, "--where", "stars > 0").out == "3 documents deleted\n"
