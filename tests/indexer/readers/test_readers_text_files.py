"""Folders of text, Markdown, HTML and PDF files."""

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pypdf
import pytest

from sonde.indexer.document import Document, Skipped
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.readers import ReadOptions, read_source
from sonde.indexer.readers.text_files import read_content


def documents(reading: Iterable[Document | Skipped]) -> list[Document]:
    """All that was read, which is nothing but documents."""
    items = list(reading)
    found = [item for item in items if isinstance(item, Document)]
    assert len(found) == len(items)
    return found


HTML = """<html><head><title>The
 page</title><style>p {color: red}</style></head><body><script>var x;</script>
<h1>Head</h1><p>One <b>bold</b>
line</p><p>Next<br>broken</p><ul><li>a<li>b</ul></body></html>"""


def pdf_bytes(pages, title=None):
    """A minimal PDF, written by hand: one Helvetica line on each page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects += [
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        content = 5 + 2 * number
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    if title:
        objects.append(f"<< /Title ({title}) >>")
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    info = f" /Info {len(objects)} 0 R" if title else ""
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R{info} >>\nstartxref\n{len(out)}\n%%EOF\n"
    return out + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}".encode() + trailer.encode()


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    files = {
        "b.txt": "plain text",
        "a/z.md": "---\ntitle: 'From front'\n---\n# Heading\n\ntext",
        "a/setext.markdown": "Some *fine*\ntitle\n=====\n\n```\n# no title\n```\n",
        "a/none.md": "no heading at all",
        "page.html": HTML,
        "old.htm": '<meta charset="windows-1251"><p>Привет'.encode("cp1251"),
        "paper.pdf": pdf_bytes(["First page", "Second page"], "A paper"),
        "scan.pdf": pdf_bytes(["", ""]),
        "broken.pdf": b"%PDF-1.4 and nothing more",
        "empty.txt": b"",
        "latin.txt": "Le café était déjà fermé à Noël".encode("latin-1"),
        "nul.txt": b"a\0b",
        ".hidden/x.txt": "hidden",
        ".x.txt": "hidden",
        "a/picture.png": b"\x89PNG",
    }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.utime(folder / "b.txt", (1_700_000_000, 1_700_000_000))
    return folder


def test_folder(notes):
    reading = read_source(notes)
    items = {item.origin: item for item in reading}
    assert list(items) == [
        *["a/none.md", "a/setext.markdown", "a/z.md", "b.txt", "broken.pdf", "empty.txt", "latin.txt", "nul.txt"],
        *["old.htm", "page.html", "paper.pdf", "scan.pdf"],
    ]
    found = {name: item for name, item in items.items() if isinstance(item, Document)}
    titles = {name: document.title for name, document in found.items()}
    assert titles == {
        **{"a/none.md": "none", "a/setext.markdown": "Some fine title", "a/z.md": "From front", "b.txt": "b"},
        **{"latin.txt": "latin", "old.htm": "old", "page.html": "The page", "paper.pdf": "A paper"},
    }
    assert found["page.html"].text == "Head\nOne bold line\nNext\nbroken\na\nb"
    assert found["old.htm"].text == "Привет"
    assert found["paper.pdf"].text == "First page\f\n\nSecond page"
    assert found["latin.txt"].text == "Le café était déjà fermé à Noël"
    assert all(document.key == name for name, document in found.items())
    assert found["b.txt"].metadata == {
        **{"path": "b.txt", "folder": ".", "extension": "txt", "bytes": 10},
        "modified": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
    }
    assert (found["a/z.md"].metadata["folder"], found["paper.pdf"].metadata["pages"]) == ("a", 2)
    assert reading.columns.describe() == (
        "text: content (of 12 files; left out: 1 .png, 2 hidden files) · "
        "title: title (heading, subject, property or file name) · "
        "id: path (relative) · metadata: path (text), folder (text), extension (text), bytes (integer), "
        "modified (date), created (date), pages (integer), pages_without_text (integer)"
    )
    assert reading.progress().fraction == 1.0


def test_a_pdf_has_letters_as_people_type_them(monkeypatch):
    """`text ILIKE '%whitfield%'` found nothing in PDF files that print the letters f and i as one sign."""
    monkeypatch.setattr(pypdf.PageObject, "extract_text", lambda page: "The oﬃce of Mr Whitﬁeld, ﬂoor ﬀ")
    assert read_content(pdf_bytes(["x"]), "pdf", None).text == "The office of Mr Whitfield, floor ff"


def test_pages_without_text_are_counted():
    found = read_content(pdf_bytes(["First page", "", "Third page", ""]), "pdf", None)
    assert (found.text, found.metadata) == (
        "First page\f\n\n\f\n\nThird page\f\n\n",
        {"pages": 4, "pages_without_text": 2},
    )
    assert read_content(pdf_bytes(["First page"]), "pdf", None).metadata == {"pages": 1}


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("D:20190314221000+02'00'", datetime(2019, 3, 14, 20, 10, tzinfo=UTC)),
        ("D:20190314221000", datetime(2019, 3, 14, 22, 10, tzinfo=UTC)),
        ("D:19030101000000Z", None),
        ("some day", None),
    ],
)
def test_when_a_pdf_was_made(written, found):
    data = pdf_bytes(["First page"], f"A paper) /CreationDate ({written}")
    assert read_content(data, "pdf", None).metadata.get("created") == found


def test_files_that_are_skipped(notes):
    reasons = {item.origin: item.reason for item in read_source(notes) if isinstance(item, Skipped)}
    assert reasons.pop("broken.pdf").startswith("broken PDF: ")
    assert reasons == {
        "empty.txt": "empty.txt is empty: give a file with content",
        "nul.txt": "the text contains a NUL byte at character 2",
        "scan.pdf": "no text on 2 pages: if it is a scan, run text recognition (OCR) first",
    }


def test_single_files_have_the_keys_they_have_in_their_folder(notes):
    assert [d.key for d in documents(read_source(notes / "b.txt"))] == ["b.txt"]
    assert [d.key for d in documents(read_source([notes / "b.txt", notes / "a" / "z.md"]))] == ["b.txt", "a/z.md"]
    assert [d.key for d in documents(read_source([notes / "a", notes / "b.txt", notes / "b.txt"]))][-2:] == [
        "a/z.md",
        "b.txt",
    ]


def test_compressed_text_file(notes):
    import gzip

    (notes / "c.md.gz").write_bytes(gzip.compress(b"# Packed\n\ntext"))
    (document,) = documents(read_source(notes / "c.md.gz"))
    assert (document.title, document.text) == ("Packed", "# Packed\n\ntext")


def test_broken_utf8_in_a_text_file(tmp_path):
    (tmp_path / "t.txt").write_bytes("schöne Grüße ".encode() + b"\xff und mehr")
    assert list(read_source(tmp_path)) == [Skipped("t.txt", "broken UTF-8: byte 0xff at character 14 of the text")]


def test_password(tmp_path):
    import pypdf

    writer = pypdf.PdfWriter()
    writer.add_blank_page(100, 100)
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(tmp_path / "locked.pdf")
    assert list(read_source(tmp_path)) == [Skipped("locked.pdf", "the PDF is protected by a password")]


def test_folder_without_files_to_read(tmp_path):
    with pytest.raises(
        SondeError, match=r"has no readable file \(.txt, .text, .rst, .md, .*, .docm, .odt, .eml\): check the path$"
    ):
        read_source(tmp_path)
    (tmp_path / "a.csv").write_text("text\nx\n")
    with pytest.raises(SondeError, match=r"; it holds 1 .csv: give .csv files one by one$"):
        read_source(tmp_path)
    with pytest.raises(
        UsageError, match="is a folder, and files in a folder are read as texts: give its csv files one by one"
    ):
        read_source(tmp_path, options=ReadOptions(format="csv"))


def test_a_folder_and_tables_together(notes, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("text\nfrom the table\n")
    texts = [d.text for d in documents(read_source([table, notes / "b.txt"]))]
    assert texts == ["plain text", "from the table"]


def test_a_folder_with_a_pipe_and_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    from fake_encoder import FakeEncoder

    from sonde.app.api.collection import index

    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("plain words")
    os.mkfifo(folder / "pipe.txt")
    with open(os.fsencode(folder) + b"/bad\xff.txt", "w") as stream:  # noqa: PTH123  (a Path cannot name it)
        stream.write("other words")
    made = index(folder, tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    assert [row["text"] for row in made.rows()] == ["plain words"]
    (skipped,) = (tmp_path / "c.sonde" / "skipped.jsonl").read_text("utf-8").splitlines()
    assert "bad\\udcff.txt" in skipped
