"""A small survey with several codes per answer, for the examples of the documents."""

from pathlib import Path
from typing import Any

import pandas as pd

from sonde.app.api import index


def survey(folder: Path, encoder: Any) -> None:
    """A survey with a run of several labels per text, and a workbook of codes by hand."""
    answers = [{"id": f"R{n}", "text": f"late and dirty, answer {n}", "region": ("North", "South")[n % 2]}
               for n in range(8)]  # fmt: skip
    made: Any = index(answers, folder / "survey.sonde", id="id", text="text", encoder=encoder)
    made.label("late,dirty,rude", name="codes", multi_label=True)
    codes = pd.DataFrame({"id": ["R1", "R2", "R3"], "label": ["late; dirty", "none of these", None]})
    codes.to_excel(folder / "coded.xlsx", index=False)
