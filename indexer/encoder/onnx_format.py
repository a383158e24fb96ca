"""The few messages of ONNX's format that a graph needs, written as protocol buffers; the package onnx takes 31 MB.

Each function returns a message. The numbers are the fields' numbers in onnx.proto.
"""

import struct
from collections.abc import Iterable, Sequence

FLOAT, INT32, INT64 = 1, 6, 7
"""Types of an array's numbers."""
_VARINT, _BYTES, _FIXED32 = 0, 2, 5
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT = 1, 2
_EXTERNAL = 1
_OPSET, _FORMAT = 20, 10

Side = int | str
"""A number, or the name of a side that differs from call to call."""


def model(graph: bytes, domains: Sequence[str]) -> bytes:
    """Return a model: a graph of ONNX's own operators and those of other `domains`."""
    sets = [_text(1, "") + _number(2, _OPSET), *(_text(1, domain) + _number(2, 1) for domain in domains)]
    return _number(1, _FORMAT) + _message(7, graph) + b"".join(_message(8, each) for each in sets)


def graph(
    name: str, nodes: Iterable[bytes], inputs: Iterable[bytes], outputs: Iterable[bytes], arrays: Iterable[bytes]
) -> bytes:
    """Return a graph of nodes, in the order in which they run."""
    parts = ((1, nodes), (5, arrays), (11, inputs), (12, outputs))
    return _text(2, name) + b"".join(_message(field, each) for field, several in parts for each in several)


def node(kind: str, inputs: Iterable[str], outputs: Iterable[str], domain: str, **attributes: float) -> bytes:
    """Return an operator with what it reads and writes; "" leaves out an input."""
    names = b"".join(_text(1, name) for name in inputs) + b"".join(_text(2, name) for name in outputs)
    given = b"".join(_message(5, _attribute(name, value)) for name, value in sorted(attributes.items()))
    return names + _text(4, kind) + given + _text(7, domain)


def _attribute(name: str, value: float) -> bytes:
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, _ATTRIBUTE_INT)
    return _text(1, name) + _key(2, _FIXED32) + struct.pack("<f", value) + _number(20, _ATTRIBUTE_FLOAT)


def value(name: str, kind: int, sides: Iterable[Side]) -> bytes:
    """Return an input or an output of a graph."""
    dimensions = (_number(1, side) if isinstance(side, int) else _text(2, side) for side in sides)
    shape = b"".join(_message(1, each) for each in dimensions)
    return _text(1, name) + _message(2, _message(1, _number(1, kind) + _message(2, shape)))


def given_array(name: str, sides: Iterable[int]) -> bytes:
    """Return a float32 array that a session gets when it is made, in place of a file's content."""
    place = _text(1, "location") + _text(2, "given")
    return _array(name, FLOAT, sides) + _message(13, place) + _number(14, _EXTERNAL)


def whole_number(name: str, number: int) -> bytes:
    """Return an array of one int64, which is part of the graph."""
    return _array(name, INT64, [1]) + _message(7, _varint(number))


def _array(name: str, kind: int, sides: Iterable[int]) -> bytes:
    return b"".join(_number(1, side) for side in sides) + _number(2, kind) + _text(8, name)


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _number(field: int, number: int) -> bytes:
    return _key(field, _VARINT) + _varint(number)


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


def _message(field: int, content: bytes) -> bytes:
    return _key(field, _BYTES) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Return a whole number, 0 or more, in groups of seven bits, the lowest first."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])
