"""Small files of every format that is read, and what an attacker or a bad disk makes of them."""

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from random import Random

import zstandard
from word_files import zipped

from sonde.indexer.document import Skipped
from sonde.indexer.errors import SondeError
from sonde.indexer.readers import ReadOptions
from sonde.indexer.readers.bytestream import ByteStream
from sonde.indexer.readers.formats import table_source
from sonde.indexer.readers.reading import Part
from sonde.indexer.readers.source import TEXT_SUFFIXES, Place, source_errors
from sonde.indexer.readers.text_files import read_text_file

ROWS = [
    {"id": f"a{n}", "title": f"Title {n}", "text": f'It works "well", number {n}\nand naïve 漢字', "n": n, "x": n / 3}
    for n in range(12)
]
_INSERTED = (
    *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"'", b"\\", b"\r", b"\n\n", b",,,,", b"[" * 2_000, b'{"a":' * 2_000),
    *(b"<div>" * 3_000, b"<!--", b"<script>", b"]]>", b"&#x110000;", b"1e999", b"9" * 5_000, b"\\ud800", b"NaN"),
    *(b"../../../etc/passwd", b"=cmd|' /C calc'!A0", b"<!ENTITY a SYSTEM 'file:///etc/passwd'>", b"\x80" * 100),
    *(b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"PAR1", b"%PDF-", b"PK\x03\x04"),
    *(b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd", b"2024-02-30", b"---\ntitle: x\n---\n", b"#" * 3_000, b">" * 3_000),
)


def _csv(delimiter: str = ",") -> bytes:
    import csv

    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(ROWS[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(ROWS)
    return out.getvalue().encode()


def _parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    table = pa.Table.from_pylist([{**row, "when": datetime(2024, 1, 1), "l": [{"a": [1]}]} for row in ROWS])
    pq.write_table(table, out, compression="none")
    return out.getvalue()


def _xlsx() -> bytes:
    import openpyxl

    book, out = openpyxl.Workbook(), io.BytesIO()
    for row in [list(ROWS[0]), *([*row.values()] for row in ROWS), [datetime(2024, 1, 1), True, None, 1.5, "=1+1"]]:
        book.worksheets[0].append(row)
    book.save(out)
    return out.getvalue()


def _pdf() -> bytes:
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 144] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length 44 >>\nstream\nBT /F1 18 Tf 10 100 Td (Hello there) Tj ET  \nendstream",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = len(out)
    return out + b"xref\n0 6\n0000000000 65535 f \n%strailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        table,
        start,
    )


def _docx() -> bytes:
    words = "".join(f"<w:p><w:r><w:t>Line {n}</w:t><w:tab/><w:t>naïve 漢字</w:t></w:r></w:p>" for n in range(9))
    name = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    about = '<c xmlns:d="d"><d:title>A title</d:title><d:created>2024-01-01T00:00:00Z</d:created></c>'
    body = f'<w:document xmlns:w="{name}"><w:body>{words}</w:body></w:document>'
    return zipped(word__document_xml=body, docProps__core_xml=about)


def _odt() -> bytes:
    name = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
    words = "".join(f"<t:p>Line <t:span>{n}</t:span><t:line-break/>naïve</t:p>" for n in range(9))
    return zipped(content_xml=f'<d xmlns:t="{name}">{words}</d>')


_MAIL = (
    "From: =?utf-8?q?Caf=C3=A9?= <a@x.org>\nTo: b@x.org, c@x.org\nSubject: A subject\nMessage-ID: <1@x>\n"
    "Date: Thu, 01 Jan 2026 09:00:00 +0200\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n"
    "Content-Type: text/plain; charset=utf-8\n\nA text\n--b\nContent-Type: message/rfc822\n\nSubject: Inner\n\nMore\n"
    "--b\nContent-Type: text/html\nContent-Disposition: attachment; filename=a.html\n\n<p>x</p>\n--b--\n"
)
_RIS = (
    "TY  - JOUR\nAU  - Café, A.\nTI  - A title\nAB  - A text\nthat goes on.\nDO  - 10.1000/a\nPY  - 2020/05//\n"
    "KW  - one\nSP  - 1\nEP  - 2\nER  - \n\n"
)
_NBIB = (
    "PMID- 1\nTI  - A title\n      goes on.\nAB  - A text\nFAU - Café, A.\nLID - 10.1000/a [doi]\nDP  - 2020 May\n\n"
)
_CIW = "PT J\nAU Café, A\n   Roe, K\nTI A title\nAB A text\n   goes on.\nDE one; two\nPY 2020\nUT WOS:1\nER\n\n"
_BIB = (
    '@string{j = "A journal"}\n@article{k1, title={A {T}itle of \\emph{x} $\\beta$}, author={Caf{\\\'e}, A. and B}, '
    'journal=j,\n abstract="5\\% of {a} & b", year=2020, month=jan, doi={10.1000/a}}\n@comment{no}\n'
)
_HTML = "<html><head><title>A page</title><style>p{}</style></head><body><h1>One</h1>" + "".join(
    f"<div class='a{n}'><p>Text <b>number</b> {n}<table><tr><td>cell<td>x</table></div>" for n in range(10)
)
_MARKDOWN = (
    "---\ntitle: 'A title'\n---\n# One\n\n> quote\n> > deep\n\n* a\n  * b\n\n[a](b) `c`\n\n| a |\n|---|\n| 1 |\n"
)
_JSONL = "".join(
    json.dumps({**row, "l": [1, [2, {"a": None}]], "o": {"p": {"q": row["x"]}}}) + "\n" for row in ROWS
).encode()
_TEXT = "A plain text, naïve 漢字.\nWith lines.\n".encode() * 5
SEEDS: dict[str, Callable[[], bytes]] = {
    "csv": _csv,
    "tsv": lambda: _csv("\t"),
    "json": lambda: json.dumps({"took": 1, "rows": ROWS, "other": [{"a": 1}]}).encode(),
    "jsonl": lambda: _JSONL,
    "parquet": _parquet,
    "xlsx": _xlsx,
    "lines": lambda: _TEXT,
    "txt": lambda: _TEXT,
    "md": lambda: _MARKDOWN.encode(),
    "html": _HTML.encode,
    "pdf": _pdf,
    "docx": _docx,
    "odt": _odt,
    "eml": _MAIL.encode,
    "mbox": lambda: (f"From a@x.org Thu Jan  1 09:00:00 2026\n{_MAIL}\n" * 3).encode(),
    "ris": (_RIS * 3).encode,
    "nbib": (_NBIB * 3).encode,
    "ciw": (f"FN Clarivate\nVR 1.0\n{_CIW * 3}EF\n").encode,
    "bib": (_BIB * 3).encode,
    "csv.gz": lambda: gzip.compress(_csv()),
    "jsonl.zst": lambda: zstandard.compress(_JSONL),
}


def read_here(path: Path, name: str) -> str:
    """Read a file in this process, from bytes to documents; what is wrong with how that went, "" if nothing is."""
    options = ReadOptions(format="lines" if name == "lines" else None)
    try:
        if f".{name}" in TEXT_SUFFIXES:
            reasons = [getattr(read_text_file(path.name, path, options), "reason", "")]
        else:
            with source_errors(path.name, Place()):
                part = Part(table_source(ByteStream(path.name, path), options), options)
            reasons = [item.reason for _, item in part.documents() if isinstance(item, Skipped)]
    except SondeError as error:
        reasons = [str(error)]
    except BaseException as error:  # libraries of Rust raise their panics as such
        return f"{type(error).__name__}: {error}"[:200]
    return next((reason for reason in reasons if "\n" in reason), "")


def mutations(name: str, seed: int) -> Iterator[bytes]:
    """An endless row of damaged files of a format, the same for the same seed."""
    random = Random(f"{name} {seed}")
    whole = SEEDS[name]()
    others = [make() for other, make in SEEDS.items() if other != name]
    while True:
        data = bytearray(whole)
        if name in ("xlsx", "docx", "odt") and random.random() < 0.8:
            yield _mutated_parts(whole, random, others)
            continue
        for _ in range(random.choice((1, 1, 1, 2, 4, 16))):
            _mutate(data, random, others)
        yield _packed(bytes(data), name, random)


def _mutated_parts(whole: bytes, random: Random, others: list[bytes]) -> bytes:
    """A sound archive whose parts are damaged: a checksum would give away any other change."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as packed, zipfile.ZipFile(out, "w") as changed:
        for part in packed.namelist():
            data = bytearray(packed.read(part))
            if "sheet1" in part or "document" in part or "content" in part or random.random() < 0.2:
                _mutate(data, random, others)
            changed.writestr(part, bytes(data))
    return out.getvalue()


def _mutate(data: bytearray, random: Random, others: list[bytes]) -> None:
    at = random.randrange(len(data) + 1)
    end = min(len(data), at + random.choice((1, 4, 30, 500)))
    kind = random.randrange(7)
    if kind == 0 and at < len(data):
        data[at] ^= 1 << random.randrange(8)
    elif kind == 1 and at < len(data):
        data[at] = random.randrange(256)
    elif kind == 2:
        del data[at : at + len(data) if random.random() < 0.3 else end]
    elif kind == 3:
        data[at:at] = data[at:end] * random.choice((1, 2, 50))
    elif kind == 4:
        other = random.choice(others)
        place = random.randrange(len(other))
        data[at:end] = other[place : place + random.choice((4, 100, 2_000))]
    else:
        data[at : end if kind == 5 else at] = random.choice(_INSERTED)


def _packed(data: bytes, name: str, random: Random) -> bytes:
    """Half of the mutations of compressed files are those of what is inside."""
    if random.random() < 0.5 or "." not in name:
        return data
    try:
        inside = gzip.decompress(data) if name.endswith(".gz") else zstandard.decompress(data)
    except Exception:  # damaged already
        inside = SEEDS[name.partition(".")[0]]()
    changed = bytearray(inside)
    _mutate(changed, random, [_TEXT])
    return gzip.compress(bytes(changed), 1) if name.endswith(".gz") else zstandard.compress(bytes(changed), 1)
