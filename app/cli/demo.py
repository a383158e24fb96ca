"""`sonde demo`: the docstrings of Python's standard library as a corpus, and three searches of it."""

import ast
import importlib
import inspect
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import BuiltinImporter, ModuleSpec, PathFinder
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from ...indexer.document import Document
from ...indexer.errors import SondeError
from ...indexer.wording import counted
from ..samples import write_samples
from .output import progress, say
from .search import print_results

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Docstring:
    """What one definition says about itself.

    `path` is its dotted place inside the module, empty for the module. `kind` is one of module, class, function,
    method and property.
    """

    path: str
    kind: str
    text: str
    parameters: tuple[str, ...] = ()

    @property
    def public(self) -> bool:
        """Whether no part of the path begins with an underscore."""
        return not any(part.startswith("_") for part in self.path.split("."))


def of_source(tree: ast.Module) -> Iterator[Docstring]:
    """Yield the docstrings of a parsed module, private definitions included, in the order of the source."""
    if text := ast.get_docstring(tree):
        yield Docstring("", "module", text)
    for node in statements(tree):
        yield from _definition(node, "", "function")


def of_c_module(module: ModuleType) -> Iterator[Docstring]:
    """Yield the docstrings of an imported C module and of what it defines itself, by name."""
    if text := inspect.getdoc(module):
        yield Docstring("", "module", text)
    # A class in `_datetime` says that it is in `datetime`, one in `io` that it is in `_io`.
    own = module.__name__.strip("_")
    for name, member in sorted(vars(module).items()):
        if not inspect.isclass(member):
            yield from _member(name, member, "function")
        elif member.__module__.strip("_") == own:
            yield from _member(name, member, "class")
            for attribute, child in sorted(vars(member).items()):
                yield from _member(f"{name}.{attribute}", child, "method")


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a module or class, those under `if`, `try` and `with` included, no function's."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if isinstance(child, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            yield from statements(child)


def _definition(node: ast.AST, parent: str, kind: str) -> Iterator[Docstring]:
    if isinstance(node, ast.ClassDef):
        if text := ast.get_docstring(node):
            yield Docstring(parent + node.name, "class", text)
        for child in statements(node):
            yield from _definition(child, f"{parent}{node.name}.", "method")
    elif isinstance(node, Function) and (text := ast.get_docstring(node)):
        decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
        kind = "property" if decorators & {"property", "cached_property"} else kind
        yield Docstring(parent + node.name, kind, text, _parameters(node.args))


def _parameters(arguments: ast.arguments) -> tuple[str, ...]:
    named = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return tuple(argument.arg for argument in named if argument and argument.arg not in ("self", "cls"))


def _member(path: str, member: object, kind: str) -> Iterator[Docstring]:
    is_property = inspect.isgetsetdescriptor(member) or inspect.ismemberdescriptor(member)
    text = getattr(member, "__doc__", None)
    if (inspect.isroutine(member) or is_property or kind == "class") and isinstance(text, str) and text.strip():
        yield Docstring(path, "property" if is_property else kind, inspect.cleandoc(text), _signature(member))


def _signature(member: object) -> tuple[str, ...]:
    """The parameters that a C function publishes as text, the bound one (`$self`, `$module`, `$type`) left out."""
    text = getattr(member, "__text_signature__", None)
    if text is None or inspect.isclass(member):
        return ()
    try:
        (function,) = ast.parse(f"def f{text.replace('$', '_')}: ...").body
    except SyntaxError:  # a default that has no Python notation
        return ()
    names = _parameters(function.args) if isinstance(function, Function) else ()
    return tuple(name for name in names if not name.startswith("_"))


# Python's own tests and demonstrations, easter eggs, and a C module that writes to the terminal when imported.
LEFT_OUT = {"antigravity", "idlelib", "readline", "test", "tests", "this", "turtledemo"}
# Public in name only: their functions are documented as those of `os`.
PRIVATE = {"nt", "posix"}


def stdlib_docstrings() -> Iterator[Document]:
    """Yield one document for each public module, class, function, method and property that has a docstring.

    The key is the qualified name (`builtins.str.strip`), the title is the same without `builtins`. The metadata are
    `package`, `module`, `kind`, `name`, `parameters` (a list of names), `lines` (of the docstring) and `deprecated`
    (the docstring says so). The order is the same at every run of the same Python. Only C modules are imported.

    Raises:
        SondeError: This Python came without the source of its standard library.
    """
    if _find("json") is None:
        folder = sysconfig.get_path("stdlib")
        raise SondeError(f"no standard library source in {folder}: run the demo with a full installation of Python")
    keys: set[str] = set()
    for top in sorted(sys.stdlib_module_names):
        for module in _public_modules(top):
            for docstring in _docstrings(module):
                key = f"{module}.{docstring.path}".rstrip(".")
                if docstring.public and key not in keys:
                    keys.add(key)
                    yield _document(key, module, docstring)


def _document(key: str, module: str, docstring: Docstring) -> Document:
    return Document(
        text=docstring.text,
        title=key.removeprefix("builtins."),
        key=key,
        language="en",
        origin=module,
        metadata={
            "package": module.partition(".")[0],
            "module": module,
            "kind": docstring.kind,
            "name": key.rpartition(".")[2],
            "parameters": list(docstring.parameters),
            "lines": docstring.text.count("\n") + 1,
            "deprecated": "deprecated" in docstring.text.lower(),
        },
    )


def _public_modules(name: str) -> Iterator[str]:
    """The module, if it is public and in this installation, and all public modules in it."""
    leaf = name.rpartition(".")[2]
    if _is_private(leaf) or leaf in LEFT_OUT or (spec := _find(name)) is None:
        return
    yield name
    for folder in spec.submodule_search_locations or []:
        for child in sorted(Path(folder).iterdir()):
            if child.suffix == ".py" or (child / "__init__.py").exists():
                yield from _public_modules(f"{name}.{child.stem}")


def _docstrings(name: str) -> Iterator[Docstring]:
    """The docstrings of one module, then those that it takes over from private modules."""
    if (spec := _find(name)) is None:
        return
    if spec.origin is None or not spec.origin.endswith(".py"):
        yield from _c_docstrings(name)
        return
    tree = ast.parse(Path(spec.origin).read_bytes())
    yield from of_source(tree)
    package = name if spec.submodule_search_locations else name.rpartition(".")[0]
    for node in statements(tree):
        if isinstance(node, ast.ImportFrom):
            source = resolve_name("." * node.level + (node.module or ""), package)
            if _is_private(source):
                yield from _taken_over(source, {alias.name for alias in node.names}, tree)


def _taken_over(source: str, names: set[str], tree: ast.Module) -> Iterator[Docstring]:
    """What `from source import names` makes a part of the module: everything, or the names that `__all__` lists."""
    public = names & _exports(tree)
    for docstring in _docstrings(source):
        if docstring.path and ("*" in names or docstring.path.partition(".")[0] in public):
            yield docstring


def _exports(tree: ast.Module) -> set[str]:
    """The strings that are assigned to `__all__` or added to it."""
    assigned = [node for node in statements(tree) if isinstance(node, ast.Assign | ast.AugAssign)]
    return {
        part.value
        for node in assigned
        if "__all__" in ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        for part in ast.walk(node.value)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }


def _c_docstrings(name: str) -> Iterator[Docstring]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            module = importlib.import_module(name)
    except ImportError:  # built without its system library, as `_tkinter` often is
        return
    yield from of_c_module(module)


def _is_private(name: str) -> bool:
    return name in PRIVATE or any(part.startswith("_") for part in name.split("."))


def _find(name: str) -> ModuleSpec | None:
    """Find a standard library module by its full name without importing it or its package."""
    library = sysconfig.get_path("stdlib")
    places: list[str] | None = [library, f"{library}/lib-dynload", f"{sys.base_exec_prefix}/DLLs"]
    spec, done = None, ""
    for part in name.split("."):
        done = f"{done}.{part}".lstrip(".")
        spec = PathFinder.find_spec(done, places) if places else None
        places = None if spec is None else spec.submodule_search_locations
    return spec or BuiltinImporter.find_spec(name)


@dataclass(frozen=True, slots=True)
class DemoSearch:
    """A query over the demo corpus, with a filter or without, and the key of the document that should come first."""

    query: str
    expected: str
    where: str | None = None


SEARCHES = (
    DemoSearch("remove whitespace from both ends of a string", expected="builtins.str.strip"),
    DemoSearch("hide what the user types when entering a password", expected="getpass"),
    DemoSearch("find the biggest elements quickly", expected="heapq.nlargest"),
)

QUERIES = tuple(search.query for search in SEARCHES)

# Without its filter this one finds mail folders.
FILTERED = DemoSearch(
    "delete a folder and everything in it", expected="shutil.rmtree", where="package = 'shutil' AND kind = 'function'"
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    to: Annotated[Path, typer.Option("--to", metavar="C.sonde", help="Where to store the collection.")] = Path(
        "demo.sonde"
    ),
    files: Annotated[
        Path | None, typer.Option("--files", metavar="FOLDER", help="Only write the files of the tutorials here.")
    ] = None,
) -> None:
    """Index the docstrings of Python's standard library, run three searches, and show what to try next.

    With --files, write the files that the tutorials use instead: the tickets, the questions and answers, and the
    handbook of an invented shop.

    \b
    Examples:
      sonde demo
      sonde demo --files shop
    """
    if files is not None:
        write_samples(files)
        print(f"{files}: the files of the tutorials; the shop is invented")
        return
    from ..api import Collection, index

    say(f"indexing the docstrings of Python's standard library into {to}")
    with progress() as notify:
        # The columns of documents made here are nobody's news: only the progress is shown.
        collection: Collection = index(
            stdlib_docstrings(), to, progress=lambda event: None if isinstance(event, str) else notify(event)
        )
    report = collection.report
    assert report is not None
    print(f"{to}: {counted(len(collection), 'document')}, {report.added:,} new; {report.seconds:,.0f} s")
    for query in QUERIES:
        print(f'\n$ sonde search {to} "{query}" -k 3')
        print_results(collection.search(query, k=3), json=False)
    print(f'\nTry next:\n  sonde search {to} "{FILTERED.query}" --where "{FILTERED.where}"')
    print(f"  sonde similar {to} json.dumps\n  sonde info {to}")
    print("  sonde index YOUR.csv --to yours.sonde")
