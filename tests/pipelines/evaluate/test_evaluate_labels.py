"""Labels compared with the true ones: values that no label of the run is."""

from pathlib import Path
from typing import Any

from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index


def test_a_value_that_is_nearly_a_label_is_asked_about(tmp_path: Path) -> None:
    encoder: Any = FakeEncoder()
    truths = ["topup", "river", "cloud"]
    rows = [{"id": str(n), "text": f"top-up river {n}", "truth": truths[n % 3]} for n in range(9)]
    index(rows, tmp_path / "c.sonde", text="text", id="id", encoder=encoder)
    collection = Collection.open(tmp_path / "c.sonde", encoder=encoder)
    collection.label(["Top-up", "river"])
    said = "the run has no label for these values of 'truth': cloud, topup (did you mean 'top-up'?); documents with "
    assert collection.evaluate_labels("labels", "truth").notes == (f"{said}these values count as wrong",)
