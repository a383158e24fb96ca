"""Values checked against annotations of plain types: numbers, strings, paths, lists."""

import inspect
import os
import reprlib
import types
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import is_dataclass
from functools import cache, wraps
from numbers import Integral, Real
from pathlib import Path
from types import FunctionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from .errors import UsageError, arg, out_of_range
from .progress import ProgressBar, silent

C = TypeVar("C")
COUNTS = ("count", "k", "length", "most", "offset", "sample", "start")
"""Arguments that are counts, and so must not be negative."""
_WANTED = {
    bool: "True or False", int: "a whole number", float: "a number", str: "a string", os.PathLike: "a path",
    Iterable: "a list", type(None): "None",
}  # fmt: skip
"""How error messages name each kind of value."""


def typed_methods(cls: type[C]) -> type[C]:
    """Let each public method of a class check its arguments against their annotations before it runs.

    Raises:
        UsageError: The methods raise it if an argument has the wrong type or a count is negative.
    """
    for name, value in list(vars(cls).items()):
        if isinstance(value, FunctionType) and not name.startswith("_"):
            setattr(cls, name, _typed(value))
    return cls


def _typed(method: FunctionType) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @wraps(method)
    def call(*given: Any, **options: Any) -> Any:
        bound = signature.bind(*given, **options)
        conform(bound, method)
        return method(*bound.args, **bound.kwargs)

    return call


def conform(bound: inspect.BoundArguments, method: Callable[..., Any], but: Container[str] = ()) -> None:
    """Check the arguments of a call against the annotations of a method, all but those named and `**options`.

    Raises:
        UsageError: An argument has the wrong type, or a count is negative.
    """
    for name, value in bound.arguments.items():
        if name in _BY_NAME:
            bound.arguments[name] = _BY_NAME[name](name, value)
        elif name not in but and bound.signature.parameters[name].kind is not inspect.Parameter.VAR_KEYWORD:
            bound.arguments[name] = conformed(name, value, _evaluated(method, name))


def conformed(name: str, value: Any, annotation: Any) -> Any:
    """Check a value against an annotation of plain types, and return it with NumPy values converted to Python.

    For any other annotation, the value is returned unchanged.

    Raises:
        UsageError: The value has the wrong type, or a count is negative.
    """
    kinds = _kinds(annotation)
    if kinds is None:
        return value
    value = _of_python(value, kinds)
    if _normalised(kinds):
        return value
    fitting = [kind for kind in kinds if _fits(value, kind)]
    if not fitting and str in kinds and _is_model(value):
        raise _not_saved(name, value)
    if not fitting:
        wanted = [_WANTED.get(kind) or f"a {kind.__name__}" for kind in kinds if kind is not type(None)]
        said = f"{arg(name)} is {reprlib.repr(value)}: give {' or '.join(wanted)}"
        raise UsageError(said, code="wrong-type", field=name, value=value)
    if name in COUNTS and isinstance(value, int) and value < 0:
        raise out_of_range(name, value, "give a whole number, 0 or more")
    if fitting == [Iterable] and isinstance(value, (list, tuple)) and _kinds(kinds[Iterable]) is not None:
        each = [conformed(name, item, kinds[Iterable]) for item in value]
        return each if isinstance(value, list) else tuple(each)
    return value


def _notify(name: str, value: Any) -> Any:
    """Return what receives progress: None and False mean nobody, True a progress bar.

    Raises:
        UsageError: The value cannot be called; or it is a class, which would only be instantiated.
    """
    if value is None or isinstance(value, bool):
        return ProgressBar() if value else silent
    if callable(value) and not isinstance(value, type):
        return value
    said = f"{arg(name)} is {reprlib.repr(value)}: give True for a progress bar, False for none, or a function"
    raise UsageError(said, code="wrong-type", field=name, value=value)


def _encoder(name: str, value: Any) -> Any:
    if value is not None and not hasattr(value, "spec"):
        raise _not_saved(name, value)
    return value


_BY_NAME: Mapping[str, Callable[[str, Any], Any]] = {"progress": _notify, "notify": _notify, "encoder": _encoder}
"""How arguments are checked whose annotations are not of plain types."""


def _is_model(value: Any) -> bool:
    """Whether a value seems to be a model of Sentence-Transformers or of another library, instead of its name."""
    return callable(getattr(value, "encode", None)) or hasattr(value, "save_pretrained")


def _not_saved(name: str, value: Any) -> UsageError:
    own = " or an encoder of sonde.load_encoder()" if name == "encoder" else ""
    instead = "model" if name == "encoder" else name
    said = (
        f"{arg(name)} is a {type(value).__name__}: save it with model.save('folder') and give {instead}='folder'{own}"
    )
    return UsageError(said, code="wrong-type", field=name)


def _of_python(value: Any, kinds: Mapping[Any, Any]) -> Any:
    """Convert a NumPy number, or a NumPy array where a list is allowed, to Python; return other values unchanged."""
    if not hasattr(value, "dtype") or not hasattr(value, "tolist"):
        return value
    return value.tolist() if getattr(value, "ndim", 1) == 0 or Iterable in kinds else value


def _evaluated(method: Callable[..., Any], name: str) -> Any:
    """Return the annotation of a parameter, or Any if it names a type that is imported only for type checkers."""
    annotation = method.__annotations__.get(name, Any)
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, method.__globals__)
    except NameError:
        return Any


@cache
def _kinds(annotation: Any) -> dict[Any, Any] | None:
    """Return the plain types that an annotation allows, with the annotations of their items; None if any value fits."""
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [_kinds(part) for part in get_args(annotation)]
        return None if None in parts else {kind: items for part in parts if part for kind, items in part.items()}
    if get_origin(annotation) is Literal:
        return {type(value): Any for value in get_args(annotation)}
    plain = get_origin(annotation) or annotation
    if plain is None or plain in (bool, int, float, str, type(None)):
        return {type(None) if plain is None else plain: Any}
    if isinstance(plain, type) and issubclass(plain, Path):
        return {os.PathLike: Any}
    if isinstance(plain, type) and issubclass(plain, Mapping):
        return None  # what takes a dictionary shows an example of one
    several = isinstance(plain, type) and issubclass(plain, (Iterable, Container))
    if several and plain.__module__ in ("collections.abc", "builtins"):
        items = get_args(annotation)
        return {Iterable: items[0] if items else Any}
    return {plain: Any} if is_dataclass(plain) else None


def _normalised(kinds: Mapping[Any, Any]) -> bool:
    """Whether `as_text` or `as_texts` checks the value later: one or several ids, queries or texts."""
    return str in kinds and (int in kinds or str in (_kinds(kinds.get(Iterable, Any)) or ()))


def _fits(value: Any, kind: Any) -> bool:
    if isinstance(value, bool):
        return kind is bool
    if kind is int:
        return isinstance(value, Integral)
    if kind is float:
        return isinstance(value, Real)
    if kind is Iterable:
        return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))
    return isinstance(value, (str, os.PathLike) if kind is os.PathLike else kind)
