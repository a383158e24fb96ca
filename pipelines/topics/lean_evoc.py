"""EVoC, imported without what only int8 and binary embeddings need.

Importing EVoC compiles its search for neighbours three times, for float32, int8 and binary embeddings: a third of the
minutes that the first `sonde topics` on a machine takes. Sonde's embeddings are float32.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import Any

UNUSED = ("evoc.int8_nndescent", "evoc.uint8_nndescent")
_one_import = Lock()


def lean_evoc() -> ModuleType:
    """Return the module `evoc`, whole for everybody: what was left out is compiled when somebody calls it.

    Raises:
        ImportError: It is not installed.
    """
    with _one_import, _placeholders():
        return import_module("evoc")


@contextmanager
def _placeholders() -> Iterator[None]:
    """Let modules that are imported meanwhile take functions from placeholders for the unused modules."""
    placeholders = {name: _Placeholder(name) for name in UNUSED if name not in sys.modules}
    sys.modules.update(placeholders)
    try:
        yield
    finally:
        for name in placeholders:
            del sys.modules[name]


class _Placeholder(ModuleType):
    """A module of functions that import the real module of this name when they are called."""

    def __getattr__(self, function: str) -> Callable[..., Any]:
        if function.startswith("__"):
            raise AttributeError(function)

        def call(*args: Any, **options: Any) -> Any:
            return getattr(import_module(self.__name__), function)(*args, **options)

        return call
