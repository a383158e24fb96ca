"""The shape of the tree: packages, one-way imports, what an import loads, what a file may hold."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOTS = {"sonde": "src/sonde", "sonde.app": "app", "sonde.indexer": "indexer", "sonde.pipelines": "pipelines"}
MAY_IMPORT = {
    "app": {"app", "pipelines", "indexer"},
    "pipelines": {"pipelines", "indexer"},
    "indexer": {"indexer"},
}
HEAVY = {"torch", "faiss", "transformers", "sentence_transformers", "pyarrow", "pandas", "polars", "tantivy", "sqlglot"}

STATEMENT = re.compile(r"\b(SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b")
RUN_STATEMENTS = {"execute", "executemany", "executescript", "select_in"}


def packages_on_disk(checkout: Path) -> set[str]:
    found = set()
    for package, folder in ROOTS.items():
        for init in (checkout / folder).rglob("__init__.py"):
            below = init.parent.relative_to(checkout / folder).parts
            found.add(".".join((package, *below)))
    return found


def modules(checkout: Path) -> Iterator[tuple[str, Path]]:
    """Every module of the product as it is imported, with its file."""
    for package, folder in ROOTS.items():
        for file in sorted((checkout / folder).rglob("*.py")):
            parts = file.relative_to(checkout / folder).with_suffix("").parts
            yield ".".join((package, *(part for part in parts if part != "__init__"))), file


def imports(module: str, file: Path) -> Iterator[str]:
    """The full names that a file imports, wherever in it, relative ones resolved."""
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            yield from (
                f"{base}.{node.module or ''}.{alias.name}".replace("..", ".").strip(".") for alias in node.names
            )


def loaded_by(*command: str, cwd: Path) -> tuple[set[str], set[str]]:
    """The modules of a fresh process after a statement: all their names, and the top-level ones."""
    script = f"import sys, json\n{command[0]}\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=cwd, check=False)
    assert run.returncode == 0, run.stderr
    names = set(json.loads(run.stderr.splitlines()[-1]))
    return names, {name.partition(".")[0] for name in names}


def test_packages_are_the_folders_that_hold_an_init(checkout):
    project = tomllib.loads((checkout / "pyproject.toml").read_text())
    listed = project["tool"]["setuptools"]["packages"]
    assert len(listed) == len(set(listed))
    assert set(listed) == packages_on_disk(checkout)
    assert project["tool"]["setuptools"]["package-dir"] == ROOTS


def test_every_folder_with_code_holds_an_init(checkout):
    for folder in ROOTS.values():
        for file in (checkout / folder).rglob("*.py"):
            assert (file.parent / "__init__.py").exists(), f"{file.parent} would be left out of the wheel"


def test_imports_point_one_way(checkout):
    wrong = []
    for module, file in modules(checkout):
        _, _, below = module.partition(".")
        own = below.partition(".")[0]
        for target in imports(module, file):
            top, _, rest = target.partition(".")
            if top in MAY_IMPORT:
                wrong.append(f"{module} imports {target}: inside the project imports are relative")
            elif top == "sonde" and own in MAY_IMPORT and rest.partition(".")[0] not in MAY_IMPORT[own]:
                wrong.append(f"{module} imports {target}: imports go from app to pipelines to indexer")
    assert wrong == []


def test_the_check_of_imports_resolves_relative_ones(tmp_path):
    file = tmp_path / "search.py"
    file.write_text("def f():\n    from ..indexer.errors import SondeError\nfrom . import fusion\nimport indexer.ann\n")
    assert list(imports("sonde.pipelines.search", file)) == [
        "sonde.pipelines.fusion",
        "indexer.ann",
        "sonde.indexer.errors.SondeError",
    ]


def test_importing_sonde_loads_nothing_heavy_and_no_second_identity(tmp_path):
    names, top = loaded_by("import sonde", cwd=tmp_path)
    assert top & HEAVY == set()
    assert top & {"app", "indexer", "pipelines"} == set()
    assert "sonde" in names


@pytest.mark.parametrize("arguments", [["--help"], ["index", "--help"], ["search", "--help"]])
def test_the_command_lines_help_loads_nothing_heavy(tmp_path, arguments):
    call = (
        f"sys.argv = ['sonde', *{arguments}]\n"
        "from sonde.app.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code"
    )
    names, top = loaded_by(call, cwd=tmp_path)
    assert top & HEAVY == set()
    assert "numpy" not in top
    assert top & {"app", "indexer", "pipelines"} == set()
    assert "sonde.app.cli.main" in names


def sql_in(source: str) -> list[str]:
    """Line numbers and text of what a module says to the catalog itself: statements, and calls that run them."""
    tree = ast.parse(source)
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            if statement := STATEMENT.search(node.value):
                found.append((node.lineno, statement.group()))
        elif isinstance(node, ast.Attribute) and node.attr in RUN_STATEMENTS:
            found.append((node.lineno, f".{node.attr}"))
    return [f"{line}: {what}" for line, what in sorted(found)]


def test_sql_lives_in_the_store(checkout):
    found = {
        str(file.relative_to(checkout)): lines
        for _, file in modules(checkout)
        if not file.is_relative_to(checkout / "indexer" / "store")
        and (lines := sql_in(file.read_text(encoding="utf-8")))
    }
    assert found == {}, "move these statements into a function of indexer/store"


def test_the_check_of_sql_finds_statements_and_calls():
    source = """
def f(view, table):
    "SELECT in a docstring is prose"
    one = view.catalog.connection.execute
    rows = view.catalog.select_in(f"SELECT doc FROM {table}", [1])
    view.catalog.connection.executemany("DELETE "
        "FROM documents", [])
    return "selected", "UPDATE", "UPDATE runs SET name = ?", "INSERT INTO runs VALUES (?)"
"""
    assert sql_in(source) == [
        "4: .execute", "5: .select_in", "5: SELECT", "6: .executemany", "6: DELETE FROM", "8: INSERT INTO",
        "8: UPDATE runs SET",
    ]  # fmt: skip


def test_nothing_imports_the_folders_under_their_bare_names(checkout):
    for folder in ("tests", "benchmarks", "docs"):
        for file in (checkout / folder).rglob("*.py"):
            tops = {target.partition(".")[0] for target in imports(file.stem, file)}
            assert tops & set(MAY_IMPORT) == set(), file


def test_no_file_is_too_long_to_read(checkout):
    long = {}
    for _, file in modules(checkout):
        if (lines := len(file.read_text(encoding="utf-8").splitlines())) > 400:
            long[str(file.relative_to(checkout))] = lines
    assert long == {}


def test_no_tracked_file_names_a_machine(checkout):
    listing = subprocess.run(["git", "ls-files", "-z"], capture_output=True, cwd=checkout, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout: nothing says which files belong to the project")
    own = str(checkout) if len(checkout.parts) > 2 else None
    machine = re.compile(r"/(?:home|Users)/[a-z]\w*/|/root/|\b[A-Z]:\\Users")
    for name in filter(None, listing.stdout.decode().split("\0")):
        file = checkout / name
        if not file.is_file() or file == Path(__file__):
            continue
        text = file.read_bytes().decode("utf-8", errors="ignore")
        found = machine.search(text)
        assert found is None, f"{name} names a path of one machine: {found and found.group()}"
        assert own is None or own not in text, f"{name} names this checkout"
