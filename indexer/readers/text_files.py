"""Text, Markdown, HTML and PDF files, alone or in folders: each is one document."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ..document import Document, Skipped
from ..errors import SondeError
from .bytestream import COMPRESSED_SUFFIXES, ByteStream
from .columns import Columns
from .contents import SUFFIXES, Content, UnreadableError, read_content
from .options import ReadOptions
from .source import Meter, Place, Source, explained

_METADATA = {
    "path": "text",
    "folder": "text",
    "extension": "text",
    "bytes": "integer",
    "modified": "date",
    "pages": "integer",
}
_LONGEST_FILE = 1 << 29


class TextFiles(Source):
    """Documents whose key is the file's path relative to the folder that holds them all."""

    def __init__(self, name: str, paths: Sequence[Path], options: ReadOptions) -> None:
        self.name = name
        self._options = options
        self._base = _base(paths)
        self._files, others = _found(paths, options.format)
        if not self._files:
            raise SondeError(_nothing_to_read(name, others))
        self._sizes = [_size(file) for file in self._files]
        self.total = sum(self._sizes)
        self.items_total = len(self._files)
        self.columns = _columns(len(self._files), others)

    def items(self, meter: Meter) -> Iterator[Document | Skipped]:
        """Each file in turn."""
        for file, size in zip(self._files, self._sizes, strict=True):
            meter.done += size
            yield self._item(file)

    def _item(self, file: Path) -> Document | Skipped:
        key = Path(os.path.relpath(file, self._base)).as_posix()
        format = _format(file, self._options.format)
        try:
            with explained(key, Place()), ByteStream(key, file).open(Meter()) as stream:
                data = stream.read(_LONGEST_FILE + 1)
                status = file.stat()
            if len(data) > _LONGEST_FILE:
                return Skipped(key, f"the file has more than {_LONGEST_FILE:,} bytes")
            content = read_content(data, format, self._options.encoding)
        except UnreadableError as error:
            return Skipped(key, str(error))
        except SondeError as error:
            return Skipped(key, str(error))
        return _document(key, content, status)


class TextStream(Source):
    """A whole stream, such as standard input, as one document without a key."""

    def __init__(self, stream: ByteStream, options: ReadOptions, format: str) -> None:
        self._stream = stream
        self._options = options
        self._format = format
        self.name = stream.name
        self.once = stream.once
        self.total = stream.size
        self.columns = Columns(("content",), reasons={"text": f"the whole {format}"})

    def items(self, meter: Meter) -> Iterator[Document | Skipped]:
        """The one document.

        Raises:
            SondeError: The stream is broken or holds no text.
        """
        with self._stream.open(meter) as file:
            data = file.read()
        try:
            content = read_content(data, self._format, self._options.encoding)
        except UnreadableError as error:
            raise SondeError(f"{self.name} cannot be read: {error}") from error
        yield Document(content.text, content.title, metadata=content.metadata, origin=self.name)


def _document(key: str, content: Content, status: os.stat_result) -> Document:
    path = Path(key)
    metadata = {
        "path": key,
        "folder": path.parent.as_posix(),
        "extension": path.suffix.lstrip(".").lower() or None,
        "bytes": status.st_size,
        "modified": datetime.fromtimestamp(status.st_mtime, UTC),
        **content.metadata,
    }
    stem = path.with_suffix("") if path.suffix.lower() in COMPRESSED_SUFFIXES else path
    return Document(content.text, content.title or stem.stem, key, metadata, origin=key)


def _base(paths: Sequence[Path]) -> Path:
    folders = [path.absolute() if path.is_dir() else path.absolute().parent for path in paths]
    return Path(os.path.commonpath(folders))


def _found(paths: Sequence[Path], format: str | None) -> tuple[list[Path], Counter[str]]:
    """The files to read, those of a folder in sorted order, and how many of each other suffix there are."""
    files: dict[Path, None] = {}
    others: Counter[str] = Counter()
    for path in paths:
        for file in _below(path) if path.is_dir() else [path]:
            if format or file.suffix.lower() in SUFFIXES or not path.is_dir():
                files[file.absolute()] = None
            else:
                others[file.suffix.lower() or "no suffix"] += 1
    return list(files), others


def _below(folder: Path) -> list[Path]:
    found = []
    for where, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(where) / name for name in names if not name.startswith(".")]
    return sorted(found, key=lambda file: file.relative_to(folder).parts)


def _raise(error: OSError) -> None:
    raise SondeError(f"{error.filename} cannot be read: {error.strerror}") from error


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _format(file: Path, format: str | None) -> str:
    plain = file.with_suffix("") if file.suffix.lower() in COMPRESSED_SUFFIXES else file
    return format or SUFFIXES.get(plain.suffix.lower(), "text")


def _columns(files: int, others: Counter[str]) -> Columns:
    left = f"; left out: {_counted(others)}" if others else ""
    number = f"{files:,} file{'s' if files != 1 else ''}"
    reasons = {"text": f"of {number}{left}", "title": "heading, HTML title, PDF title or file name", "id": "relative"}
    return Columns(("content",), "title", "path", None, _METADATA, reasons)


def _counted(others: Counter[str]) -> str:
    return ", ".join(f"{count:,} {suffix}" for suffix, count in others.most_common(5))


def _nothing_to_read(name: str, others: Counter[str]) -> str:
    holds = f"; it holds {_counted(others)}" if others else ""
    return f"{name} holds no file to read ({', '.join(SUFFIXES)}){holds}: name tables such as .csv one by one"
