"""The shape of the tree: packages and their floors, one-way imports, what an import loads, what a file may hold."""

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from source_tree import ROOTS, climbs, imports, modules, plan, rooms_on_disk, sources

MAY_IMPORT = {
    "app": {"app", "pipelines", "indexer"},
    "pipelines": {"pipelines", "indexer"},
    "indexer": {"indexer"},
}
HEAVY = {"torch", "faiss", "transformers", "sentence_transformers", "pyarrow", "pandas", "polars", "tantivy", "sqlglot"}

STATEMENT = re.compile(r"\b(SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b")
WATCHED = {"cli": "", "ui": "", "http": "reads .stored", "mcp": "reads .stored"}
RUN_STATEMENTS = {"execute", "executemany", "executescript", "select_in"}


def packages_on_disk(checkout: Path) -> set[str]:
    found = set()
    for package, folder in ROOTS.items():
        for init in (checkout / folder).rglob("__init__.py"):
            below = init.parent.relative_to(checkout / folder).parts
            found.add(".".join((package, *below)))
    return found


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
    file.write_text(
        "def f():\n    from ...indexer.errors import SondeError\nfrom . import fusion\nimport indexer.ann\n"
    )
    assert imports("sonde.pipelines.search.search", file) == [
        "sonde.pipelines.search.fusion",
        "indexer.ann",
        "sonde.indexer.errors.SondeError",
    ]


TOPS = ("app", "pipelines", "indexer")
DEEPEST_ROW = 3
"""Packages further down, such as the web UI's pages, have no row in ARCHITECTURE.md, apart from the map's chart."""


@pytest.mark.parametrize("top", TOPS)
def test_packages_import_what_architecture_md_says(checkout, top):
    """Both ways: no import without permission, and no permission that nothing uses."""
    drawn, real = plan(checkout, top), rooms_on_disk(checkout, top)
    assert set(drawn) == set(real)
    ground = {name for name, room in drawn.items() if room.ground}
    for name, targets in real.items():
        allowed = drawn[name].may_import
        extra = {target: sorted(files) for target, files in targets.items() if target not in allowed | ground}
        assert extra == {}, f"{top}/{name} imports packages that its row in ARCHITECTURE.md does not list"
        assert allowed - set(targets) == set(), f"ARCHITECTURE.md lists packages that {top}/{name} does not import"


@pytest.mark.parametrize("top", TOPS)
def test_packages_import_only_lower_floors(checkout, top):
    drawn = plan(checkout, top)
    climbing = {
        (name, target)
        for name, room in drawn.items()
        for target in room.may_import
        if drawn[target].floor >= room.floor
    }
    assert climbing == set()
    assert {room.floor for room in drawn.values() if room.ground} <= {0}
    for name in (name for name, room in drawn.items() if room.ground):
        assert {target for target in rooms_on_disk(checkout, top)[name] if not drawn[target].ground} == set()


def test_a_package_of_pipelines_imports_one_other_besides_the_shared_ones(checkout):
    drawn = plan(checkout, "pipelines")
    shared = {name for name, room in drawn.items() if room.shared}
    assert shared == {"analysis", "label", "plots", "search"}
    others = {name: sorted(room.may_import - shared) for name, room in drawn.items()}
    assert {name: targets for name, targets in others.items() if len(targets) > 1} == {}


def test_packages_inside_packages_have_a_row(checkout):
    text = (checkout / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_/]+/[a-z_/]+)` \| \S.*\|$", text, re.MULTILINE)
    folders = {
        "/".join(package.split(".")[1:])
        for package in packages_on_disk(checkout)
        if len(package.split(".")) == DEEPEST_ROW + 1
    }
    assert sorted(rows) == sorted(folders)


OWN_FIELD = {"found.stored"}
"""What a report of tuning says of itself, which is not a collection's storage."""
PURE = (
    *("sonde.indexer.wording.", "sonde.indexer.files.", "sonde.indexer.errors.out_of_range"),
    *("sonde.pipelines.plots.colors.one_line", "sonde.pipelines.plots.colors.escaped"),
)
"""Functions below app/api that doors may call: they know texts and files, no collection."""
INSIDES = {"Catalog", "StoredCollection", "View"}
"""Types below app/api that doors have no use for: app/api hands out what they find."""


def below_the_api(module: str, file: Path) -> Iterator[str]:
    """What a module of a door takes from below app/api, apart from types, constants and pure helpers."""
    for target in imports(module, file):
        name = target.rpartition(".")[2]
        named = name[:1].isupper() and name not in INSIDES
        if target.startswith(("sonde.indexer.", "sonde.pipelines.")) and not named and not target.startswith(PURE):
            yield f"{module} imports {target}"
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Attribute) and node.attr == "stored" and ast.unparse(node) not in OWN_FIELD:
            yield f"{module} reads .stored in line {node.lineno}"


@pytest.mark.parametrize("door", WATCHED)
def test_doors_call_the_python_api_alone(checkout, door):
    inside = (below_the_api(module, file) for module, file in modules(checkout) if f".app.{door}" in module)
    assert [each for found in inside for each in found if WATCHED[door] in each] == [], "add a method to app/api"


def test_the_check_of_doors_finds_calls_below_the_api(tmp_path):
    file = tmp_path / "page.py"
    file.write_text(
        "from ...indexer.store.kinds import MAP\nfrom ...indexer.store.runs import Run, list_runs\n"
        "from ...indexer.wording import counted\n\n\ndef f(collection):\n"
        "    from ...indexer.store.view import View\n\n    return collection.stored\n"
    )
    assert sorted(below_the_api("sonde.app.ui.page", file)) == [
        "sonde.app.ui.page imports sonde.indexer.store.runs.list_runs",
        "sonde.app.ui.page imports sonde.indexer.store.view.View",
        "sonde.app.ui.page reads .stored in line 9",
    ]


def test_modules_do_not_import_each_other_in_a_circle(checkout):
    files = dict(modules(checkout))
    graph = {module: loaded_with(module, file, files) for module, file in files.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def loaded_with(module: str, file: Path, files: dict[str, Path]) -> set[str]:
    """Return the modules that importing a module loads first: those named, and the packages that these are in."""
    found = set()
    for target in imports(module, file, on_import=True):
        named = target if target in files else target.rpartition(".")[0]
        while named in files and not f"{module}.".startswith(f"{named}."):
            found.add(named)
            named = named.rpartition(".")[0]
    return found


def test_relative_imports_climb_no_further_than_needed(checkout):
    found = {str(file.relative_to(checkout)): list(climbs(module, file)) for module, file in modules(checkout)}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_an_import_that_climbs_too_far_is_found(tmp_path):
    file = tmp_path / "search.py"
    file.write_text("from ...pipelines.search import fusion\nfrom ..pairs import model\nfrom ..search import facets\n")
    assert list(climbs("sonde.pipelines.search.search", file)) == [(1, 3), (3, 2)]


def test_imports_that_run_later_do_not_count_for_circles(tmp_path):
    file = tmp_path / "search.py"
    file.write_text(
        "from . import fusion\nif TYPE_CHECKING:\n    from . import ask\n\n\ndef f():\n    from . import trec\n"
    )
    found = imports("sonde.pipelines.search.search", file, on_import=True)
    assert found == ["sonde.pipelines.search.fusion"]


def test_public_names_are_where_their_types_are(checkout):
    """The names that type checkers see and those that are imported on first use are the same objects."""
    import sonde

    names = {
        target.rpartition(".")[2]: target.rpartition(".")[0]
        for target in imports("sonde", checkout / "src" / "sonde" / "__init__.py")
        if target.startswith("sonde.")
    }
    assert sorted(names) == sorted(sonde.__all__)
    for name, module in names.items():
        assert getattr(sonde, name) is getattr(importlib.import_module(module), name)


def test_tests_are_in_folders_of_the_same_names(checkout):
    tests = checkout / "tests"
    folders = {str(file.parent.relative_to(tests)) for file in tests.rglob("test_*.py")} - {"."}
    assert {folder for folder in folders if not (checkout / folder / "__init__.py").exists()} == set()


def test_every_decision_is_a_dated_page_in_the_index(checkout):
    folder = checkout / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    pages = sorted(path.name for path in folder.glob("*.md") if path.name != "README.md")
    assert re.findall(r"^\| \[\d{4}\]\((\S+\.md)\) \|", index, re.MULTILINE) == pages
    for number, name in enumerate(pages, 1):
        text = (folder / name).read_text(encoding="utf-8")
        assert text.startswith(f"# {number:04d}. ") and name.startswith(f"{number:04d}-")
        assert re.search(r"^Date: \d{4}-\d\d-\d\d$", text, re.MULTILINE), f"{name} has no date"
        assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Context", "Decision", "Figures"]
        for link in re.findall(r"\]\((\S+?\.md)\)", text):
            assert (folder / link).exists(), f"{name} links to {link}"


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


OPTION = re.compile(r"--[a-z]")
COMMAND = re.compile(r"`sonde [^`]*`")
UPDATES = ("indexer/store/kinds.py", "--update")
"""A word of a command that the web UI starts."""


def options_in(source: str) -> list[str]:
    """Line numbers and text of strings that name an option of the command line, outside `sonde …` and docstrings."""
    tree = ast.parse(source)
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare | parts:
            text = node.value
        else:
            continue
        if OPTION.search(COMMAND.sub("", text)):
            found.append(f"{node.lineno}: {text}")
    return found


def test_the_library_names_no_option_of_the_command_line(checkout):
    found = {
        (name, line.partition(": ")[2])
        for folder in ("indexer", "pipelines")
        for file in (checkout / folder).rglob("*.py")
        for name in [file.relative_to(checkout).as_posix()]
        for line in options_in(file.read_text(encoding="utf-8"))
    }
    assert found == {UPDATES}, "mark the argument with `arg`: the command line shows it as an option"


def test_the_check_of_options_finds_them():
    source = """
def f(name):
    "use --k, says a docstring"
    a = f"{name} is wrong: use --device cpu"
    b = "run `sonde index --to FOLDER`, or set --to"
    return "a--b", f"run `sonde repair {name} --json`", "--", "-k"
"""
    assert options_in(source) == [
        "4: … is wrong: use --device cpu", "5: run `sonde index --to FOLDER`, or set --to", "6: a--b",
    ]  # fmt: skip


def test_nothing_imports_the_folders_under_their_bare_names(checkout):
    for folder in ("tests", "benchmarks", "docs"):
        for file in (checkout / folder).rglob("*.py"):
            tops = {target.partition(".")[0] for target in imports(file.stem, file)}
            assert tops & set(MAY_IMPORT) == set(), file


def test_no_file_is_too_long_to_read(checkout):
    assert {name: count for name, text in sources(checkout) if (count := len(text.splitlines())) > 400} == {}


def test_no_function_body_is_too_long_to_read(checkout):
    long = {
        f"{name}: {node.name}": lines
        for name, text in sources(checkout)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or 0) - node.body[0].lineno + 1) > 60
    }
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
