"""One mail message (RFC 5322, MIME): what it says, who sent it to whom, and what is attached."""

import codecs
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import policy
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import getaddresses, parsedate_tz
from typing import cast

from ..document import Value
from .content import Content, UnreadableError, decoded, html
from .encoding import detect_encoding

UNREAD_BODY = "unread_body"
"""The field of messages that have no text to read: "encrypted", "attached files only" or "empty"."""
MAIL_FIELDS = {
    **{"sender": "text", "sender_name": "text", "recipients": "list", "cc": "list", "bcc": "list", "sent": "date"},
    **{"attachments": "list", "message_id": "text", "thread": "text", UNREAD_BODY: "text"},
}
"""Metadata fields of a message, with their types."""
_CHARSETS = {
    **dict.fromkeys(("us-ascii", "ascii", "iso-8859-1", "latin-1", "latin1", "iso_8859-1"), "cp1252"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis", "windows-31j", "ms_kanji"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987", "ksc5601", "korean"), "cp949"),
    **dict.fromkeys(("gb2312", "gbk", "x-gbk"), "gb18030"),
    **{"iso-8859-9": "cp1254", "iso-8859-8-i": "cp1255", "iso-8859-8": "cp1255", "tis-620": "cp874"},
    **{"x-mac-roman": "mac_roman", "macintosh": "mac_roman", "big5": "big5hkscs"},
}
"""The larger encodings that mail programs mean by these names (WHATWG, Encoding, 4.2)."""
_PREAMBLE = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:[ \t]*\r?\n)*(?:>?From [^\n]*\n)?")
_ZONE = re.compile(r"(?:GMT|UTC)?([+-]\d{4})|([A-Za-z]{1,5})")
_SEMICOLON = re.compile(r';(?=(?:[^"]*"[^"]*")*[^"]*$)')
_NAMELESS = re.compile(r"(?:application|audio|image|video|font|model)/(?!pgp|pkcs7|x-pkcs7)")
"""Types of attached files that count although they have no name; what belongs to a signature does not."""
_DEEPEST = 40
"""Levels of parts within parts that are read; a message that is forwarded takes two or three."""


def message(data: bytes) -> Content:
    """A message: its text, those of messages attached to it, and the names of its files; its subject is the title.

    Of a text in two forms, the plain one is taken, unless it lacks most words of the other. The subject stands for a
    text that is missing, and the field `unread_body` says why it is missing.

    Raises:
        UnreadableError: It has no headers, or is damaged.
    """
    try:
        mail = _parsed(data)
        found = _Parts()
        found.take(mail)
        subject, said = header(mail, "subject"), "\n\n".join(found.texts)
        fields = _fields(mail) | found.fields(said)
    except UnreadableError:
        raise
    except Exception as error:  # parts that break their grammar make the parser raise what its code meets
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UnreadableError(f"the message is damaged ({reason})") from error
    names = f"Attachments: {', '.join(found.files)}" if found.files else ""
    return Content("\n\n".join(filter(None, (said or subject, names))), subject, fields)


def _parsed(data: bytes) -> EmailMessage:
    whole = _PREAMBLE.sub(b"", data, count=1).replace(b"\0", b"")
    mail = cast("EmailMessage", BytesParser(policy=policy.default).parsebytes(whole))
    if not mail.keys():
        raise UnreadableError("it has no headers, so it is no message")
    return mail


def header(mail: EmailMessage, name: str) -> str:
    """Return a header as people read it, "" if there is none."""
    return _readable(_written(mail, name))


def _written(mail: EmailMessage, name: str) -> str:
    """Return a header as it is written; several are joined by commas."""
    raw = (_repaired(str(value)) for each, value in mail.raw_items() if each.strip().lower() == name)
    return ", ".join(" ".join(value.split()) for value in raw)


def _readable(value: str) -> str:
    with suppress(LookupError, ValueError, HeaderParseError):  # what cannot be decoded is taken as it is written
        return str(make_header(decode_header(value)))
    return value


def _repaired(value: str) -> str:
    """Return a header with the bytes in it that no encoded word announces."""
    data = value.encode("utf-8", "surrogateescape")
    with suppress(UnicodeDecodeError):
        return data.decode("utf-8")
    return data.decode("cp1252", "replace")


@dataclass(slots=True)
class _Parts:
    """What the parts of a message hold, in their order."""

    texts: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    encrypted: bool = False

    def take(self, part: EmailMessage, depth: int = 0, attached: bool = False) -> None:
        """Take a part and those in it; one that is `attached` to a page is a file, and its pictures are none."""
        kind = part.get_content_type()
        if depth > _DEEPEST:
            return
        if kind == "message/rfc822":
            self._forwarded(part, depth)
        elif kind == "multipart/encrypted" or "smime-type=enveloped" in str(part.get("content-type", "")).lower():
            self.encrypted = True
            self._file(part)
        elif attached and not part.is_multipart():
            if not (kind.startswith("image/") and part.get("content-id")):
                self._file(part)
        elif not part.is_multipart():
            self._leaf(part, kind, root=depth == 0)
        elif kind == "multipart/alternative":
            self._alternative(part, depth)
        else:
            for place, each in enumerate(_inner(part)):
                self.take(each, depth + 1, attached=kind == "multipart/related" and place > 0)

    def _leaf(self, part: EmailMessage, kind: str, root: bool) -> None:
        named = part.get_filename() and part.get_content_disposition() == "attachment"
        textual = kind.startswith(("text/", "plain/", "multipart/")) and kind not in ("text/calendar", "text/rtf")
        if textual and (root or not named):
            if text := _decoded(part):
                self.texts.append(text)
        else:
            self._file(part)

    def _file(self, part: EmailMessage) -> None:
        kind = part.get_content_type()
        if name := part.get_filename() or (kind if _NAMELESS.match(kind) else ""):
            self.files.append(" ".join(_repaired(name).split()))

    def _alternative(self, part: EmailMessage, depth: int) -> None:
        """Take the first form of a text, the plainest, or the last one if the first lacks most of its words."""
        forms = []
        for each in _inner(part):
            form = _Parts()
            form.take(each, depth + 1)
            forms.append(form)
            self.files += form.files
            self.encrypted |= form.encrypted
        told = [form for form in forms if form.texts]
        if told:
            first, last = told[0].texts, told[-1].texts
            plain, rich = (set(re.findall(r"\w+", " ".join(texts).lower())) for texts in (first, last))
            self.texts += last if len(rich - plain) > len(rich) / 2 else first

    def _forwarded(self, part: EmailMessage, depth: int) -> None:
        inner = part.get_payload()
        mail = inner[0] if isinstance(inner, list) and inner else None
        if isinstance(mail, EmailMessage) and not mail.keys():  # Exchange encodes it, which the standard forbids
            with suppress(UnreadableError, ValueError):
                mail = _parsed(codecs.decode(str(mail.get_payload()).encode(), "base64"))
        if isinstance(mail, EmailMessage):
            lines = (f"{name.title()}: {said}" for name in ("from", "to", "cc", "date", "subject")
                     if (said := header(mail, name)))  # fmt: skip
            self.texts.append("\n".join(lines))
            self.take(mail, depth + 1)

    def fields(self, text: str) -> dict[str, Value]:
        """Return the attached files, and why there is no text."""
        without = "encrypted" if self.encrypted else "attached files only" if self.files else "empty"
        found: dict[str, Value] = {"attachments": [*self.files]} if self.files else {}
        return found | ({} if text else {UNREAD_BODY: without})


def _inner(part: EmailMessage) -> Iterator[EmailMessage]:
    return cast("Iterator[EmailMessage]", part.iter_parts())


def _decoded(part: EmailMessage) -> str:
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else str(part.get_payload()).encode("utf-8", "surrogateescape")
    charset = _charset(data, part.get_content_charset() or "")
    if part.get_content_subtype() == "html":
        return html(data, charset).text.strip()
    text = decoded(data, charset)
    return (_unwrapped(text, part) if part.get_param("format") == "flowed" else text).strip()


def _charset(data: bytes, declared: str) -> str:
    """Return the encoding of a text: what its declaration means, or what its bytes look like."""
    meant = _CHARSETS.get(declared.lower(), declared)
    for name in (*(["utf-8"] if meant == "cp1252" else []), meant, declared):  # no Western text is UTF-8 by chance
        with suppress(LookupError, UnicodeError):  # a name that Python does not know, or a wrong one
            codecs.lookup(name)
            data.decode(name)
            return name
    return detect_encoding(data)


def _unwrapped(text: str, part: EmailMessage) -> str:
    """Return a text whose lines end with a space if they go on in the next one (RFC 3676)."""
    text = re.sub(r"^ ", "", text, flags=re.MULTILINE)
    gap = "" if part.get_param("delsp") == "yes" else " "
    return re.sub(r"(?m)(?<!^--) \n(?![\n>])", gap, text)


def _fields(mail: EmailMessage) -> dict[str, Value]:
    senders = _addresses(mail, "from")
    name, sender = senders[0] if senders else ("", "")
    to, cc, bcc = ([address for _, address in _addresses(mail, each)] for each in ("to", "cc", "bcc"))
    id = _ids(_written(mail, "message-id"))
    earlier = _ids(_written(mail, "references")) or _ids(_written(mail, "in-reply-to"))
    fields: dict[str, Value] = {"sender": sender, "sender_name": name, "sent": _sent(_written(mail, "date"))}
    fields |= {"recipients": [*dict.fromkeys(to + cc + bcc)], "cc": [*cc], "bcc": [*bcc]}
    fields |= {"message_id": (id or [""])[0], "thread": (earlier or id or [""])[0]}
    return {field: value for field, value in fields.items() if value}


def _ids(said: str) -> list[str]:
    return re.findall(r"<([^<>\s]+)>", said) or said.split()[:1]


def _addresses(mail: EmailMessage, name: str) -> list[tuple[str, str]]:
    """Return the names and the addresses, in small letters, that a field has; some programs put `;` between them."""
    said = _written(mail, name)
    found = getaddresses([said if ":" in said else _SEMICOLON.sub(",", said)])
    named = [(_readable(name.strip()), address.strip().lower()) for name, address in found if address.strip()]
    return [each for each in named if "@" in each[1]] or named  # a name with a comma is taken for two


def _sent(said: str) -> datetime | None:
    """Return when a message was sent, in UTC; None if that is unclear, such as in a zone that nobody can know."""
    with suppress(ValueError, OverflowError, IndexError, TypeError):
        said = re.sub(r"\([^()]*\)", " ", said).strip()
        if re.match(r"\d{4}-\d\d-\d\d", said):
            sent = datetime.fromisoformat(said)
            return _dated(sent.astimezone(UTC) if sent.tzinfo else sent.replace(tzinfo=UTC))
        zone = _ZONE.fullmatch(said.split()[-1])
        if zone and zone[1]:
            said = f"{said.rsplit(maxsplit=1)[0]} {zone[1]}"
        parsed = parsedate_tz(said)
        if parsed is None or (zone and zone[2] and zone[2].upper() not in ("GMT", "UTC", "UT", "Z") and not parsed[9]):
            return None
        moment = datetime(*parsed[:5], min(parsed[5], 59), tzinfo=UTC)
        return _dated(datetime.fromtimestamp(moment.timestamp() - (parsed[9] or 0), UTC))
    return None


def _dated(sent: datetime) -> datetime | None:
    return sent if 1970 <= sent.year <= 2100 else None
