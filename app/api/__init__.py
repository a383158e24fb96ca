"""The Python API: `sonde.index`, `sonde.open`, and the `Collection` that they return.

Names are imported when they are first used, so that a module beside needs only its own imports.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .collection import Collection, index, open
    from .texts import classify, entail

__all__ = ["Collection", "classify", "entail", "index", "open"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = ".texts" if name in ("classify", "entail") else ".collection"
    return getattr(import_module(home, __name__), name)
