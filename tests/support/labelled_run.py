"""Labels a collection with a judge that counts the texts it reads; run in a process of its own, to be killed.

python labelled_run.py FOLDER LOG SECONDS
"""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from fake_encoder import FakeEncoder

from sonde.indexer.store.collection import StoredCollection
from sonde.pipelines.label import Label, LabelSettings, label_collection

LABELS = ["apple", "river", "cloud"]
SETTINGS = LabelSettings(engine="nli", budget=3 * 120, name="judged")


class CountingJudge:
    """Finds a label's name in the text; writes a line for each text that it reads."""

    name = "nli"
    model = "fake"

    def __init__(self, log: Path, seconds: float = 0.0) -> None:
        self.log = log
        self.seconds = seconds

    def margins(
        self, texts: Sequence[str], labels: Sequence[Label], multi_label: bool,
        chosen: np.ndarray | None = None, on_batch: Callable[[int], object] | None = None,
    ) -> np.ndarray:  # fmt: skip
        time.sleep(self.seconds)
        with self.log.open("a") as stream:
            stream.writelines(text.replace("\n", " ") + "\n" for text in texts)
        found = np.array([[3.0 * text.lower().count(label.name) for label in labels] for text in texts], np.float32)
        return found if chosen is None else np.where(chosen, found, np.nan).astype(np.float32)


def label(folder: Path, log: Path, seconds: float = 0.0, settings: LabelSettings = SETTINGS) -> Any:
    """Label the collection."""
    collection = StoredCollection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    try:
        return label_collection(collection, LABELS, settings, judge=CountingJudge(log, seconds))
    finally:
        collection.close()


if __name__ == "__main__":
    label(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
