"""The structure of a checkout in figures: sizes, importers, layers. Reads the files and runs nothing.

python benchmarks/structure.py                 # this checkout
python benchmarks/structure.py OLDER NEWER     # a column for each
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

TOPS = ("app", "pipelines", "indexer")
SQL = re.compile(r"\s*(?:SELECT |INSERT |UPDATE \w+ SET|DELETE FROM|CREATE |ALTER |DROP |PRAGMA |WITH \w+ AS)")
NAMES_SHOWN = 5


class Checkout:
    """The parsed product modules of a checkout, by their path without the suffix."""

    def __init__(self, root: Path) -> None:
        """Read every module."""
        self.root = root
        files = [file for top in TOPS for file in sorted((root / top).rglob("*.py"))]
        self.texts = {file.relative_to(root): file.read_text(encoding="utf-8") for file in files}
        self.trees = {file: ast.parse(text) for file, text in self.texts.items()}
        self.modules = {_module(file): file for file in self.trees}

    def nodes(self) -> Iterator[tuple[Path, ast.AST]]:
        """Every node of every module with its file."""
        for file, tree in self.trees.items():
            for node in ast.walk(tree):
                yield file, node

    def imports(self) -> Iterator[tuple[Path, Path, str]]:
        """Relative imports: the file, the file that is imported, and the name."""
        for file, node in self.nodes():
            if isinstance(node, ast.ImportFrom) and node.level:
                package = file.parent.parts
                base = package[: len(package) - node.level + 1] + tuple((node.module or "").split(".")) * bool(
                    node.module
                )
                for alias in node.names:
                    target = self.modules.get((*base, alias.name)) or self.modules.get(base)
                    if target:
                        yield file, target, alias.name


def _module(file: Path) -> tuple[str, ...]:
    return file.parent.parts if file.name == "__init__.py" else file.with_suffix("").parts


def bodies(checkout: Checkout) -> list[int]:
    """Return the lines of each function's body, its docstring included."""
    functions = (node for _, node in checkout.nodes() if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [(node.end_lineno or 0) - node.body[0].lineno + 1 for node in functions]


def figures(checkout: Checkout) -> dict[str, str]:
    """Return the rows of the table."""
    lines = {file: len(text.splitlines()) for file, text in checkout.texts.items()}
    modules = [file for file in lines if file.name != "__init__.py"]
    found = list(checkout.imports())
    importers = Counter(target for _, target in {(file, target) for file, target, _ in found})
    deep = sum(isinstance(node, ast.ImportFrom) and node.level >= 4 for _, node in checkout.nodes())
    lengths = bodies(checkout)
    outside = sum(_is_sql(node) for file, node in checkout.nodes() if file.parts[:2] != ("indexer", "store"))
    named = [(file, name) for file, target, name in found if file.parts[0] == "app" and target.parts[0] == "indexer"]
    functions = [name for name, _ in Counter(name for _, name in named if name.islower()).most_common()]
    return {
        "files": f"{len(lines):,}",
        "lines": f"{sum(lines.values()):,}",
        "lines per file, median / largest": f"{median(lines.values()):.0f} / {max(lines.values())}",
        "function bodies": f"{len(lengths):,}",
        "lines per body, median / 95th percentile / longest": f"{median(lengths):.0f} / "
        f"{quantiles(lengths, n=20)[-1]:.0f} / {max(lengths)}",
        "modules with one importer": str(sum(importers[file] == 1 for file in modules)),
        "modules under 50 lines": str(sum(lines[file] < 50 for file in modules)),
        "imports of four dots or more": str(deep),
        "SQL statements outside `indexer/store`": str(outside),
        "files of `app` that import `indexer`": str(len({file for file, _ in named})),
        "names that they import": str(len({name for _, name in named})),
        "of these, types and errors": str(len({name for _, name in named if name[0].isupper() and not name.isupper()})),
        "the functions imported most": ", ".join(f"`{name}`" for name in functions[:NAMES_SHOWN]),
        "uses of `Any`": str(sum(isinstance(node, ast.Name) and node.id == "Any" for _, node in checkout.nodes())),
        "test files per folder": tests(checkout.root),
    }


def _is_sql(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(SQL.match(node.value))


def tests(root: Path) -> str:
    """Return the number of test files beside and in each folder of tests."""
    files = [file.relative_to(root / "tests") for file in (root / "tests").rglob("test_*.py")]
    counts = Counter(file.parts[0] if len(file.parts) > 1 else "tests" for file in files)
    return ", ".join(f"{folder} {count}" for folder, count in sorted(counts.items()))


def main(roots: list[Path]) -> None:
    """Print a Markdown table with a column for each checkout."""
    columns = [figures(Checkout(root)) for root in roots]
    print("| |", *(f"{root.resolve().name} |" for root in roots))
    print("|---" * (len(roots) + 1) + "|")
    for row in columns[0]:
        print(f"| {row} |", *(f"{column[row]} |" for column in columns))


if __name__ == "__main__":
    main([Path(given) for given in sys.argv[1:]] or [Path(__file__).resolve().parent.parent])
