"""Reading .npy files that may be damaged."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from tokenize import TokenError

_HEADER = threading.Lock()
"""NumPy reads headers with `ast.parse`, which fails in Python 3.11 if two threads call it at the same time
(SystemError: AST constructor recursion depth mismatch)."""


@contextmanager
def reading_array() -> Iterator[None]:
    """Read the header of one .npy file at a time, with `np.load` or what it uses.

    Raises:
        ValueError: In place of all that NumPy raises for bytes that are none, but for `OSError`.
    """
    try:
        with _HEADER:
            yield
    except (EOFError, TypeError, SyntaxError, LookupError, OverflowError, MemoryError, TokenError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise ValueError(reason or type(error).__name__) from None
