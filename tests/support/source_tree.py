"""The product's modules, what they import, and what ARCHITECTURE.md allows them to import."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOTS = {"sonde": "src/sonde", "sonde.app": "app", "sonde.indexer": "indexer", "sonde.pipelines": "pipelines"}


def modules(checkout: Path) -> Iterator[tuple[str, Path]]:
    """Every module of the product as it is imported, with its file."""
    for package, folder in ROOTS.items():
        for file in sorted((checkout / folder).rglob("*.py")):
            parts = file.relative_to(checkout / folder).with_suffix("").parts
            yield ".".join((package, *(part for part in parts if part != "__init__"))), file


def sources(checkout: Path) -> Iterator[tuple[str, str]]:
    """The path and the text of every Python file, tests included."""
    for folder in (*ROOTS.values(), "tests", "benchmarks", "docs"):
        for file in sorted((checkout / folder).rglob("*.py")):
            yield str(file.relative_to(checkout)), file.read_text(encoding="utf-8")


@cache
def imports(module: str, file: Path, *, on_import: bool = False) -> list[str]:
    """The full names that a file imports, relative ones resolved.

    Wherever in the file they are, also lazy and type-only ones; or, `on_import`, those that importing the file loads.
    A file is read once, since several tests ask for every file of the product.
    """
    return list(_imports(module, file, on_import))


def _imports(module: str, file: Path, on_import: bool) -> Iterator[str]:
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(file.read_bytes())
    for node in _run_on_import(tree) if on_import else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            yield from (
                f"{base}.{node.module or ''}.{alias.name}".replace("..", ".").strip(".") for alias in node.names
            )


def _run_on_import(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from _run_on_import(node)


def climbs(module: str, file: Path) -> Iterator[tuple[int, int]]:
    """The line and the dots of each relative import that climbs further than the nearest common package."""
    package = (module if file.name == "__init__.py" else module.rpartition(".")[0]).split(".")
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.level > 1:
            base = len(package) - node.level + 1
            first = (node.module or node.names[0].name).partition(".")[0]
            if package[base] == first:
                yield node.lineno, node.level


@dataclass(frozen=True)
class Room:
    """A row of ARCHITECTURE.md: a package, or a module beside the packages."""

    floor: int
    may_import: frozenset[str]
    ground: bool
    shared: bool


def plan(checkout: Path, top: str) -> dict[str, Room]:
    """The rooms of `app`, `pipelines` or `indexer` as ARCHITECTURE.md draws them, by name."""
    text = (checkout / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = re.search(rf"^### {top}:.*?(?=^##)", text, re.MULTILINE | re.DOTALL)
    assert section, f"ARCHITECTURE.md has no section '### {top}: ...'"
    found: dict[str, Room] = {}
    for floor, names, targets in re.findall(r"^\| (\d+) \| (.*?) \| (.*?) ?\|", section.group(), re.MULTILINE):
        for name in re.findall(r"`(.+?)`", names):
            assert name not in found, f"ARCHITECTURE.md has two rows for {top}/{name}"
            allowed = frozenset(re.findall(r"`(.+?)`", targets))
            found[name] = Room(int(floor), allowed, "(ground)" in names, "(shared)" in names)
    return found


def rooms_on_disk(checkout: Path, top: str) -> dict[str, dict[str, set[str]]]:
    """For each room of a folder, the other rooms of the same folder that it imports, each with the files that do."""
    folder = checkout / top
    found: dict[str, dict[str, set[str]]] = {
        path.name: {}
        for path in sorted(folder.iterdir())
        if (path / "__init__.py").exists() or (path.suffix == ".py" and path.stem != "__init__")
    }
    for module, file in modules(checkout):
        below = file.relative_to(checkout).parts
        if below[0] != top or len(below) < 2 or below[1] not in found:
            continue
        for target in imports(module, file):
            parts = target.split(".")
            if parts[:2] == ["sonde", top] and len(parts) > 2:
                room = parts[2] if parts[2] in found else f"{parts[2]}.py"
                if room != below[1] and room in found:
                    found[below[1]].setdefault(room, set()).add("/".join(below))
    return found
