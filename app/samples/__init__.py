"""The files of the tutorials: tickets, questions and answers, and the handbook of an invented shop."""

import shutil
from pathlib import Path

from ...indexer.errors import SondeError, UsageError

SAMPLES = Path(__file__).parent
NAMES = ("tickets.csv", "faq.csv", "answered.txt", "unanswerable.txt", "handbook")


def write_samples(folder: Path) -> None:
    """Write the files into a new or empty folder.

    Raises:
        UsageError: The folder is not empty.
        SondeError: It cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty: name a new folder", code="exists", field="files", value=str(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            whole = shutil.copytree if (SAMPLES / name).is_dir() else shutil.copy
            whole(SAMPLES / name, folder / name)
    except OSError as error:
        raise SondeError(f"{folder} cannot be written: {error.strerror or error}") from None
