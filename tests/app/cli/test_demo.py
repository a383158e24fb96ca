"""The demo corpus: what is in it, what is not, and that its order and types hold."""

import ast
import subprocess
import sys
from collections import Counter

import pytest

from sonde.app.cli.demo import FILTERED, QUERIES, SEARCHES, of_source, stdlib_docstrings
from sonde.indexer.document import Document
from sonde.indexer.errors import SondeError


@pytest.fixture(scope="module")
def corpus() -> dict[str, Document]:
    return {str(document.key): document for document in stdlib_docstrings()}


@pytest.mark.long
def test_holds_thousands_of_documents_under_unique_keys(corpus):
    documents = list(stdlib_docstrings())
    assert len(documents) == len(corpus) > 4_000
    assert documents == list(corpus.values()), "two runs of one Python must agree, order included"


@pytest.mark.parametrize(
    ("key", "kind", "parameters"),
    [
        ("json", "module", []),
        ("json.dumps", "function", ["obj", "skipkeys", "ensure_ascii"]),
        ("pathlib.Path.read_text", "method", ["encoding", "errors"]),
        ("pathlib.PurePath.suffix", "property", []),
        ("itertools.chain", "class", []),
        ("math.gcd", "function", ["integers"]),
        ("builtins.str.strip", "method", ["chars"]),
        ("os.listdir", "function", ["path"]),
        ("collections.deque.append", "method", None),
        ("io.StringIO", "class", []),
        ("concurrent.futures.wait", "function", ["fs", "timeout", "return_when"]),
        ("datetime.datetime.strptime", "method", []),
    ],
)
def test_knows_members_written_in_python_and_in_c(corpus, key, kind, parameters):
    metadata = corpus[key].metadata
    assert metadata["kind"] == kind
    assert metadata["name"] == key.rpartition(".")[2]
    assert key.startswith(f"{metadata['module']}")
    if parameters is not None:
        assert metadata["parameters"][: len(parameters)] == parameters


def test_gives_the_text_without_indentation_and_the_title_a_user_would_write(corpus):
    strip = corpus["builtins.str.strip"]
    assert strip.title == "str.strip"
    assert strip.text.startswith(
        "Return a copy of the string with leading and trailing whitespace removed.\n\nIf chars"
    )
    assert strip.metadata["package"] == strip.metadata["module"] == "builtins"
    assert strip.metadata["lines"] == 3
    assert strip.metadata["deprecated"] is False
    assert corpus["concurrent.futures.wait"].metadata["package"] == "concurrent"


def test_types_of_metadata_are_the_same_in_every_document(corpus):
    types = Counter(
        tuple((name, type(value).__name__) for name, value in document.metadata.items()) for document in corpus.values()
    )
    assert set(types) == {
        (
            ("package", "str"),
            ("module", "str"),
            ("kind", "str"),
            ("name", "str"),
            ("parameters", "list"),
            ("lines", "int"),
            ("deprecated", "bool"),
        )
    }
    assert all(document.text.strip() for document in corpus.values())
    assert {document.metadata["kind"] for document in corpus.values()} == {
        "module",
        "class",
        "function",
        "method",
        "property",
    }


def test_leaves_out_what_is_private_and_pythons_own_tests(corpus):
    for key in corpus:
        parts = key.split(".")
        assert not any(part.startswith("_") for part in parts), key
        assert parts[0] not in {"antigravity", "idlelib", "posix", "test", "this", "turtledemo"}, key


@pytest.mark.long
def test_runs_no_module_that_would_show_itself():
    script = (
        "import sys; from sonde.app.cli.demo import stdlib_docstrings; list(stdlib_docstrings());"
        "print(sorted({'antigravity', 'this', 'tkinter', 'turtle', 'readline', 'idlelib'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "[]\n", "")


def test_says_so_where_python_came_without_its_source(monkeypatch, tmp_path):
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    with pytest.raises(SondeError, match=r"no standard library source in .*: run the demo with a full installation"):
        next(stdlib_docstrings())


def test_the_demos_searches_look_for_documents_that_exist(corpus):
    assert len(set(QUERIES)) == len(SEARCHES) == 3
    for search in (*SEARCHES, FILTERED):
        assert search.expected in corpus, search
    assert corpus[FILTERED.expected].metadata["package"] == "shutil"
    assert corpus[FILTERED.expected].metadata["kind"] == "function"


def test_definitions_under_a_condition_and_in_classes_are_found():
    source = '''
"""The module."""
if True:
    class Lock:
        """A lock."""
        class Held(Exception):
            """Somebody has it."""
        @property
        def locked(self):
            """Whether it is held."""
        async def acquire(self, *, timeout=None):
            """Take it."""
            def helper():
                """Not part of any interface."""
try:
    pass
except ImportError:
    def fallback(*names, **options):
        """What there is without it."""
'''
    found = [(entry.path, entry.kind, entry.parameters) for entry in of_source(ast.parse(source))]
    assert found == [
        ("", "module", ()),
        ("Lock", "class", ()),
        ("Lock.Held", "class", ()),
        ("Lock.locked", "property", ()),
        ("Lock.acquire", "method", ("timeout",)),
        ("fallback", "function", ("names", "options")),
    ]
