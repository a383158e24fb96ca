"""Kinds of run are known by name in one file only: everything else asks the kind itself."""

import ast
from collections.abc import Iterator

import pytest
from source_tree import modules

from sonde.indexer.store.kinds import KINDS

TUPLES = (ast.Tuple, ast.List, ast.Set)
NAMES = frozenset(KINDS)


def kind_places(trees: list[ast.Module]) -> dict[str, int]:
    """Where calls of a function, or of a class with fields, have the argument `kind`, without `self`."""
    found = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
            names = [name for name in names if name not in ("self", "cls")]
        elif isinstance(node, ast.ClassDef):
            names = [part.target.id for part in node.body
                     if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)]  # fmt: skip
        else:
            continue
        if "kind" in names:
            found[node.name] = names.index("kind")
    return found


def literal_kinds(tree: ast.Module, places: dict[str, int]) -> Iterator[int]:
    """The lines that compare something called `kind` with the name of a kind of run, or pass the name as a `kind`."""

    def last_name(node: ast.AST) -> str:
        return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""

    def named(*nodes: ast.AST) -> bool:
        inner = [part for node in nodes for part in (node.elts if isinstance(node, TUPLES) else [node])]
        return any(isinstance(part, ast.Constant) and part.value in NAMES for part in inner)

    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(last_name(side) == "kind" for side in sides) and named(*sides):
                yield node.lineno
        elif isinstance(node, ast.Call):
            place = places.get(last_name(node.func), len(node.args))
            keywords = [keyword.value for keyword in node.keywords if keyword.arg == "kind"]
            if named(*node.args[place : place + 1], *keywords):
                yield node.lineno


def test_only_one_file_knows_a_kind_of_run_by_its_name(checkout):
    trees = {file: ast.parse(file.read_bytes()) for _, file in modules(checkout)}
    places = kind_places(list(trees.values()))
    assert (places["find_run"], places["NewRun"], places["ask_name"]) == (1, 0, 3)
    home = checkout / "indexer/store/kinds.py"
    wrong = [
        f"{file.relative_to(checkout)}:{line}: use a constant or a property of indexer/store/kinds.py"
        for file, tree in trees.items()
        if file != home
        for line in literal_kinds(tree, places)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "line",
    ["run.kind == 'tag'", "'tag' != kind", "run.kind in ('a', 'tag')", "f(kind='tag')", "x.g(1, 'tag')", "New('tag')"],
)
def test_the_check_of_kinds_finds_their_names(line):
    known = ast.parse("class New:\n    kind: str\nclass X:\n    def g(self, one, kind): ...")
    assert list(literal_kinds(ast.parse(line), kind_places([known]))) == [1]
    other = ast.parse(line.replace("tag", "tags").replace("'a'", "'b'"))
    assert list(literal_kinds(other, kind_places([known]))) == []
