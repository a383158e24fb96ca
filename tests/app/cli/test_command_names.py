"""The help of `sonde` on one screen, the family of `sonde runs`, and the old names of commands."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import themes
import typer
from command_line import Command, contents
from typer.testing import CliRunner

from sonde.app.api import Collection
from sonde.app.cli.commands import PANELS
from sonde.app.cli.main import ADDS, app_for
from sonde.app.cli.show_run import breakdown_plot

OLD = {"correct", "topic", "curve", "similarity", "entail", "bitext", "judgements", "key"}


def help_of(*words: str) -> list[str]:
    environment = {"COLUMNS": "80", "TERMINAL_WIDTH": "80"}
    ran = CliRunner().invoke(app_for(), [*words, "--help"], prog_name="sonde", env=environment, terminal_width=80)
    assert ran.exit_code == 0, ran.output
    return ran.output.splitlines()


def test_the_help_fits_on_one_screen() -> None:
    lines = help_of()
    assert len(lines) < 40
    assert max(map(len, lines)) <= 80
    assert not any(line.endswith(("…", "...")) for line in lines)
    assert [line.split()[0] for line in lines if line.split() and line.split()[0] in PANELS] == list(PANELS)
    assert "Start    index       Index files into a collection, or update it" in lines
    assert lines[-1] == "Options: --version, --install-completion, --show-completion, --help"


def test_the_help_shows_every_command_but_old_names() -> None:
    commands = typer.main.get_command(app_for()).commands  # type: ignore[attr-defined]
    assert {name for panel in PANELS.values() for name in panel} == set(commands) - OLD
    assert {name for name in commands if commands[name].hidden} == OLD


@pytest.mark.parametrize("group", ["runs", "texts", "evaluate", "train", "tune", "serve"])
def test_the_lines_of_a_group_are_not_cut(group: str) -> None:
    lines = help_of(group)
    listed = lines[lines.index("Commands:") + 1 :]
    assert len(listed) >= 2
    assert not any(line.endswith("...") for line in listed)


@pytest.mark.parametrize(
    ("asked", "help"),
    [("-h", "--help"), ("help", "--help"), ("help runs merge", "runs merge --help"), ("runs -h", "runs --help")],
)
def test_other_ways_to_ask_for_help(sonde: Command, asked: str, help: str) -> None:
    printed = sonde(*help.split())
    assert printed.code == 0 and printed.out.startswith("Usage: sonde")
    assert sonde(*asked.split()) == printed


def test_a_flag_and_an_option_for_several_values_may_be_repeated(sonde: Command, made: Collection) -> None:
    assert sonde("count", made.path, "--json", "--json").code == 0
    words = ("compare", made.path, "--query", "parcel", "--query", "screen")
    assert sonde(*words).code == 0


def test_a_typo_proposes_no_old_name(sonde: Command) -> None:
    sonde("topik", "a.sonde").refused("No such command 'topik'. Did you mean 'topics'?: see `sonde --help`", code=2)
    sonde("serch", "a.sonde", "x").refused("Did you mean 'search', 'serve'?", code=2)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    folder = tmp_path_factory.mktemp("names")
    found = themes.collection(folder / "news.sonde", themes.rows())
    found.cluster(refits=0)
    found.topics(min_size=8)
    found.map()
    found.label("parcel,battery,screen,refund", engine="similarity")
    found.tag("sad", where="stars <= 2")
    found.make_taxonomy("topics", "tree")
    found.edit_taxonomy("move", groups=[0], to="1")
    found.judge("late parcel", ["parcel-1"])
    return found


SAME = [
    ("topic C", "runs show C topics"),
    ("topic C --json", "runs show C topics --json"),
    ("topic C 0 -k 3", "runs show C topics 0 -k 3"),
    ("topic C --run topics --search parcel", "runs show C topics --search parcel"),
    ("topic C --text parcel", "runs show C topics --text parcel"),
    ("topic C --tree", "runs show C topics --tree"),
    ("topic C --over day --period month", "runs show C topics --by day --period month"),
    ("topic C --over day", "runs show C topics --by day"),
    ("topic C --by theme", "runs show C topics --by theme"),
    ("curve C", "runs show C kmeans --curve"),
    ("curve C --run kmeans --json", "runs show C kmeans --curve --json"),
    ("runs C", "runs list C"),
    ("runs C --kind cluster --json", "runs list C --kind cluster --json"),
    ("runs --json C", "runs list C --json"),
    ("runs C kmeans", "runs show C kmeans"),
    ("runs C kmeans --json", "runs show C kmeans --json"),
    ("runs C kmeans --by theme", "runs show C kmeans --by theme"),
    ("correct C", "runs correct C"),
    ("correct C --unsure -k 2", "runs correct C --unsure -k 2"),
    ("judgements C", "judge C"),
    ("judgements C --json", "judge C --json"),
]


@pytest.mark.parametrize(("old", "new"), SAME)
def test_an_old_name_prints_the_same(made: Collection, sonde: Command, old: str, new: str) -> None:
    before, after = (sonde(*(made.path if word == "C" else word for word in line.split())) for line in (old, new))
    assert (before.code, after.code) == (0, 0), before.err + after.err
    assert before.out == after.out
    assert before.out or before.err == after.err


def test_drawings_of_old_and_new_names(made: Collection, sonde: Command, tmp_path: Path) -> None:
    drawn = {
        "tree": ("topic C --tree", "runs draw C topics"),
        "over": ("topic C --over day", "runs draw C topics --by day"),
        "curve": ("curve C", "runs draw C kmeans"),
        "map": ("map C", "runs draw C map"),
    }
    for name, lines in drawn.items():
        pages = []
        for line in lines:
            target = tmp_path / f"{name}.html"
            ran = sonde(*(made.path if word == "C" else word for word in line.split()), "--to", target)
            assert ran.code == 0, ran.err
            pages.append(target.read_text("utf-8"))
        assert pages[0] == pages[1], name


@pytest.mark.parametrize("by", ["theme", "day"])
@pytest.mark.parametrize("run", ["kmeans", "labels", "sad", "tree"])
def test_every_run_with_groups_is_drawn_by_a_column(
    made: Collection, sonde: Command, tmp_path: Path, run: str, by: str
) -> None:
    target = tmp_path / "drawn.svg"
    ran = sonde("runs", "draw", made.path, run, "--by", by, "--to", target)
    counts = made.breakdown(run, by)
    assert ran.code == 0 and target.exists(), ran.err
    assert f"{len(breakdown_plot('', counts).names)} " in ran.said[-1] and f" in {len(counts.parts)} " in ran.said[-1]


def test_a_bar_counts_a_document_of_a_taxonomy_once(made: Collection) -> None:
    counts = made.breakdown("taxonomy:tree", "theme")
    plot = breakdown_plot("", counts)
    assert len(plot.names) < len(counts.items)
    assert plot.values.sum(axis=0).tolist() == counts.totals.tolist()


def test_shares_of_a_column(made: Collection, sonde: Command, tmp_path: Path) -> None:
    """Later months with more documents would otherwise show every group as growing."""
    counts = made.breakdown("kmeans", "day")
    assert breakdown_plot("", counts, shares=True).values.sum(axis=0) == pytest.approx(1.0)
    for run, parts in (("kmeans", {"day": counts.totals.tolist()}), ("topics", {})):
        line = ("runs", "show", made.path, run, "--by", "day", "--shares")
        rows = [json.loads(row) for row in sonde(*line, "--json").out.splitlines()]
        shown = sonde(*line).out
        assert rows and f"{rows[0]['share']:.1%}" in shown and f"{max(row['share'] for row in rows):.1%}" in shown
        if parts:
            totals = dict(zip(counts.parts, parts["day"], strict=True))
            assert [row["share"] for row in rows] == [
                pytest.approx(row["documents"] / totals[row[counts.period]], abs=1e-6) for row in rows
            ]
        target = tmp_path / f"{run}.html"
        assert sonde("runs", "draw", made.path, run, "--by", "day", "--shares", "--to", target).code == 0
        assert "share of the" in target.read_text("utf-8")


def test_one_group_by_a_column(made: Collection, sonde: Command) -> None:
    for run, key in (("kmeans", "number"), ("topics", "topic")):
        lines = sonde("runs", "show", made.path, run, "--by", "theme", "--json").out.splitlines()
        one = sonde("runs", "show", made.path, run, 1, "--by", "theme", "--json").out.splitlines()
        assert one == [line for line in lines if json.loads(line)[key] == 1] != []


def test_the_documents_of_a_cluster_and_of_a_label(made: Collection, sonde: Command) -> None:
    [(number, name)] = {(each.number, each.name) for each in made.assignments("kmeans") if each.id == "parcel-1"}
    rows = list(
        map(json.loads, sonde("runs", "show", made.path, "kmeans", number, "-k", 50, "--json").out.splitlines())
    )
    assert "parcel-1" in {row["id"] for row in rows}
    assert [(row["number"], row["rank"]) for row in rows] == [(number, rank + 1) for rank in range(len(rows))]
    shown = sonde("runs", "show", made.path, "kmeans", "--search", "parcel courier", "-k", 1).out
    assert shown.split()[1:] == [str(number), *name.split()]
    assert sonde("runs", "show", made.path, "labels", 0, "-k", 1).out.startswith("  1. ")
    sonde("runs", "show", made.path, "kmeans", -1).refused("the cluster run 'kmeans' has no cluster -1")


def test_runs_are_named_merged_updated_and_deleted(sonde: Command, tmp_path: Path) -> None:
    found = themes.collection(tmp_path / "n.sonde", themes.rows())
    path = found.path
    found.cluster(k=4, refits=0)
    assert sonde("runs", "name", path, "kmeans", "themes").said == ["renamed the run 'kmeans' to 'themes'"]
    assert sonde("runs", "name", path, "themes", 1, "late things").said == [
        "renamed number 1 of 'themes' to 'late things'"
    ]
    assert found.run("themes").items[1].name == "late things"
    size = {item.number: item.data["size"] for item in found.run("themes").items}
    merged = sonde("runs", "merge", path, "themes", 1, 2)
    said = f"{size[2]} documents moved to cluster 1 (late things), which has {size[1] + size[2]} documents now"
    assert merged.said == [said]
    assert sonde("runs", "merge", path, "themes", "1,3").code == 0
    assert len(found.run("themes").items) == 2
    themes.collection(path, themes.rows(2, first=500))
    assert sonde("runs", "update", path, "themes").out == "themes: 8 documents added, 0 outliers among them\n"
    assert sonde("runs", "delete", path, "themes").said == ["deleted the run 'themes'"]
    assert found.runs() == []


MISTAKES = {
    "show C": "Missing argument 'RUN'",
    "show C nope": "there is no run 'nope'",
    "show C kmeans 0 --tree": "ask for one thing at a time: NUMBER or --tree",
    "show C kmeans 99 --by theme": "there is no group 99: there are 0, 1, 2",
    "show C topics 99 --by theme": "there is no group 99: there are 0, 1, 2",
    "show C map --by theme": "'map' is a map run: no document belongs to its regions",
    "show C kmeans --tree": "'kmeans' is a cluster run: --tree is for topic runs",
    "show C kmeans --text x": "'kmeans' is a cluster run: --text is for topic runs",
    "show C topics --curve": "'topics' is a topic run: --curve is for cluster runs",
    "show C labels --search x": "'labels' is a label run: --search is for cluster runs",
    "show C kmeans 99": "the cluster run 'kmeans' has no cluster 99",
    "show C kmeans --period month": "--period needs --by: name the column with the dates",
    "show C kmeans --shares": "--shares needs --by: name a column",
    "draw C topics --period month --to x.html": "--period needs --by: name the column with the dates",
    "draw C labels --to x.html": "'labels' is a label run: to draw it, give --by and a column",
    "draw C map --by theme --to x.html": "'map' is a map run: no document belongs to its regions",
    "draw C kmeans --by theme --period month --to x.html": "column 'theme' has no dates (",
    "draw C topics --to x.txt": "the name must end in .html, .png or .svg",
    "name C kmeans late deliveries": "'late deliveries' is not a name: put a name with spaces in quotes",
    "name C kmeans 7": "give a name for group 7, as in: sonde runs name ",
    "merge C kmeans": "give two or more numbers, or --reduce-to N",
    "merge C kmeans a b": "NUMBER is 'a,b': write numbers with commas between them, such as 3,7",
    "merge C kmeans --reduce-to 2": "'kmeans' is a cluster run: --reduce-to is for topic runs",
    "merge C labels 0 1": "'labels' is a label run",
    "split C kmeans 0": "'kmeans' is a cluster run: split is for topic runs",
    "update C labels": "'labels' is a label run: only cluster, topic, map and taxonomy runs can be updated; "
    "for new documents, run `sonde label` again with the same labels, --name labels and --replace",
    "delete C nope": "there is no run 'nope'",
    "delete C kmeans --kind tag": "'kmeans' is a cluster run, not a tag run: "
    "leave the kind out, or give --kind cluster",
    "show C tag:kmeans": "'kmeans' is a cluster run, not a tag run: leave the kind out, or give --kind cluster",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_with_a_run(made: Collection, sonde: Command, words: str) -> None:
    before = contents(made.path)
    ran = sonde("runs", *(made.path if word == "C" else word for word in words.split()))
    ran.refused(MISTAKES[words], code=ran.code)
    assert ran.code in (1, 2)
    assert contents(made.path) == before


def test_judge_takes_a_query_with_ids_or_neither(made: Collection, sonde: Command) -> None:
    sonde("judge", made.path, "parcel").refused("give the ids of the documents to judge after the query", code=2)
    sonde("judge", made.path, "--forget").refused("give a query and the ids of documents", code=2)
    sonde("judge", made.path, "parcel", "parcel-1", "--json").refused("leave out the query and the ids", code=2)


def test_a_key_is_made_below_serve(sonde: Command, tmp_path: Path) -> None:
    ran = sonde("serve", "key", tmp_path / "keys.json", "--name", "reader")
    assert ran.code == 0 and len(ran.out.strip()) > 20
    assert sonde("key", tmp_path / "keys.json", "--name", "other").code == 0
    sonde("serve", tmp_path / "none.sonde").refused("there is no collection at", code=1)


def test_each_module_adds_the_commands_that_are_expected_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command line imports one module: the table that names it is true, and no command is missing from it."""
    monkeypatch.delenv("_SONDE_COMPLETE", raising=False)
    for module, names in ADDS.items():
        alone = typer.main.get_command(app_for([names[0]])).commands  # type: ignore[attr-defined]
        assert sorted(alone) == sorted(names), module
    known = typer.main.get_command(app_for(["serch"])).commands  # type: ignore[attr-defined]
    assert sorted(known) == sorted(name for names in ADDS.values() for name in names)


def test_a_command_imports_no_other() -> None:
    """`sonde info` does not import what searches, labels or serves."""
    script = "import sys; from sonde.app.cli.main import ADDS, app_for; app_for(['info']); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    ours = {name for name in ran.stdout.split() if name.startswith("sonde.app.cli.")}
    assert "sonde.app.cli.upkeep" in ours
    assert not ours & {f"sonde.app.cli.{name}" for name in ADDS if name != "upkeep"}
