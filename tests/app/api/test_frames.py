"""DataFrames in and out: types of columns, and ids that are missing."""

from datetime import datetime
from pathlib import Path

import pandas as pd
import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import index
from sonde.indexer.errors import UsageError
from sonde.indexer.readers.given import by_index


def test_dates_among_times_can_be_compared(tmp_path: Path) -> None:
    (tmp_path / "mixed.csv").write_text("id,text,when\n1,a,2024-01-01\n2,b,2024-01-02 10:00\n3,c,\n")
    made = index(tmp_path / "mixed.csv", tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    for frame in (made.to_pandas(), made.search("a", mode="dense").to_pandas().sort_values("id")):
        assert str(frame["when"].dtype) == "datetime64[us]"
        assert sorted(frame["when"].dropna()) == [datetime(2024, 1, 1), datetime(2024, 1, 2, 10)]
        assert frame["when"].isna().tolist() == [False, False, True]


def test_a_missing_id_does_not_cost_the_others_theirs(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [1, 2, None, 4], "text": ["one", "two", "three", "four"]})
    made = index(frame, tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    ids = [row["id"] for row in made.rows()]
    assert (ids[0], ids[1], ids[3], len(ids[2])) == ("1", "2", "4", 32)
    assert made.report is not None
    assert [note.split(":")[0] for note in made.report.notes] == ["1 row without a value in 'id' (first"]
    assert list(made.fields()) == []


def test_a_series_with_an_id_twice_is_refused() -> None:
    """A mapping of it would keep the last label without a word."""
    with pytest.raises(UsageError, match="the index of the Series has 'x' more than once"):
        by_index(pd.Series(["pin", "card"], index=["x", "x"]))
