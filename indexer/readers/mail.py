"""Mail: one message in a file (RFC 5322), or a mailbox of many (RFC 4155)."""

import codecs
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import getaddresses, parsedate_to_datetime
from typing import BinaryIO, cast

from ..document import Document, Skipped, Value, is_blank
from ..errors import SondeError
from .bytestream import ByteStream
from .columns import Columns
from .content import Content, UnreadableError, decoded, html
from .encoding import detect_encoding
from .source import Item, Meter, ReadOptions, Source

MAIL_FIELDS = {"sender": "text", "sender_name": "text", "recipients": "list", "sent": "date", "attachments": "list"}
"""Metadata fields of a message, with their types."""
_LONGEST_MESSAGE = 1 << 26
_LONGEST_LINE = 1 << 20
_FIRST_LINE = re.compile(rb"From \S+\s.*\d\d:\d\d.*\d{4}\s*$")
"""What begins a message in a mailbox: the sender and, what a sentence seldom has, a time and a year."""
_ESCAPED = re.compile(rb"^>(>*From )", re.MULTILINE)
_DEEPEST = 10
"""Messages that are forwarded in one another."""


def message(data: bytes) -> Content:
    """A message: its text, then the texts of the messages attached to it; its subject is the title.

    Of a text in several forms, the plain one is taken. The subject stands for a text that is missing. Attached files
    are named in `attachments`, not read.

    Raises:
        UnreadableError: It has no headers, or they are damaged.
    """
    return _content(_parsed(data))


def _parsed(data: bytes) -> EmailMessage:
    mail = cast("EmailMessage", BytesParser(policy=policy.default).parsebytes(data))
    if not mail.keys():
        raise UnreadableError("it has no headers, so it is no message")
    return mail


def _content(mail: EmailMessage) -> Content:
    try:
        subject = _header(mail, "subject")
        return Content(_text(mail) or subject, subject, _fields(mail))
    except UnreadableError:
        raise
    except Exception as error:  # parts that break their grammar make the parser raise what its code meets
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UnreadableError(f"the message is damaged ({reason})") from error


def _header(mail: EmailMessage, name: str) -> str:
    try:
        value = mail.get(name, "")
    except Exception:  # as above: what cannot be parsed is taken as it is written
        value = next((raw for each, raw in mail.raw_items() if each.lower() == name), "")
    return " ".join(str(value).split())


def _text(mail: EmailMessage, depth: int = 0) -> str:
    forms = (mail.get_body((form,)) for form in ("plain", "html"))
    texts = [next(filter(None, (_decoded(form) for form in forms if form is not None)), "")]
    for part in _attached(mail):
        if (forwarded := _forwarded(part)) is not None and depth < _DEEPEST:
            texts += [_header(forwarded, "subject"), _text(forwarded, depth + 1)]
    return "\n\n".join(filter(None, texts))


def _attached(mail: EmailMessage) -> list[EmailMessage]:
    return list(cast("Iterator[EmailMessage]", mail.iter_attachments())) if mail.is_multipart() else []


def _forwarded(part: EmailMessage) -> EmailMessage | None:
    inner = part.get_payload()
    found = inner[0] if part.get_content_type() == "message/rfc822" and isinstance(inner, list) and inner else None
    return found if isinstance(found, EmailMessage) else None


def _decoded(part: EmailMessage) -> str:
    data = cast("bytes", part.get_payload(decode=True) or b"")
    charset = part.get_content_charset()
    try:
        codecs.lookup(charset or "")
        data.decode(charset or "")
    except (LookupError, UnicodeError):  # a name that Python does not know, or a wrong one
        charset = detect_encoding(data)
    if part.get_content_subtype() == "html":
        return html(data, charset).text.strip()
    text = decoded(data, charset)
    flowed = part.get_param("format") == "flowed"  # RFC 3676: a line that ends with a space goes on in the next one
    return (re.sub(r" \n(?!\n)", " ", text) if flowed else text).strip()


def _fields(mail: EmailMessage) -> dict[str, Value]:
    senders = _addresses(mail, "from")
    name, sender = senders[0] if senders else ("", "")
    recipients = dict.fromkeys(address for field in ("to", "cc") for _, address in _addresses(mail, field))
    files = [part.get_filename() or part.get_content_type() for part in _attached(mail) if _forwarded(part) is None]
    fields: dict[str, Value] = {"sender": sender, "sender_name": name, "recipients": [*recipients]}
    fields |= {"sent": _sent(mail), "attachments": [*files]}
    return {field: value for field, value in fields.items() if value}


def _addresses(mail: EmailMessage, field: str) -> list[tuple[str, str]]:
    """Return the names and the addresses, in small letters, that a field has."""
    found = getaddresses([_header(mail, field)])
    return [(name.strip(), address.strip().lower()) for name, address in found if address.strip()]


def _sent(mail: EmailMessage) -> datetime | None:
    with suppress(ValueError, OverflowError, IndexError):
        sent = parsedate_to_datetime(_header(mail, "date"))
        sent = sent.astimezone(UTC) if sent.tzinfo else sent.replace(tzinfo=UTC)
        return sent if 1970 <= sent.year <= 2100 else None
    return None


class Mailbox(Source):
    """The messages of a file; their ids are what the header `Message-ID` says."""

    nothing = 'holds no message, which begins with a line like "From ann@example.org Thu Jan  1 09:00:00 2026"'

    def __init__(self, stream: ByteStream, options: ReadOptions, format: str) -> None:
        self._stream = stream
        self.name = stream.name
        self.once = stream.once
        self.total = stream.size
        reasons = {"text": "of the messages", "title": "header", "id": "header"}
        self.columns = Columns(("content",), "subject", "message_id", None, MAIL_FIELDS, reasons)

    def items(self, meter: Meter) -> Iterator[Item]:
        """One document for each message.

        Raises:
            SondeError: There is none.
        """
        number = 0
        with self._stream.open(meter) as file:
            for number, data in enumerate(_messages(file), start=1):
                yield _item(f"message {number}", data)
        if not number:
            raise SondeError(f"{self.name} {self.nothing}")


def _item(origin: str, data: bytes) -> Document | Skipped:
    if len(data) > _LONGEST_MESSAGE:
        return Skipped(origin, f"it has more than {_LONGEST_MESSAGE:,} bytes")
    try:
        mail = _parsed(_ESCAPED.sub(rb"\1", data))
        content = _content(mail)
    except UnreadableError as error:
        return Skipped(origin, str(error))
    if is_blank(content.text):
        return Skipped(origin, "it has neither text nor subject")
    key = _header(mail, "message-id").strip("<>") or None
    return Document(content.text, content.title, key, content.metadata, origin=origin)


def _messages(file: BinaryIO) -> Iterator[bytes]:
    """Yield the bytes of each message; of one that is too long, the beginning."""
    data, begun, after_blank = bytearray(), False, True
    while line := file.readline(_LONGEST_LINE):
        if after_blank and _FIRST_LINE.match(line):
            if begun:
                yield bytes(data)
            data, begun = bytearray(), True
        elif begun and len(data) <= _LONGEST_MESSAGE:
            data += line
        after_blank = line in (b"\n", b"\r\n")
    if begun:
        yield bytes(data)
