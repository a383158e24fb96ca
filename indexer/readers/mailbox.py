"""A mailbox of many messages in one file (RFC 4155), as Thunderbird and Google Takeout write it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..document import Document, Skipped, is_blank
from ..errors import SondeError
from .bytestream import ByteStream
from .columns import Columns
from .content import UnreadableError
from .message import MAIL_FIELDS, message
from .source import Item, Meter, ReadOptions, Source

_LONGEST_MESSAGE = 1 << 26
_LONGEST_LINE = 1 << 20
_FIRST_LINE = re.compile(rb"From \S+\s.*\d\d:\d\d.*\d{4}\s*$")
"""What begins a message: the sender and, what a sentence seldom has, a time and a year."""
_ESCAPED = re.compile(rb"^>(>*From )", re.MULTILINE)


class Mailbox(Source):
    """The messages of a file; their ids are what the header `Message-ID` says, unless hashes are wanted."""

    nothing = 'holds no message, which begins with a line like "From ann@example.org Thu Jan  1 09:00:00 2026"'

    def __init__(self, stream: ByteStream, options: ReadOptions, format: str) -> None:
        self._stream = stream
        self._hashed = options.id == ""
        self.name = stream.name
        self.once = stream.once
        self.total = stream.size
        reasons = {"text": "of the messages", "title": "header", "id": "header"}
        id = None if self._hashed else "message_id"
        self.columns = Columns(("content",), "subject", id, None, {"mailbox": "text", **MAIL_FIELDS}, reasons)

    def items(self, meter: Meter) -> Iterator[Item]:
        """One document for each message.

        Raises:
            SondeError: There is none.
        """
        number = 0
        with self._stream.open(meter) as file:
            for number, data in enumerate(_messages(file), start=1):
                yield self._item(f"message {number}", data)
        if not number:
            raise SondeError(f"{self.name} {self.nothing}")

    def _item(self, origin: str, data: bytes) -> Document | Skipped:
        if len(data) > _LONGEST_MESSAGE:
            return Skipped(origin, f"it has more than {_LONGEST_MESSAGE:,} bytes")
        try:
            content = message(_ESCAPED.sub(rb"\1", data))
        except UnreadableError as error:
            return Skipped(origin, str(error))
        if is_blank(content.text):
            return Skipped(origin, "it has neither text nor subject")
        id = content.metadata.get("message_id")
        key = None if self._hashed else str(id or "") or None
        metadata = {"mailbox": Path(self.name).name, **content.metadata}
        return Document(content.text, content.title, key, metadata, origin=origin)


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
