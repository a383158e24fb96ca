"""Messages and mailboxes: what a message says, who sent it, and where one ends in a mailbox."""

import mailbox
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path

import pytest

from sonde.indexer.document import Document, Skipped
from sonde.indexer.errors import SondeError
from sonde.indexer.readers import ReadOptions, preview, read_source
from sonde.indexer.readers.text_files import read_content


def mail(text: str = "The parcel came late.", **headers: str) -> EmailMessage:
    """Return a message; headers are given with _ for -, and as `From_` where Python reserves the word."""
    made = EmailMessage()
    for name, value in headers.items():
        made[name.strip("_").replace("_", "-")] = value
    made.set_content(text)
    return made


def late() -> EmailMessage:
    """Return a message with two forms of its text and an attached file."""
    headers = {"To": 'bob@x.org, "Carl, C." <carl@x.org>', "Cc": "Bob <BOB@x.org>", "Message_ID": "<a1@x>"}
    made = mail(Subject="Late delivery", From_="Ann Müller <Ann@Example.org>", **headers)
    made["Date"] = "Thu, 01 Jan 2026 09:00:00 +0200"
    made.add_alternative("<p>The parcel <b>came</b> late.</p>", subtype="html")
    made.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="bill.pdf")
    return made


FIELDS = {
    "sender": "ann@example.org",
    "sender_name": "Ann Müller",
    "recipients": ["bob@x.org", "carl@x.org"],
    "cc": ["bob@x.org"],
    "sent": datetime(2026, 1, 1, 7, tzinfo=UTC),
    "attachments": ["bill.pdf"],
    "message_id": "a1@x",
    "thread": "a1@x",
}
TEXT = "The parcel came late.\n\nAttachments: bill.pdf"


def test_a_message() -> None:
    content = read_content(late().as_bytes(), "eml", None)
    assert (content.text, content.title, content.metadata) == (TEXT, "Late delivery", FIELDS)


def test_a_message_that_is_attached_is_part_of_the_text() -> None:
    outer = mail("See below.", Subject="Fwd: late", From_="bob@x.org")
    outer.add_attachment(late())
    content = read_content(outer.as_bytes(), "eml", None)
    assert content.text == (
        'See below.\n\nFrom: Ann Müller <Ann@Example.org>\nTo: bob@x.org, "Carl, C." <carl@x.org>\n'
        "Cc: Bob <BOB@x.org>\nDate: Thu, 01 Jan 2026 09:00:00 +0200\nSubject: Late delivery\n\n"
        "The parcel came late.\n\nAttachments: bill.pdf"
    )
    assert content.metadata == {"sender": "bob@x.org", "attachments": ["bill.pdf"]}


RAW = {
    "an HTML page": (b"Subject: a\nContent-Type: text/html\n\n<p>One</p><p>two", "One\ntwo"),
    "a form without text": (
        b"Subject: a\nContent-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\n \n--b\n"
        b"Content-Type: text/html\n\n<p>Only here</p>\n--b--\n",
        "Only here",
    ),
    "no text": (b"Subject: Lunch at noon?\n\n", "Lunch at noon?"),
    "an unknown charset": (
        b"Subject: a\nContent-Type: text/plain; charset=nonsense\nContent-Transfer-Encoding: 8bit\n\ncaf\xc3\xa9",
        "café",
    ),
    "a wrong charset": (
        b"Subject: a\nContent-Type: text/plain; charset=us-ascii\nContent-Transfer-Encoding: 8bit\n\n"
        b"Le caf\xe9 \xe9tait d\xe9j\xe0 ferm\xe9 \xe0 No\xebl",
        "Le café était déjà fermé à Noël",
    ),
    "an unknown charset without text": (
        b"Subject: Only this\nContent-Type: text/plain; charset=nonsense\n\n",
        "Only this",
    ),
    "flowed lines": (
        b"Subject: a\nContent-Type: text/plain; format=flowed\n\nThis line \ngoes on.\nThis one ends. \n\nNew.",
        "This line goes on.\nThis one ends. \n\nNew.",
    ),
    "base64": (b"Subject: a\nContent-Transfer-Encoding: base64\n\naGVsbG8gdGhlcmU=\n", "hello there"),
    "several texts": (
        b"Subject: a\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nFirst\n--b\n"
        b"Content-Type: application/pdf\nContent-Disposition: inline; filename=x.pdf\n\n%PDF\n--b\n"
        b"Content-Type: text/plain\n\nSecond\n--b--\n",
        "First\n\nSecond\n\nAttachments: x.pdf",
    ),
    "a form that lacks the text": (
        b"Subject: a\nContent-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\nsee below\n"
        b"--b\nContent-Type: text/html\n\n<table><tr><td>Price<td>48,500 euros</table>\n--b--\n",
        "Price\n48,500 euros",
    ),
    "what belongs to a page": (
        b"Subject: a\nContent-Type: multipart/related; boundary=b\n\n--b\nContent-Type: text/html\n\n<p>Page\n--b\n"
        b"Content-Type: text/css; name=a.css\n\np {color: red}\n--b\nContent-Type: image/png; name=logo.png\n"
        b"Content-ID: <logo>\n\nx\n--b--\n",
        "Page\n\nAttachments: a.css",
    ),
    "a text that is named attached": (
        b"Subject: a\nContent-Type: text/plain\nContent-Disposition: attachment; filename=x.txt\n\nAll there is",
        "All there is",
    ),
    "parts that are not divided": (b"Subject: a\nContent-Type: multipart/mixed; boundary=b\n\nNo parts", "No parts"),
    "a message in base64": (
        b"Subject: a\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n"
        b"Content-Transfer-Encoding: base64\n\nU3ViamVjdDogSW5uZXIKClRleHQ=\n--b--\n",
        "Subject: Inner\n\nText",
    ),
    "UTF-8 under a wrong name": (
        "Subject: a\nContent-Type: text/plain; charset=us-ascii\nContent-Transfer-Encoding: 8bit\n\nnaïve".encode(),
        "naïve",
    ),
    "signs of Windows": (
        b"Subject: a\nContent-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: 8bit\n\nit\x92s \x8050",
        "it’s €50",
    ),
    "Japanese of Windows": (
        b"Subject: a\nContent-Type: text/plain; charset=shift_jis\nContent-Transfer-Encoding: 8bit\n\n"
        + "①髙橋です".encode("cp932"),
        "①髙橋です",
    ),
    "Korean of Windows": (
        b"Subject: a\nContent-Type: text/plain; charset=euc-kr\nContent-Transfer-Encoding: 8bit\n\n"
        + "똠 안녕하세요".encode("cp949"),
        "똠 안녕하세요",
    ),
    "signs before the headers": (b"\xef\xbb\xbf\n>From a@x.org Thu Jan  1 09:00:00 2026\nSubject: a\n\nText", "Text"),
    "a sign that is no text": (b"Subject: a\n\nOne\0two", "Onetwo"),
    "flowed lines without gaps": (
        "Subject: a\nContent-Type: text/plain; charset=utf-8; format=flowed; delsp=yes\n"
        "Content-Transfer-Encoding: 8bit\n\n日本 \n語\n From".encode(),
        "日本語\nFrom",
    ),
    "a broken address": (b"Subject: a\nFrom: <<@@>\nTo: ,,;\nDate: rubbish\n\nText", "Text"),
}


@pytest.mark.parametrize("case", RAW)
def test_the_text_of_a_message(case: str) -> None:
    raw, text = RAW[case]
    assert read_content(raw, "eml", None).text == text


UNREAD = {
    "encrypted": (b"Content-Type: multipart/encrypted; boundary=b\n\n--b\nContent-Type: application/pgp-encrypted\n\n"
                  b"x\n--b\nContent-Type: application/octet-stream; name=e.asc\n\nx\n--b--\n", []),
    "attached files only": (b"Content-Type: application/pdf; name=scan.pdf\n\n%PDF", ["scan.pdf"]),
    "empty": (b"\n \n", []),
}  # fmt: skip


@pytest.mark.parametrize("why", UNREAD)
def test_a_message_without_text_says_why(why: str) -> None:
    """Its subject stood for the text, and nothing told it from a message that says so."""
    raw, files = UNREAD[why]
    content = read_content(b"Subject: Secret\n" + raw, "eml", None)
    assert (content.metadata["unread_body"], content.metadata.get("attachments", [])) == (why, files)
    assert content.text == "\n\n".join(["Secret", *(f"Attachments: {name}" for name in files)])


DATES = {
    "Thu, 01 Jan 2026 09:00:00 +0200": 7,
    "Thu, 01 Jan 2026 09:00:00 GMT+0200": 7,
    "Thu, 1 Jan 26 09:00:60 EST (New York)": 14,
    "2026-01-01T09:00:00Z": 9,
    "2026-01-01 09:00:00+02:00": 7,
    "Thu, 01 Jan 2026 09:00:00": 9,
    "Thu, 01 Jan 2026 09:00:00 CEST": None,
    "1/2/2026 10:00 AM": None,
    "Thu, 01 Jan 0026": None,
}


@pytest.mark.parametrize("said", DATES)
def test_a_date_is_right_or_missing(said: str) -> None:
    sent = read_content(f"Subject: a\nDate: {said}\n\nText".encode(), "eml", None).metadata.get("sent")
    assert (sent.hour if isinstance(sent, datetime) else sent) == DATES[said]


RECIPIENTS = {
    'To: a@x.org; b@x.org; "Doe; J" <c@x.org>': ["a@x.org", "b@x.org", "c@x.org"],
    "To: Doe, Jane <a@x.org>": ["a@x.org"],
    "To: a@x.org\nTo: b@x.org": ["a@x.org", "b@x.org"],
    "To: Team: a@x.org, b@x.org;": ["a@x.org", "b@x.org"],
    "To: root": ["root"],
    "Bcc: a@x.org": ["a@x.org"],
}


@pytest.mark.parametrize("said", RECIPIENTS)
def test_recipients(said: str) -> None:
    assert read_content(f"Subject: a\n{said}\n\nText".encode(), "eml", None).metadata["recipients"] == RECIPIENTS[said]


def test_a_message_without_a_subject_has_no_title(tmp_path: Path) -> None:
    (tmp_path / "0011_nosubject.eml").write_text("From: a@x.org\n\nText")
    assert [item.title for item in read_source(tmp_path) if isinstance(item, Document)] == [""]


def test_a_thread_is_named_after_its_first_message() -> None:
    raw = b"Subject: Re: a\nMessage-ID: <3@x>\nIn-Reply-To: <2@x>\nReferences: <1@x>\n <2@x>\n\nText"
    assert read_content(raw, "eml", None).metadata == {"message_id": "3@x", "thread": "1@x"}
    raw = b"Subject: Re: a\nIn-Reply-To: Your message of Monday <2@x>\n\nText"
    assert read_content(raw, "eml", None).metadata == {"thread": "2@x"}


def test_headers_in_bytes_are_read() -> None:
    raw = "Subject: Prüfung\nFrom: Jörg <j@x.de>\n\nText"
    for encoding in ("latin-1", "utf-8"):
        content = read_content(raw.encode(encoding), "eml", None)
        assert (content.title, content.metadata["sender_name"]) == ("Prüfung", "Jörg")


def test_a_mailbox_may_have_hashes_as_ids(tmp_path: Path) -> None:
    path = kept(tmp_path / "all.mbox", late(), late())
    assert [item.key for item in read_source(path, options=ReadOptions(id="")) if isinstance(item, Document)] == [
        None
    ] * 2


def test_encoded_headers_are_decoded() -> None:
    raw = b"Subject: =?utf-8?q?Caf=C3=A9?=\n =?utf-8?q?_am_Markt?=\nFrom: =?latin-1?q?J=F6rg?= <j@x.de>\n\nText"
    content = read_content(raw, "eml", None)
    assert (content.title, content.metadata) == ("Café am Markt", {"sender": "j@x.de", "sender_name": "Jörg"})


def test_a_file_without_headers_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.eml").write_text("just a line\n\nand text")
    (tmp_path / "b.eml").write_bytes(late().as_bytes())
    reading = read_source(tmp_path)
    skipped, read = list(reading)
    assert skipped == Skipped("a.eml", "it has no headers, so it is no message")
    assert isinstance(read, Document) and (read.key, read.metadata["sent"]) == ("b.eml", FIELDS["sent"])
    assert "sender (text), sender_name (text), recipients (list), cc (list)" in reading.columns.describe()


def kept(path: Path, *messages: EmailMessage) -> Path:
    """Return a mailbox as Python's library writes it."""
    box = mailbox.mbox(path)
    for one in messages:
        box.add(one)
    box.flush()
    return path


def test_a_mailbox(tmp_path: Path) -> None:
    """Lines that begin with "From" are escaped in the file, or lack a time."""
    text = "First line\n\nFrom now on we meet at noon.\n"
    path = kept(tmp_path / "all.mbox", late(), mail(text, Subject="Meeting"), mail("\n", To="a@x.org"))
    reading = read_source(path)
    first, second, third = list(reading)
    assert first == Document(TEXT, "Late delivery", "a1@x", {"mailbox": "all.mbox", **FIELDS}, origin="message 1")
    assert second == Document(text.strip(), "Meeting", None, {"mailbox": "all.mbox"}, origin="message 2")
    assert third == Skipped("message 3", "it has neither text nor subject")
    said = "text: content (of the messages) · title: subject (header) · id: message_id (header) · metadata: "
    assert reading.columns.describe().startswith(said)
    assert preview([path], ReadOptions()).count == 3


def test_a_message_begins_after_a_blank_line_with_a_date(tmp_path: Path) -> None:
    path = tmp_path / "all.mbox"
    begin = "From - Thu Jan  1 09:00:00 2026\r\n"
    other = "From 15@xxx Mon Jan 01 12:00:00 +0000 2018\r\n"
    path.write_text(f"{begin}Subject: a\r\n\r\nOne\r\n{begin}two\r\n\r\n{other}Subject: b\r\n\r\nThree", newline="")
    assert [item.text for item in read_source(path) if isinstance(item, Document)] == [
        f"One\n{begin.strip()}\ntwo",
        "Three",
    ]


def test_a_message_that_is_too_long_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sonde.indexer.readers import mailbox as module
    from sonde.indexer.readers.bytestream import ByteStream
    from sonde.indexer.readers.source import Meter

    monkeypatch.setattr(module, "_LONGEST_MESSAGE", 1_000)
    path = kept(tmp_path / "all.mbox", mail("x " * 600, Subject="long"), mail("short", Subject="b"))
    skipped, read = module.Mailbox(ByteStream("all.mbox", path), ReadOptions(), "mbox").items(Meter())
    assert skipped == Skipped("message 1", "it has more than 1,000 bytes")
    assert isinstance(read, Document) and read.text == "short"


def test_a_mailbox_without_a_message_is_refused(tmp_path: Path) -> None:
    (tmp_path / "all.mbox").write_text("Subject: a\n\nText")
    with pytest.raises(SondeError, match=r'all.mbox holds no message, which begins with a line like "From ann@'):
        list(read_source(tmp_path / "all.mbox"))


def test_messages_that_attach_each_other_deeply() -> None:
    made = mail("innermost", Subject="0")
    for level in range(1, 60):
        outer = mail(f"level {level}", Subject=str(level))
        outer.add_attachment(made)
        made = outer
    text = read_content(made.as_bytes(), "eml", None).text
    assert text.startswith("level 59\n\nSubject: 58\n\nlevel 58") and "level 45" in text and "innermost" not in text
