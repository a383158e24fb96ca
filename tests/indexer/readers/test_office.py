"""Word and OpenDocument files: their paragraphs as people read them."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from word_files import WORD as NAMES
from word_files import run, word, zipped

from sonde.indexer.document import Document
from sonde.indexer.readers import read_source
from sonde.indexer.readers.content import UnreadableError
from sonde.indexer.readers.text_files import read_content

_TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"


def opened(body: str, **parts: str) -> bytes:
    """Return an OpenDocument text."""
    names = f'xmlns:o="urn:o" xmlns:t="{_TEXT}" xmlns:svg="urn:svg" xmlns:draw="urn:draw"'
    return zipped(content_xml=f"<o:document-content {names}><o:body>{body}</o:body></o:document-content>", **parts)


_BOX = f"<w:txbxContent><w:p>{run('In the box')}</w:p></w:txbxContent>"
WORD = {
    "runs, tabs and breaks": (
        f'<w:p><w:pPr><w:tabs><w:tab w:val="left"/></w:tabs></w:pPr>{run("Minutes of ")}{run("the board")}'
        f"<w:r><w:tab/><w:t>2026</w:t><w:br/><w:t>Chair:</w:t></w:r></w:p><w:p/><w:p>{run('End')}</w:p>",
        "Minutes of the board 2026\nChair:\nEnd",
    ),
    "a table": (
        f"<w:tbl><w:tr><w:tc><w:p>{run('Item')}</w:p></w:tc><w:tc><w:p>{run('Price')}</w:p></w:tc></w:tr></w:tbl>",
        "Item\nPrice",
    ),
    "a box of text, which is there twice": (
        f"<w:p>{run('Before')}<w:r><mc:AlternateContent><mc:Choice>{_BOX}</mc:Choice>"
        f"<mc:Fallback>{_BOX}</mc:Fallback></mc:AlternateContent></w:r>{run(' and after.')}</w:p>",
        "In the box\nBefore and after.",
    ),
    "a control, a link and a field": (
        f"<w:sdt><w:sdtContent><w:p>{run('Chosen')}</w:p></w:sdtContent></w:sdt><w:p><w:hyperlink>{run('A link')}"
        f"</w:hyperlink><w:r><w:instrText>PAGEREF x</w:instrText></w:r><wp:posOffset>1270</wp:posOffset></w:p>",
        "Chosen\nA link",
    ),
    "changes": (
        f"<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:moveFrom>{run('moved')}</w:moveFrom>"
        f"<w:ins>{run('new')}</w:ins></w:p><w:p><w:moveTo>{run('moved')}</w:moveTo></w:p>",
        "new\nmoved",
    ),
}
OPEN = {
    "spans, spaces and breaks": (
        "<t:h>Report</t:h><t:p>The <t:span>council</t:span>\n  met<t:s t:c='3'/>and<t:tab/>voted."
        "<t:line-break/>End</t:p>",
        "Report\nThe council met and voted.\nEnd",
    ),
    "a note": (
        "<t:p>It met<t:note><t:note-citation>1</t:note-citation><t:note-body><t:p>On Monday.</t:p></t:note-body>"
        "</t:note> again.</t:p>",
        "On Monday.\nIt met again.",
    ),
    "what nobody reads": (
        "<t:tracked-changes><t:p>deleted</t:p></t:tracked-changes><t:p>Seen<o:annotation><t:p>a comment</t:p>"
        "</o:annotation><draw:frame><svg:title>picture</svg:title></draw:frame></t:p>",
        "Seen",
    ),
}


@pytest.mark.parametrize("case", WORD)
def test_a_word_document(case: str) -> None:
    body, text = WORD[case]
    assert read_content(word(body), "docx", None).text == text


@pytest.mark.parametrize("case", OPEN)
def test_an_opendocument_text(case: str) -> None:
    body, text = OPEN[case]
    assert read_content(opened(body), "odt", None).text == text


def test_notes_and_properties(tmp_path: Path) -> None:
    notes = f'<w:footnotes xmlns:w="{NAMES}"><w:footnote><w:p>{run("A note.")}</w:p></w:footnote></w:footnotes>'
    core = '<c xmlns:d="urn:d"><d:title>Board minutes</d:title><d:created>2024-05-06T07:08:09Z</d:created></c>'
    (tmp_path / "a.docx").write_bytes(
        word(f"<w:p>{run('Text')}</w:p>", word__footnotes_xml=notes, docProps__core_xml=core)
    )
    meta = '<m xmlns:d="urn:d"><d:title> </d:title><d:creation-date>2024-05-06T07:08:09.5</d:creation-date></m>'
    (tmp_path / "b.odt").write_bytes(opened("<t:p>Text</t:p>", meta_xml=meta))
    word_, open_ = (item for item in read_source(tmp_path) if isinstance(item, Document))
    assert (word_.text, word_.title, open_.title) == ("Text\nA note.", "Board minutes", "b")
    assert not {"unread_comments"} & {*word_.metadata, *open_.metadata}
    assert word_.metadata["created"] == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    assert open_.metadata["created"] == datetime(2024, 5, 6, 7, 8, 9, 500_000, tzinfo=UTC)


def test_headers_and_footers_come_once_and_comments_are_counted() -> None:
    """A letterhead, or "privileged", was not found; and nobody was told of remarks in the margin."""

    def margin(kind: str, text: str) -> str:
        return f'<w:{kind} xmlns:w="{NAMES}"><w:p>{run(text)}</w:p></w:{kind}>'

    remark = (
        f'<w:comments xmlns:w="{NAMES}">' + 2 * f"<w:comment><w:p>{run('Why?')}</w:p></w:comment>" + "</w:comments>"
    )
    parts = {"word__header1_xml": margin("hdr", "Privileged"), "word__header2_xml": margin("hdr", "Privileged")}
    parts |= {"word__footer1_xml": margin("ftr", "Acme Ltd"), "word__comments_xml": remark}
    found = read_content(word(f"<w:p>{run('Text')}</w:p>", **parts), "docx", None)
    assert (found.text, found.metadata["unread_comments"]) == ("Text\nPrivileged\nAcme Ltd", 2)
    styles = f'<s xmlns:s="urn:s" xmlns:t="{_TEXT}"><s:master><s:header><t:p>Privileged</t:p></s:header></s:master></s>'
    annotated = "<t:p>Seen<o:annotation><t:p>a comment</t:p></o:annotation></t:p>"
    found = read_content(opened(annotated, styles_xml=styles), "odt", None)
    assert (found.text, found.metadata["unread_comments"]) == ("Seen\nPrivileged", 1)


_LEVELS = [f"<!ENTITY x{n} '" + f"&x{n - 1};" * 10 + "'>" for n in range(1, 10)]
ENTITIES = "<!DOCTYPE a [<!ENTITY x0 '1234567890'>" + "".join(_LEVELS)
UNREADABLE = {
    "a password": (b"\xd0\xcf\x11\xe0 and more", "it is protected by a password, or has an older format"),
    "no archive": (b"PK\x03\x04 and more", "it is damaged, or protected by a password (File is not a zip file)"),
    "another kind": (zipped(x_xml="<a/>"), "it is damaged, or of another kind: it has no part with the text"),
    "broken XML": (zipped(word__document_xml="<a><b></a>"), "it is damaged, or protected by a password (<unknown>:1:8"),
    "entities": (zipped(word__document_xml=f"{ENTITIES}]><a><p><t>&x9;</t></p></a>"), "it is damaged"),
    "an external entity": (
        zipped(word__document_xml='<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a><p><t>&x;</t></p></a>'),
        "no text in it",
    ),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_file_that_is_not_read(case: str) -> None:
    data, reason = UNREADABLE[case]
    with pytest.raises(UnreadableError) as raised:
        read_content(data, "docx", None)
    assert str(raised.value).startswith(reason)


def test_a_part_that_unpacks_to_more_than_a_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sonde.indexer.readers.office._LONGEST_PART", 100_000)
    with pytest.raises(UnreadableError, match=r"^its word/document\.xml has more than 100,000 bytes$"):
        read_content(word(f"<w:p>{run(' ' * 200_000)}</w:p>"), "docx", None)
