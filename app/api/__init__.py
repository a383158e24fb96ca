"""The Python API: `sonde.index`, `sonde.open`, and the `Collection` that they return.

Each name is imported on first use, so importing one submodule does not import the others.
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
