"""The files of the tutorials: tickets, a survey, questions and answers, and the handbook of an invented shop."""

import shutil
from pathlib import Path

from ...indexer.errors import SondeError, UsageError

SAMPLES = Path(__file__).parent
NAMES = (
    *("tickets.csv", "faq.csv", "answered.txt", "unanswerable.txt", "handbook"),
    *("survey.csv", "survey-2.csv", "coded.jsonl", "checked.jsonl"),
)


def write_samples(folder: Path) -> None:
    """Write the files into a new or empty folder, unless they are there already.

    Raises:
        UsageError: The folder has other files.
        SondeError: It cannot be written.
    """
    if _written(folder):
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty: name a new folder", code="exists", field="files", value=str(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            whole = shutil.copytree if (SAMPLES / name).is_dir() else shutil.copy
            whole(SAMPLES / name, folder / name)
    except OSError as error:
        raise SondeError(f"{folder} cannot be written: {error.strerror or error}") from None


def _written(folder: Path) -> bool:
    """Whether the folder has all files as they are here."""
    files = [SAMPLES / name for name in NAMES if (SAMPLES / name).is_file()] + [*(SAMPLES / "handbook").iterdir()]
    copies = [(file, folder / file.relative_to(SAMPLES)) for file in files]
    return all(copy.is_file() and copy.read_bytes() == file.read_bytes() for file, copy in copies)
