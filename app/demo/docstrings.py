"""The docstrings of one module: from its source, which is parsed and never run, or from an imported C module."""

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

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
