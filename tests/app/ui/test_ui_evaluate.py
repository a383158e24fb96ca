"""The Evaluate page: measurements as jobs, and their numbers against the pipelines asked directly."""

# ruff: noqa: F811  (a fixture that is imported)

import json
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder
from streamlit.testing.v1 import AppTest
from ui_pages import MARKUP, Pages, pages, shown, unread  # noqa: F401  (pages: a fixture)

from sonde.app.api import Collection
from sonde.app.ui.jobs import Jobs
from sonde.app.ui.words import explained
from sonde.pipelines.evaluate.groups import evaluate_clusters
from sonde.pipelines.evaluate.labels import evaluate_labels
from sonde.pipelines.evaluate.search import evaluate_search, modes

ROWS = [
    {"id": str(n), "text": ("my parcel is late", "the battery is dead", "a fine film")[n % 3] + f" {n}",
     "truth": ("post", "power", MARKUP)[n % 3], "n": n}
    for n in range(12)
]  # fmt: skip


def done(pages: Pages, title: str, subject: str, output: list[Any], name: str = "reviews") -> None:
    """Leave a job behind as one that ended well."""
    folder = Jobs(pages.shelf / ".sonde-jobs").folder / f"{len(title):015d}-abcdef"
    folder.mkdir(parents=True)
    command = ["evaluate", subject, str(pages.shelf / f"{name}.sonde"), "--json"]
    job = {"title": title, "collection": name, "command": command, "started": 1.0, "pid": 0}
    (folder / "job.json").write_text(json.dumps(job))
    (folder / "exit").write_text("0")
    (folder / "stdout.jsonl").write_text("".join(json.dumps(each) + "\n" for each in output))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The commands of jobs that a page started; none of them runs."""
    commands: list[tuple[str, ...]] = []

    def start(self: Jobs, title: str, collection: str, command: Any) -> Any:
        commands.append(tuple(command))
        return type("Started", (), {"id": "x"})

    monkeypatch.setattr(Jobs, "start", start)
    return commands


def press(page: AppTest, key: str) -> AppTest:
    page.button(key=key).click().run()
    assert not page.exception
    return page


def test_nothing_judged_yet(pages: Pages) -> None:
    pages.collection(rows=ROWS)
    page = pages.open("evaluate")
    assert "Nothing measured yet" in shown(page)
    assert page.button(key="measure_search").disabled


def test_search_from_kept_judgements(pages: Pages, started: list[tuple[str, ...]]) -> None:
    collection = pages.collection(rows=ROWS)
    collection.judge("late parcel", ["0", "3"])
    collection.judge("dead battery", ["1"])
    collection.judge("nothing", ["2"], 0)
    page = pages.open("evaluate")
    values = {metric.label: metric.value for metric in page.metric}
    assert values == {"Judgements": "4", "Relevant": "3", "Queries": "3", "Stale": "0"}
    assert "1 query without a relevant document" in shown(page)
    press(page, "measure_search")
    assert started == [("evaluate", "search", str(collection.path), "--modes", "dense,lexical,hybrid", "--json")]


def test_the_table_of_search(pages: Pages) -> None:
    collection = pages.collection(rows=ROWS)
    collection.judge("late parcel", ["0", "3"])
    collection.judge("dead battery", ["1"])
    kept = collection.judgements()
    found = evaluate_search(collection.stored, kept.answered, kept.qrels, modes(("lexical", "dense")))
    done(pages, "Measure search", "search", [quality.to_dict() for quality in found])
    page = pages.open("evaluate")
    table = page.dataframe[-1].value
    settings = json.loads(page.dataframe[-1].proto.columns)
    for name in ("nDCG@10", "recall@100", "MRR@10", "MAP@100", "judged@10"):
        assert settings[name]["help"] == explained(name)
    assert table["mode"].tolist() == ["lexical", "dense"]
    assert table["nDCG@10"].tolist() == [f"{quality.measures['ndcg@10']:.3f}" for quality in found]
    assert table["judged@10"].tolist() == [f"{quality.measures['judged@10']:.0%}" for quality in found]
    assert table["p"].tolist() == table["95 % interval"].tolist() == ["–", "–"], "two queries are too few"
    assert "a mode with a lower share looks worse than it is" in shown(page)
    assert "only 2 queries" in shown(page)
    for number in range(4):
        collection.judge(f"parcel {number}", ["0"])
    kept = collection.judgements()
    found = evaluate_search(collection.stored, kept.answered, kept.qrels, modes(("lexical", "dense")))
    done(pages, "Measure search again", "search", [quality.to_dict() for quality in found])
    table = pages.open("evaluate").dataframe[-1].value
    assert table["p"].tolist() == ["–", f"{found[1].p:.3f}"]
    assert table["95 % interval"].tolist() == ["{:.3f} to {:.3f}".format(*(each.interval or ())) for each in found]


def test_labels(pages: Pages, started: list[tuple[str, ...]]) -> None:
    collection = pages.collection(rows=ROWS)
    assert "No labels yet" in shown(pages.open("evaluate", what="Labels"))
    collection.label(["post", "power"], engine="similarity", name=MARKUP[:20])
    found = evaluate_labels(collection.stored, None, "truth")
    done(pages, "Measure labels", "labels", [found.to_dict()])
    page = pages.open("evaluate", what="Labels", truth="truth")
    values = {metric.label: metric.value for metric in page.metric}
    assert values == {"Accuracy": f"{found.accuracy:.3f}", "Macro F1": f"{found.macro_f1:.3f}", "Documents": "12"}
    assert page.dataframe[0].value["class"].tolist() == [each.label for each in found.classes]
    figure = json.loads(page.get("plotly_chart")[0].proto.spec)  # type: ignore[attr-defined]
    assert "&lt;script&gt;" in json.dumps(figure["layout"]["xaxis"]["ticktext"])
    unread(page)
    press(page, "measure_labels")
    assert started == [
        ("evaluate", "labels", str(collection.path), "--run", MARKUP[:20], "--truth", "truth", "--json"),
    ]  # fmt: skip


def test_clusters(pages: Pages, started: list[tuple[str, ...]]) -> None:
    collection = pages.collection(rows=ROWS)
    assert "No clusters yet" in shown(pages.open("evaluate", what="Clusters"))
    collection.cluster("three", k=3, refits=0)
    found = evaluate_clusters(collection.stored, "three", "truth")
    done(pages, "Measure clusters", "clusters", [found.to_dict()])
    page = pages.open("evaluate", what="Clusters", truth="truth")
    values = {metric.label: metric.value for metric in page.metric}
    assert values["NMI"] == f"{found.nmi:.3f}" and values["Purity"] == f"{found.purity:.3f}"
    assert values["Stability"] == "–"
    assert {metric.label: metric.proto.help for metric in page.metric} == {
        name[0].upper() + name[1:]: explained(name)
        for name in ("NMI", "ARI", "V-measure", "purity", "silhouette", "stability", "coherence", "diversity")
    }
    press(page, "measure_clusters")
    assert started == [("evaluate", "clusters", str(collection.path), "--run", "three", "--truth", "truth", "--json")]
    collection.delete_run("three")
    assert "No clusters yet" in shown(pages.open("evaluate", what="Clusters", run="three"))


def test_a_damaged_result_is_no_traceback(pages: Pages) -> None:
    pages.collection(rows=ROWS)
    done(pages, "Measure search", "search", [{"mode": "dense"}])
    page = pages.open("evaluate")
    assert not page.exception
    assert "An unexpected error occurred" in shown(page)


def test_the_command_that_the_page_runs(pages: Pages, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a job prints is what the page reads."""
    from command_line import command

    collection: Collection = pages.collection(rows=ROWS)
    collection.judge("late parcel", ["0"])
    sonde = command(capsys, monkeypatch)
    ran = sonde("evaluate", "search", Path(collection.path), "--modes", "lexical", "--json")
    assert json.loads(ran.out)["ndcg@10"] == pytest.approx(
        evaluate_search(collection.stored, [("q1", "late parcel")], {"q1": {"0": 1}}, modes(("lexical",)))[0].measures[
            "ndcg@10"
        ]
    )
    assert FakeEncoder.spec.name == "fake"


def test_what_an_evaluation_found_is_not_dismissed_on_the_page_data(pages: Pages) -> None:
    jobs = Jobs(pages.shelf / ".sonde-jobs")
    pages.collection("reviews")
    for number, command in enumerate((["info"], ["evaluate", "search"], ["compact"])):
        folder = jobs.folder / f"{number:015d}-abcdef"
        folder.mkdir(parents=True)
        kept = {"title": "t", "collection": "reviews", "command": command, "started": 1, "pid": 0}
        (folder / "job.json").write_text(json.dumps(kept))
        (folder / "exit").write_text("0")
    page = pages.open("data")
    page.button(key="forget-000000000000002-abcdef").click().run()
    page.button(key="forget-000000000000000-abcdef").click().run()
    assert [job.command[0] for job in jobs.all()] == ["evaluate"]
