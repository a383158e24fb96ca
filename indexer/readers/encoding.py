"""Which encoding the bytes of a text are in."""

import codecs
import io
import re
from collections.abc import Iterator
from typing import BinaryIO

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Without this list charset-normalizer prefers rarities such as mac_latin2 on short texts.
_LEGACY = [
    "cp1252",
    "cp1251",
    "koi8_r",
    "cp1250",
    "cp1254",
    "cp1253",
    "shift_jis",
    "euc_jp",
    "gb18030",
    "big5",
    "euc_kr",
]
_WESTERN = set("àâäçéèêëîïôöùûüñáíóúßæøåœãõÀÂÄÇÉÈÊËÎÏÔÖÙÛÜÑÁÍÓÚÆØÅ£€©®°²§–—‘’“”…«»\xa0´")
_FEW = 3
_MOST_ACCENTS = 0.3


def detect_encoding(sample: bytes) -> str:
    """The encoding of text that begins with `sample`: a mark, else UTF-8 if it can be, else the likeliest legacy one.

    UTF-8 with some broken bytes stays UTF-8: the rows that hold them are then skipped one by one.
    """
    for mark, name in _MARKS:
        if sample.startswith(mark):
            return name
    if (wide := _utf16_without_mark(sample)) is not None:
        return wide
    broken, whole = _broken_utf8(sample)
    return "utf-8" if not broken or whole >= broken else _legacy(sample)


def decoded_lines(file: BinaryIO, encoding: str, newline: str = "") -> io.TextIOWrapper:
    """The text of `file`; bytes that are no text become lone surrogates, for `broken_byte` to find."""
    return io.TextIOWrapper(file, encoding=encoding, errors="surrogateescape", newline=newline)


def broken_byte(text: str) -> str | None:
    """What is wrong with a text that cannot be stored: `"broken UTF-8, byte 0xff at character 5"`; None for most."""
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code, place = ord(text[error.start]), f"at character {error.start + 1}"
        escaped_byte = 0xDC80 <= code <= 0xDCFF
        return (
            f"broken UTF-8: byte 0x{code - 0xDC00:02x} {place}"
            if escaped_byte
            else f"half a surrogate pair (U+{code:04X}) {place}"
        )
    return None


def _utf16_without_mark(sample: bytes) -> str | None:
    head = sample[:4096]
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if len(head) < 4 or max(even, odd) < 0.4 * len(head) / 2 or min(even, odd) > 0.05 * max(even, odd):
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _broken_utf8(sample: bytes) -> tuple[int, int]:
    """How many places are no UTF-8, and how many characters beyond ASCII are whole. A cut at the end is no fault."""
    text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(sample)
    if text.isascii():
        return 0, 0
    return len(re.findall(r"[\udc80-\udcff]+", text)), len(re.findall(r"[\x80-\ud7ff\ue000-\U0010ffff]", text))


def _legacy(sample: bytes) -> str:
    lines = b"\n".join(_lines_beyond_ascii(sample))
    high = set(re.findall(rb"[\x80-\xff]", lines))
    accents = len(re.findall(rb"[\x80-\xff]", lines)) < _MOST_ACCENTS * len(lines)
    western = accents and all(byte.decode("cp1252", "replace") in _WESTERN for byte in high)
    if len(high) <= _FEW:  # too little to go by for a statistical guess
        cut_utf8 = re.search(rb"[\xc2-\xf4][\x80-\xbf]", lines)
        return "cp1252" if western and not cut_utf8 else "utf-8"
    if western and b"\xf5" not in high:  # with that byte it may as well be Hungarian
        return "cp1252"
    from charset_normalizer import from_bytes

    best = from_bytes(lines, cp_isolation=_LEGACY).best()
    return best.encoding if best else "utf-8"


def _lines_beyond_ascii(sample: bytes, limit: int = 1 << 16) -> Iterator[bytes]:
    taken = 0
    for line in sample.splitlines():
        if not line.isascii() and taken < limit:
            taken += len(line)
            yield line[:limit]
