"""Several labels per text, as for open answers of a survey: counts, hand codes in tables, exports."""

from pathlib import Path

import numpy as np
import pytest
from command_line import Command
from themes import collection

from sonde.app.api import Collection
from sonde.app.api.opening import Opening
from sonde.app.cli.show_run import breakdown_plot
from sonde.app.mcp.counting import CountTools
from sonde.pipelines.analysis.contrast import changed_beyond_chance

LABELS = ["parcel", "battery", "screen"]
CODES: dict[str, list[str]] = {
    "a1": ["parcel", "battery"], "a2": ["parcel"], "a3": [], "a4": ["screen", "battery", "parcel"],
    "b1": ["battery"], "b2": [], "b3": ["screen"], "b4": ["parcel", "screen"],
}  # fmt: skip


@pytest.fixture
def survey(tmp_path: Path) -> Collection:
    """Eight answers of two regions, whose run "multi" has exactly the labels of CODES."""
    rows = [{"id": id, "text": f"answer {id}", "region": id[0], "year": 2020 + int(id[1])} for id in CODES]
    found = collection(tmp_path / "survey.sonde", rows)
    found.label(LABELS, name="multi", multi_label=True)
    found.correct({id: codes or "none of these" for id, codes in CODES.items()}, "multi")
    found.label(LABELS, name="multi", multi_label=True, replace=True)
    return found


def test_shares_of_several_labels_are_of_the_documents(survey: Collection, sonde: Command, tmp_path: Path) -> None:
    found = survey.breakdown("multi", "region")
    assert found.several and dict(zip(found.parts, found.totals.tolist(), strict=True)) == {"a": 4, "b": 4}
    shares = {(row["name"], row["class"]): row["share"] for row in found.rows()}
    assert shares["parcel", "a"] == 0.75 and shares["none of these", "a"] == 0.25 == shares["battery", "b"]
    assert not survey.breakdown("multi", "region", where="id IN ('a2', 'b1')").several
    over = survey.breakdown("multi", "year", where="region = 'a'")
    assert over.totals.tolist() == [1, 1, 1, 1] and over.counts.sum() == 7
    ran = sonde("runs", "show", survey.path, "multi", "--by", "region", "--shares")
    assert "    75.0%  a                          0  parcel" in ran.out.splitlines()
    assert ran.said[-1].endswith("(a document can have several, so shares can add up to more than 100 %)")
    plot = breakdown_plot("", found, shares=True)
    assert plot.names[-1] == "none of these" and plot.unit == found.base
    assert plot.values[-1].tolist() == [0.25, 0.25]
    drawn = tmp_path / "bars.svg"
    assert sonde("runs", "draw", survey.path, "multi", "--by", "region", "--shares", "--to", drawn).code == 0


def test_a_trend_of_several_labels_is_of_the_documents(survey: Collection) -> None:
    found = CountTools([Opening(survey.path, lambda: survey)]).trends("multi", "year")
    assert found["total"] == {"2021": 2, "2022": 2, "2023": 2, "2024": 2} and "more than 100 %" in found["notes"][0]
    changes = {item["name"]: item["change"] for item in found["items"]}
    assert changes == {"screen": 0.75, "none of these": 0.0, "parcel": 0.0, "battery": -0.25}
    few, many = np.array([100, 300]), np.array([130, 300])
    assert changed_beyond_chance(few, many, (400, 400)) == [True, False]
    assert changed_beyond_chance(few, many, (4_000, 4_000)) == [False, False]
