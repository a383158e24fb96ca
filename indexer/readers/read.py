"""From what the user names as a source to a `Reading`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import SondeError, UsageError
from .bytestream import ByteStream
from .formats import TEXT_FORMATS, format_by_name, table_source
from .options import ReadOptions, did_you_mean
from .python_objects import python_source
from .reading import Part, Reading
from .source import Place, Source, explained
from .text_files import TextFiles

_STDIN = "-"
_DEFAULTS = ReadOptions()


def read(source: Any, *, options: ReadOptions = _DEFAULTS) -> Reading:
    """Open a source and find out what its columns are.

    Args:
        source: A path, "-" for standard input, a list of those; or a list or generator of str, dict or `Document`, a
            pandas or Polars DataFrame, an Arrow table, a Hugging Face dataset. A list of str counts as paths if one of
            them exists or all end like a file that can be read; `Path` objects leave no doubt.
        options: What is known about the source; the rest is found by name and content.

    Raises:
        UsageError: A column that was set does not exist, no column can be the text, or the format is unknown.
        SondeError: A file is missing, empty, damaged or may not be read.
    """
    paths = _paths(source)
    sources = [python_source(source)] if paths is None else list(file_sources(paths, options))
    return Reading([Part(one, options) for one in sources])


def _paths(source: Any) -> list[str | Path] | None:
    if isinstance(source, (str, Path)):
        return [source]
    if not isinstance(source, (list, tuple)) or not source or not all(isinstance(one, (str, Path)) for one in source):
        return None
    sure = any(isinstance(one, Path) or _exists(one) for one in source)
    return list(source) if sure or all(" " not in one and format_by_name(Path(one)) for one in source) else None


def _exists(name: str) -> bool:
    try:
        return name == _STDIN or Path(name).exists()
    except (OSError, ValueError):  # a text that is too long, or holds a NUL, is no path
        return False


def file_sources(paths: Sequence[str | Path], options: ReadOptions) -> Iterator[Source]:
    """Yield one source for each table, and a single one for all folders and text files together."""
    existing = [path if str(path) == _STDIN else present(Path(path)) for path in paths]
    texts = [path for path in existing if isinstance(path, Path) and str(path) != _STDIN and _is_text(path, options)]
    if texts:
        yield TextFiles(_name(texts), texts, options)
    for path in existing:
        if str(path) == _STDIN:
            yield _table("standard input", None, options)
        elif path not in texts:
            yield _table(str(path), Path(path), options)


def _table(name: str, path: Path | None, options: ReadOptions) -> Source:
    with explained(name, Place()):
        return table_source(ByteStream(name, path), options)


def _name(paths: Sequence[Path]) -> str:
    return str(paths[0]) + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")


def _is_text(path: Path, options: ReadOptions) -> bool:
    if path.is_dir() and options.format not in (None, *TEXT_FORMATS):
        raise UsageError(f"{path} is a folder, whose files are read as texts: name the {options.format} files in it")
    return path.is_dir() or (path.is_file() and (options.format or format_by_name(path)) in TEXT_FORMATS)


def present(path: Path) -> Path:
    """Return the path.

    Raises:
        SondeError: Nothing is there, or it may not be looked at; what has a similar name is proposed.
    """
    try:
        path.stat()
    except FileNotFoundError:
        folder = path.parent
        siblings = [one.name for one in folder.iterdir()] if folder.is_dir() else []
        near = did_you_mean(path.name, siblings)
        where = "" if folder.is_dir() else f", there is no folder {folder}"
        raise SondeError(f"{path} does not exist{near}{where}: check the path") from None
    except (OSError, ValueError) as error:
        raise SondeError(f"{path!s:.200} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return path
