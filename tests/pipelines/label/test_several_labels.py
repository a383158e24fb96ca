"""Several labels per text, as for open answers of a survey: counts, hand codes in tables, exports."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import Command
from http_service import client_of
from themes import collection

from sonde.app.api import Collection
from sonde.app.api.served import Opening
from sonde.app.cli.feedback import print_unsure
from sonde.app.cli.show_run import breakdown_plot
from sonde.app.http.client import RemoteCollection
from sonde.app.mcp.counting import CountTools
from sonde.indexer.errors import SondeError, UsageError
from sonde.pipelines.analysis.statistics import changed_beyond_chance
from sonde.pipelines.compare import compare_runs
from sonde.pipelines.label.labels import codes_of
from sonde.pipelines.label.review import Unsure

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


def test_documents_outside_a_run_have_no_labels(survey: Collection) -> None:
    """Several labels are a list, which was empty and so never NULL: quotes put hand-coded texts first."""
    survey.put([{"id": "c1", "text": "a new answer", "metadata": {"region": "c"}}])
    inside = set(CODES)
    for where, expected in (
        ('"label:multi" IS NULL', {"c1"}), ('"label:multi" IS NOT NULL', inside),
        ('"correction:multi" IS NULL', {"c1"}), ("'none of these' IN \"label:multi\"", {"a3", "b2"}),
    ):  # fmt: skip
        assert {each.id for each in survey.matching(where)[1]} == expected


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


HAND = {"a1": ["screen"], "a2": ["battery", "screen"], "a3": [], "b1": ["parcel", "battery"]}
TABLES = {
    "cells": [(id, "; ".join(names) or "None of these") for id, names in HAND.items()],
    "commas": [(id, ", ".join(names).title() or "none of these") for id, names in HAND.items()],
    "json": [(id, json.dumps(names or ["none of these"])) for id, names in HAND.items()],
    "rows": [(id, name) for id, names in HAND.items() for name in names or ["none of these"]],
}


@pytest.mark.parametrize("suffix", [".csv", pytest.param(".xlsx", marks=pytest.mark.long)])
@pytest.mark.parametrize("way", [*TABLES, "columns"])
def test_several_codes_come_from_any_table(
    survey: Collection, sonde: Command, tmp_path: Path, way: str, suffix: str
) -> None:
    table = (
        pd.DataFrame(
            {"id": [*HAND], "region": 1} | {name: [int(name in names) for names in HAND.values()] for name in LABELS}
        )
        if way == "columns"
        else pd.DataFrame(TABLES[way], columns=["id", "label"])
    )
    path = tmp_path / f"hand{suffix}"
    table.to_csv(path, index=False) if suffix == ".csv" else table.to_excel(path, index=False)
    wanted = {id: tuple(names) for id, names in (CODES | HAND).items()}
    assert sonde("runs", "correct", survey.path, "--run", "multi", "--from", path).code == 0
    assert {each.id: tuple(sorted(each.labels)) for each in survey.corrections("multi")} == {
        id: tuple(sorted(names)) for id, names in wanted.items()
    }
    survey.delete_run("multi", kind="correction")
    assert survey.correct(table, "multi").documents == 4 == survey.correct(path, "multi").documents
    assert survey.correct(path).run == "multi"
    survey.delete_run("multi", kind="correction")
    for truth in (table, path):
        found = survey.evaluate_labels("multi", truth)
        assert (found.documents, found.accuracy) == (4, 0.25), "a3 alone is as before"
        assert {each.label for each in found.classes} == {*LABELS, "none of these"}


def test_a_cell_is_divided_only_where_it_is_no_label() -> None:
    known = ["late, broken", "late", "rude"]
    assert codes_of(["late, broken"], known) == ["late, broken"]
    assert codes_of(["Late, broken; rude"], known) == ["Late, broken", "rude"]
    assert codes_of(["rude|late", "rude"], known) == ["rude", "late"]
    assert codes_of(["rude; lte"], known) == ["rude", "lte"]
    assert codes_of(["cheap, fast", "[1]", "[]"], known) == ["cheap, fast", "[1]", "none of these"]


def test_an_unknown_code_is_named_with_the_nearest(survey: Collection, tmp_path: Path) -> None:
    path = tmp_path / "hand.csv"
    path.write_text('id,label\na1,"screen; batery"\n')
    said = (
        "the run 'multi' has no label 'batery' (did you mean 'battery'?): there are parcel, battery, screen, none of "
    )
    with pytest.raises(UsageError, match=f"^{re.escape(said)}"):
        survey.correct(path, "multi")
    path.write_text("id,screen,batery\na1,1,1\n")
    with pytest.raises(
        UsageError, match=r"^there is no label 'batery' \(did you mean 'battery'\?\): rename this column"
    ):
        survey.correct(path, "multi")
    survey.label(LABELS, name="single")
    path.write_text("id,label\na1,screen\na1,battery\n")
    for ask in (survey.correct, lambda table, run: survey.evaluate_labels(run, table)):
        with pytest.raises(
            UsageError, match=r"rows 1 and 2 of .* give 'a1' different labels, screen and battery: keep one"
        ):
            ask(path, "single")
    path.write_text('id,label\na1,"screen; battery"\n')
    with pytest.raises(
        UsageError, match=r"^the run 'single' gives each text one label: choose one of screen, battery$"
    ):
        survey.correct(path, "single")


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_a_sheet_to_code_by_hand(survey: Collection, sonde: Command, tmp_path: Path, suffix: str) -> None:
    survey.delete_run("multi", kind="correction")
    path = tmp_path / f"hand{suffix}"
    ask = ("runs", "correct", survey.path, "--random", "-k", 5, "--run", "multi", "--to", path)
    ran = sonde(*ask)
    assert ran.out == "" and ran.said[-1].startswith(
        f"5 documents of multi written to {path}: fill in the column label"
    )
    sonde(*ask).refused("exists and may hold codes: write to another file", code=2)
    sonde(*ask[:-1], tmp_path / "hand.jsonl").refused("must end in .csv or .xlsx", code=2)
    table: Any = pd.read_csv(path) if suffix == ".csv" else pd.read_excel(path, engine="openpyxl")
    assert list(table) == ["id", "text", "label:multi", "label"] and table["label"].isna().all() and len(table) == 5
    assert {row["id"]: row["label:multi"] for _, row in table.iterrows()} == {
        id: "; ".join(CODES[id]) or "none of these" for id in table["id"]
    }
    back = ("runs", "correct", survey.path, "--run", "multi", "--from", path)
    sonde(*back).refused("has a label: write one beside each text that you coded", code=2)
    table["label"] = ["screen; parcel", "none of these", "", "battery", ""]
    table.to_csv(path, index=False) if suffix == ".csv" else table.to_excel(path, index=False)
    assert sonde(*back).said == [
        "note: 2 rows without a label left out",
        "multi: 3 documents corrected, 3 corrections kept",
    ]
    given = {each.id: each.labels for each in survey.corrections("multi")}
    assert [given[id] for id in table["id"][[0, 1, 3]]] == [("screen", "parcel"), (), ("battery",)]
    table["text"] = [f"  {table['text'][0]}", *table["text"][1:3], "It was red.", "Nobody coded it."]
    table.to_csv(path, index=False) if suffix == ".csv" else table.to_excel(path, index=False)
    assert sonde(*back).said[1] == (
        f"note: 1 text of {path.name} has changed since the sheet was written, and the corrections were made for what "
        f"it shows: {table['id'][3]}"
    )


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".parquet"])
def test_an_export_has_a_column_of_1_and_0_for_each_label(
    survey: Collection, sonde: Command, tmp_path: Path, suffix: str
) -> None:
    survey.put([{"id": "c1", "text": "a late answer", "region": "c"}])
    path = tmp_path / f"codes{suffix}"
    assert sonde("export", survey.path, "--to", path, "--indicators", "multi").code == 0
    read: Any = {".csv": pd.read_csv, ".xlsx": partial(pd.read_excel, engine="openpyxl"), ".parquet": pd.read_parquet}
    table: Any = read[suffix](path).set_index("id")
    names = [f"multi: {name}" for name in (*LABELS, "none of these")]
    assert list(table)[-4:] == names
    for id, codes in CODES.items():
        assert [int(table.loc[id, name]) for name in names] == [
            *(int(name in codes) for name in LABELS),
            int(not codes),
        ]
    assert table.loc["c1", names].isna().all(), "the document is not in the run"
    frame = survey.to_pandas(indicators="multi", columns=["id", names[0]])
    assert frame[names[0]].tolist() == [1, 1, 0, 1, 0, 0, 0, 1, pd.NA] and frame[names[0]].dtype == "Int64"
    with pytest.raises(SondeError, match="there is no label run 'mult' in this collection: there is only multi"):
        survey.to_pandas(indicators="mult")
    assert sonde("export", survey.path, "--to", path, "--indicators", "multi", "--columns", "id,region").code == 0
    assert list(read[suffix](path)) == ["id", "region", *names]


def test_a_service_takes_and_returns_several_labels(survey: Collection, tmp_path: Path) -> None:
    with client_of(survey.path) as client:
        remote = RemoteCollection(client)  # type: ignore[arg-type]
        frame = remote.to_pandas(indicators="multi")
        assert frame.equals(survey.to_pandas(indicators="multi"))
        path = tmp_path / "hand.csv"
        path.write_text('id,label\na1,screen\na1,battery\na2,"battery; parcel"\n')
        for table in (path, pd.DataFrame({"id": ["a1", "a1"], "label": ["screen", "battery"]})):
            assert remote.correct(table, "multi").run == "multi"
        assert {each.id: each.labels for each in survey.corrections("multi")}["a1"] == ("screen", "battery")
    assert frame["multi: none of these"].tolist() == [int(not codes) for codes in CODES.values()]


def test_a_label_run_is_counted_by_its_name(survey: Collection, sonde: Command) -> None:
    assert {run.kind for run in survey.runs() if run.name == "multi"} == {"label", "correction"}
    ran = sonde("count", survey.path, "--by", "multi")
    assert ran.said[0] == "counted by label:multi" and ran.out.splitlines()[0].split() == ["parcel", "4"]
    survey.cluster("multi", k=2)
    sonde("count", survey.path, "--by", "multi").refused(
        "several runs have the name 'multi': use label:multi or cluster:multi", code=2
    )


def test_a_comparison_says_that_one_label_counts(survey: Collection, sonde: Command) -> None:
    survey.label(LABELS, name="single")
    said = "3 documents of 'multi' have several labels: only the likeliest one of each counts here"
    assert compare_runs(survey.stored, "multi", "single").notes == (said,)
    assert sonde("compare", survey.path, "--run", "single", "--run", "multi").said == [f"note: {said}"]
    survey.cluster("k", k=2)
    assert compare_runs(survey.stored, "single", "k").notes == ()


def test_a_label_is_shown_by_its_name(survey: Collection, sonde: Command) -> None:
    by_name, by_number = (sonde("runs", "show", survey.path, "multi", each) for each in ("Parcel", 0))
    assert by_name.out == by_number.out and by_name.code == 0
    assert (
        sonde("runs", "show", survey.path, "multi", "none of these").out
        == sonde("runs", "show", survey.path, "multi", "-1").out
    )
    rows = sonde("runs", "show", survey.path, "multi", "screen", "--by", "region", "--json").out.splitlines()
    assert [json.loads(row)["documents"] for row in rows] == [1, 2]
    sonde("runs", "show", survey.path, "multi", "parcle").refused(
        "NUMBER is 'parcle' (did you mean 'parcel'?): write a whole number or the name of one label", code=2
    )


@pytest.mark.parametrize(
    ("labels", "score", "other", "other_score", "said"),
    [
        (("fares",), 0.503, "fares", 0.503, "fares 0.503  1"),
        (("fares", "app"), 0.803, "staff", 0.498, "fares 0.803, app, else staff 0.498  1"),
        ((), 0.42400002, "safety", 0.424, "none of these, else safety 0.424  1"),
        ((), 0.713, "safety", 0.424, "none of these 0.713, else safety 0.424  1"),
        (("fares",), 0.7, "none of these", None, "fares 0.700, else none of these  1"),
    ],
)
def test_a_review_shows_no_runner_up_that_the_text_has(
    capsys: pytest.CaptureFixture[str], labels: tuple[str, ...], score: float, other: str, other_score: float, said: str
) -> None:
    print_unsure(Unsure("1", "", "a text", labels, score, other, 0.1, "multi", other_score))
    assert capsys.readouterr().out.splitlines()[0] == f" 0.100  {said}"


def test_several_labels_from_names_alone_have_a_note(survey: Collection) -> None:
    assert [note for note in survey.label(LABELS, name="names", multi_label=True).notes if "too many labels" in note]
    assert not [note for note in survey.label(LABELS, name="one").notes if "too many labels" in note]
    corrected = survey.label(LABELS, name="multi", multi_label=True, replace=True)
    assert not [note for note in corrected.notes if "too many labels" in note]
