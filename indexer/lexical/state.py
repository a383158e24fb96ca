"""What a lexical index holds, on disk beside it, exact after a kill at any moment."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ..errors import SondeError
from ..files import write_durably

SCHEMA = 1
"""Version of the index's fields and of the analysis; another version is rebuilt."""


@dataclass(frozen=True, slots=True)
class LexicalState:
    """What the last commit holds: the catalog's rows below `through_row`.

    `settled` counts the tombstones that its statistics are known to be free of.
    """

    through_row: int = 0
    settled: int = 0


def read_state(folder: Path) -> LexicalState:
    """Return the state of the last commit.

    `commit_state` writes down the coming state before Tantivy commits and confirms it after; a kill in between leaves
    an unconfirmed state, and whether it holds is told by Tantivy's own number of the last commit.

    Raises:
        SondeError: The file is missing, damaged or of another version.
    """
    path = folder / "state.json"
    try:
        stored = json.loads(path.read_bytes())
        schema, confirmed = stored["schema"], stored["opstamp"] == opstamp(folder)
        state = LexicalState(**stored["state" if confirmed else "next"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise damaged(folder, f"{path.name}: {type(error).__name__}: {error}") from None
    if schema != SCHEMA:
        raise damaged(folder, f"it has version {schema!r}, and this Sonde reads version {SCHEMA}")
    return state


def announce(folder: Path, state: LexicalState, coming: LexicalState) -> None:
    """Write down the state that the next commit will have."""
    _write(folder, state, coming)


def confirm(folder: Path, state: LexicalState) -> None:
    """Write down the state of the commit that was just made."""
    _write(folder, state, state)


def opstamp(folder: Path) -> int:
    """Return Tantivy's number of the last commit; it grows with every one."""
    return json.loads((folder / "meta.json").read_bytes())["opstamp"]


def damaged(folder: Path, reason: object) -> SondeError:
    """Return the error for an index that cannot be read."""
    line = " ".join(str(reason).split())
    return SondeError(f"the lexical index in {folder} is damaged ({line}): `sonde repair` rebuilds it from the catalog")


def _write(folder: Path, state: LexicalState, coming: LexicalState) -> None:
    stored = {"schema": SCHEMA, "opstamp": opstamp(folder), "state": asdict(state), "next": asdict(coming)}
    write_durably(folder / "state.json", lambda stream: stream.write(json.dumps(stored).encode()))
