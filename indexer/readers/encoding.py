"""The encoding of text files, and the bytes in them that are no text."""

import codecs
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..files import text_of
from .source import ReadOptions

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
_WESTERN = set("àâäçéèêëîïôöùûüñáíóúßæøåœãõòìýÀÂÄÇÉÈÊËÎÏÔÖÙÛÜÑÁÍÓÚÆØÅŒÃÕÒÌÝšžþðŠŽÞÐ£€©®°²½¼§·¡–—‘’‚“”„…«»\xa0´")
_LIKELIER = re.compile(rb"[\xa3\xa5\xaa\xb3\xb9\xba](?![A-Za-z\x80-\xff])|(?<![A-Za-z\x80-\xff])\xbf|\xf5(?=es)")
"""Bytes of letters in cp1250 which stand as in £5, m³, 1ª, nº, ¿Qué and Simões, so that they do not count."""
_CENTRAL = ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "âăîşţ", "ćčđšž")
"""Accented letters of Polish, Czech, Slovak, Hungarian and Romanian, and of Croatian and Slovene together."""
_PROOF = "ąłżőľšžťşţ"
"""Those that few Western texts have, whatever they are in cp1252. Every one of the languages has one of them."""
_COVERED, _PROVEN = 0.85, 0.04
"""Shares of the accented letters that are those of one such language, and those of `_PROOF`, at least."""
_STRANGE = 0.04
"""Share of the characters beyond ASCII that are not in `_WESTERN`, at most, in a Western text."""
_TURKISH = "çğıöşüâîûÇĞİÖŞÜÂÎÛ"
_TURKISH_ALONE, _TURKISH_SHARE = "ğışĞİŞ", 0.25
"""Letters that cp1254 has in place of the Icelandic ones in cp1252, and their share of the accented ones at least."""
_WORDS, _FEWEST_LETTERS = 2.5, 12
"""Bytes beyond ASCII in a row, on average, and letters, in a text of another script; accents stand alone."""
_FEW = 3
_MOST_ACCENTS = 0.3


def detect_encoding(sample: bytes, hint: str | None = None) -> str:
    """The encoding of text that begins with `sample`: a mark, else UTF-8 if it can be, else the likeliest legacy one.

    UTF-8 with some broken bytes stays UTF-8: the rows that hold them are then skipped one by one. `hint` is taken in
    place of a guess if the sample is valid in it.
    """
    for mark, name in _MARKS:
        if sample.startswith(mark):
            return name
    if (wide := _utf16_without_mark(sample)) is not None:
        return wide
    broken, places, whole = _broken_utf8(sample)
    if not broken or whole >= places:
        # Among the bytes of Chinese and Japanese, every few could be a character of UTF-8, between long broken places.
        script = _other_script(b"\n".join(_lines_beyond_ascii(sample))) if broken > whole else None
        if script is None:
            return "utf-8"
    return hint if hint and _is_valid(sample, hint) else _legacy(sample)


def text_of_table(path: Path, what: str) -> tuple[str, str | None]:
    """Return the text of a small table, and its encoding if it is not one of Unicode: Excel writes cp1252.

    Args:
        path: Of the file.
        what: What it holds, for messages: "the groups".

    Raises:
        SondeError: It cannot be read, its encoding is not known, or it is too large.
    """
    found: list[str] = []

    def detect(data: bytes) -> str:
        found.append(detect_encoding(data))
        return found[0]

    text = text_of(path, what, detect)
    return text, found[0] if is_legacy(found[0]) else None


def named_encoding(encoding: str, options: ReadOptions) -> str:
    """The encoding that was found, as a note names it."""
    return encoding + (", as before" if options.encoding is None and encoding == options.encoding_hint else "")


def is_legacy(encoding: object) -> bool:
    """Whether this names an encoding that Python knows, other than those of Unicode, which files show by themselves."""
    try:
        return isinstance(encoding, str) and not codecs.lookup(encoding).name.startswith("utf")
    except (LookupError, ValueError):
        return False


def _is_valid(sample: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(sample)
    except ValueError:
        return False
    return True


def decoded_lines(file: BinaryIO, encoding: str, newline: str = "") -> io.TextIOWrapper:
    """The text of `file`; bytes that are no text become lone surrogates, for `broken_byte` to find."""
    return io.TextIOWrapper(file, encoding=encoding, errors="surrogateescape", newline=newline)


_UNDECODED = re.compile("[\udc80-\udcff]")


def is_undecoded(text: str) -> bool:
    """Whether a text of `decoded_lines` holds bytes that are no text."""
    return not text.isascii() and _UNDECODED.search(text) is not None


def broken_byte(text: str, encoding: str = "") -> str | None:
    """What is wrong with a text that cannot be stored: `"broken UTF-8: byte 0xff at character 5"`; None for most.

    Args:
        text: Any text.
        encoding: The encoding that it was read in, "" if it is not known; then it counts as UTF-8.
    """
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code, place = ord(text[error.start]), f"at character {error.start + 1}"
        escaped_byte = 0xDC80 <= code <= 0xDCFF
        wrong = "broken UTF-8" if _is_utf8(encoding) else f"not valid {encoding}"
        return (
            f"{wrong}: byte 0x{code - 0xDC00:02x} {place}"
            if escaped_byte
            else f"half a surrogate pair (U+{code:04X}) {place}"
        )
    return None


def _is_utf8(encoding: str) -> bool:
    return not encoding or codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")


def _utf16_without_mark(sample: bytes) -> str | None:
    head = sample[:4096]
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if len(head) < 4 or max(even, odd) < 0.4 * len(head) / 2 or min(even, odd) > 0.05 * max(even, odd):
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def is_text(head: bytes) -> bool:
    """Whether bytes can be the beginning of a text in UTF-8, or in the encoding of their mark."""
    encoding = next((name for mark, name in _MARKS if head.startswith(mark)), "utf-8")
    try:
        return "\0" not in codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeError:
        return False


def _broken_utf8(sample: bytes) -> tuple[int, int, int]:
    """How many bytes are no UTF-8, in how many places, and how many characters beyond ASCII are whole.

    A cut at the end is no fault.
    """
    text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(sample)
    if text.isascii():
        return 0, 0, 0
    broken = re.findall(r"[\udc80-\udcff]+", text)
    return len("".join(broken)), len(broken), len(re.findall(r"[\x80-\ud7ff\ue000-\U0010ffff]", text))


def _legacy(sample: bytes) -> str:
    lines = b"\n".join(_lines_beyond_ascii(sample))
    if script := _other_script(lines):
        return script
    lines = _LIKELIER.sub(b" ", lines)
    high = b"".join(re.findall(rb"[\x80-\xff]+", lines))
    accents = len(high) < _MOST_ACCENTS * len(lines)
    if accents and _is_turkish(high):
        return "cp1254"
    if accents and _is_central_european(high):
        return "cp1250"
    strange = sum(character not in _WESTERN for character in high.decode("cp1252", "replace"))
    if len(set(high)) <= _FEW:  # too little for a statistical guess
        cut_utf8 = re.search(rb"[\xc2-\xf4][\x80-\xbf]", lines)
        return "cp1252" if accents and not strange and not cut_utf8 else "utf-8"
    if accents and strange <= _STRANGE * len(high):
        return "cp1252"
    from charset_normalizer import from_bytes

    best = from_bytes(lines, cp_isolation=_LEGACY).best()
    return best.encoding if best and best.encoding in _LEGACY else "utf-8"


def _other_script(lines: bytes) -> str | None:
    """Return an encoding of Japanese, Korean, Arabic, Hebrew or Chinese, if the text has the letters of such a one."""
    runs = re.findall(rb"[\x80-\xff]+", lines)
    high = b"".join(runs)
    if len(high) < max(_FEWEST_LETTERS, _WORDS * len(runs)):
        return None
    if _share(lines, "euc_jp", "\u3041-\u30fe") >= 0.2:  # kana, of which no Chinese text has many
        return "euc_jp"
    if b" " in re.findall(rb"[\xa1-\xfe](.)[\xa1-\xfe]", lines) and _share(lines, "euc_kr", "가-힣") >= 0.9:
        return "euc_kr"
    if _share(lines, "cp1256", "\u060c-\u06d2") >= 0.9 and _share(lines, "cp1256", "ال") >= 0.15:
        return "cp1256"
    if _share(lines, "cp1255", "א-ת") >= 0.97 and _share(lines, "cp1255", "יה") >= 0.12:
        return "cp1255"  # both rules tell them from Cyrillic, which has these bytes for other letters
    pairs = [pair for pair in re.findall(rb"[\x81-\xfe][\x40-\xfe]", lines) if pair[0] not in (0xA1, 0xA3)]  # 。 and ，
    usual = sum(0xB0 <= lead <= 0xD7 and trail > 0xA0 for lead, trail in pairs)  # the commoner half of the characters
    return "gb18030" if usual >= 0.75 * len(pairs) and _is_valid(lines, "gb18030") else None


def _share(lines: bytes, encoding: str, letters: str) -> float:
    """Return the share of these letters in the characters beyond ASCII of a text; 0 if it is not valid."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(lines)
    except ValueError:
        return 0.0
    found = re.findall(r"[^\x00-\x7f]", text)
    return len(re.findall(f"[{letters}]", text)) / max(1, len(found))


def _is_turkish(high: bytes) -> bool:
    """Whether the bytes beyond ASCII are the letters of Turkish in cp1254, at least two that other languages lack."""
    letters = high.decode("cp1254", "replace")
    alone = [letter for letter in letters if letter in _TURKISH_ALONE]
    covered = sum(letter in _TURKISH for letter in letters)
    return len(set(alone)) > 1 and len(alone) >= _TURKISH_SHARE * len(letters) and covered >= _COVERED * len(letters)


def _is_central_european(high: bytes) -> bool:
    """Whether the bytes beyond ASCII fit one language of cp1250; names from all over Western Europe fit none."""
    letters = [letter for letter in high.decode("cp1250", "replace").lower() if letter.isalpha()]
    covered = max(sum(letter in language for letter in letters) for language in _CENTRAL)
    proven = sum(letter in _PROOF for letter in letters)
    return covered >= _COVERED * len(letters) and proven > _PROVEN * len(letters)


def _lines_beyond_ascii(sample: bytes) -> Iterator[bytes]:
    limit, taken = 1 << 16, 0
    for line in sample.splitlines():
        if not line.isascii() and taken < limit:
            taken += len(line)
            yield line[:limit]
