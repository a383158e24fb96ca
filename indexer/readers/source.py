"""What every reader of a format offers: items, one after the other."""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..document import Document, Skipped
from ..errors import SondeError
from .columns import Columns


@dataclass(frozen=True, slots=True)
class Row:
    """One record before its columns have roles: values by column name, nested objects flattened."""

    origin: str
    values: Mapping[str, Any]


Item = Row | Document | Skipped


@dataclass(slots=True)
class Meter:
    """How far one pass over a source has come, in the source's unit."""

    done: int = 0


class Source(ABC):
    """One file, folder, stream or Python object.

    `total` is in `unit`, None where unknown; `items_total` counts the items, None where that takes a pass. A source
    that is there `once` gives its items a single time. In a `textual` one every cell is a string whose type has to be
    found. `note` says how it is read where that was found out, `nothing` what is wrong when there is no item.
    `columns` is set where the format fixes the roles.
    """

    name: str
    total: int | None = None
    items_total: int | None = None
    unit: str = "bytes"
    once: bool = False
    textual: bool = False
    note: str = ""
    nothing: str = "holds no rows: give a source with content"
    columns: Columns | None = None

    @abstractmethod
    def items(self, meter: Meter) -> Iterator[Item]:
        """Start a pass; `meter` follows it."""


@dataclass(slots=True)
class Place:
    """Where a pass is, for messages: the origin of the latest item."""

    origin: str = ""

    def __str__(self) -> str:
        return f" after {self.origin}" if self.origin else ""


@contextmanager
def explained(name: str, place: Place) -> Iterator[None]:
    """Turn what goes wrong with the bytes of `name` into one line.

    Raises:
        SondeError: In place of errors of the operating system, of decompression and of decoding.
    """
    try:
        yield
    except UnicodeError as error:
        raise SondeError(f"{name} cannot be decoded{place} ({error}): set its encoding (--encoding)") from error
    except OSError as error:
        if type(error).__module__ == "gzip":
            raise _damaged(name, place, error) from error
        raise SondeError(f"{name} cannot be read{place}: {error.strerror or error}") from error
    except (EOFError, zlib.error) as error:
        raise _damaged(name, place, error) from error
    except Exception as error:
        if type(error).__name__ != "ZstdError":  # its library is not loaded for the sake of an except clause
            raise
        raise _damaged(name, place, error) from error


def _damaged(name: str, place: Place, error: Exception) -> SondeError:
    reason = " ".join(str(error).split()).rstrip(".")
    return SondeError(f"{name} breaks off{place}: its compressed data is damaged or cut short ({reason}); get it again")
