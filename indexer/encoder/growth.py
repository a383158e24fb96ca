"""How much longer a tokenizer can make a text before it divides it: a few rules could multiply it without end."""

import base64
import json
import math
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..errors import SondeError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

LARGEST_GROWTH = 64
"""Known tokenizers stay below 8."""
USUAL = {"Precompiled": 18, "ByteLevel": 4}
"""Characters that SentencePiece's table (NFKC) and bytes in UTF-8 make of one; not counted, once."""
_TABLE_SIZE = 4


def growth(backend: "Tokenizer") -> int:
    """Return how many characters a tokenizer can make of one, apart from Unicode's own forms.

    Raises:
        SondeError: It makes too many.
    """
    steps = [step for part in (backend.normalizer, backend.pre_tokenizer) for step in _steps(_state(part))]
    product = math.prod(_factor(step) for step in steps)
    for kind, usual in USUAL.items():
        if any(step["type"] == kind for step in steps):
            product = -(-product // usual)
    if product > LARGEST_GROWTH:
        said = f"the model's tokenizer can make a text {product:,} times as long; the maximum is {LARGEST_GROWTH}"
        raise SondeError(f"{said}: use another model")
    return max(1, product)


def _state(part: Any) -> dict[str, Any]:
    """Return the settings of a part; {} for none, and for one in Python, which no file can bring."""
    with suppress(Exception):  # the library has no type of its own for this
        return json.loads(part.__getstate__())
    return {}


def _steps(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for each in part.get("normalizers") or part.get("pretokenizers") or ():
        yield from _steps(each)
    if "type" in part:
        yield part


def _factor(step: dict[str, Any]) -> int:
    """Return how many characters a step can make of one."""
    match step["type"]:
        case "Replace":
            length, pattern = len(step["content"]), step["pattern"].get("String")
            # An expression may match nothing at every place.
            return max(1, -(-length // len(pattern))) if pattern else 1 + length
        case "Prepend":
            return 1 + len(step["prepend"])
        case "Precompiled":
            table = base64.b64decode(step["precompiled_charsmap"])
            pieces = table[_TABLE_SIZE + int.from_bytes(table[:_TABLE_SIZE], "little") :].split(b"\0")
            return max(1, *(len(piece.decode(errors="replace")) for piece in pieces))
        case kind:
            return USUAL.get(kind, 1)
