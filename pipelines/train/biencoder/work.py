"""What a run has done already, in its folder: a killed one measures and mines nothing twice."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ....indexer.errors import SondeError
from ....indexer.files import write_durably
from .measure import Outcome

RUN = "run.json"


def begin_work(folder: Path, run: str) -> None:
    """Make the folder of a run, or check that it is this run's.

    Raises:
        SondeError: It belongs to a run with other data or settings.
    """
    folder.mkdir(exist_ok=True)
    if kept(folder / RUN, lambda: run) != run:
        raise SondeError(
            f"{folder} is of a run with other data or settings: give the same ones to go on, or remove the folder"
        )


def kept(path: Path, make: Callable[[], Any]) -> Any:
    """Return what a file holds, as JSON; what `make` returns is written where there is none."""
    if path.is_file():
        return json.loads(path.read_text("utf-8"))
    made = make()
    write_durably(path, lambda stream: stream.write(json.dumps(made, ensure_ascii=False).encode()))
    return made


def kept_outcome(folder: Path, make: Callable[[], Outcome]) -> Outcome:
    """Return a measurement, from its file if it was made before; the collection made for it is removed."""
    path = folder.with_suffix(".json")
    found = kept(path, lambda: {name: values.tolist() for name, values in make().items()})
    shutil.rmtree(folder, ignore_errors=True)
    return {name: np.array(values, np.float64) for name, values in found.items()}
