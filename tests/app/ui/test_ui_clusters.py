"""The page Clusters and topics: runs started, looked into, changed, compared."""
# ruff: noqa: F811  (fixtures that are imported)

import pytest
from themes import rows
from ui_overview import Started, kept_job, shop, started, topics  # noqa: F401  (fixture)
from ui_pages import MARKUP, Pages, pages, shown, unread  # noqa: F401  (fixture)

from sonde.app.api import Collection
from sonde.app.ui.clusters import cards
from sonde.app.ui.downloads import written
from sonde.indexer.store.lock import writer_lock
from sonde.pipelines.topics.grain import Suggestion


@pytest.fixture
def clustered(pages: Pages) -> Collection:
    made = shop(pages)
    made.cluster("k", k=4, refits=1)
    return made


def test_without_runs_one_can_be_started(pages: Pages, started: Started) -> None:
    shop(pages)
    page = pages.open("clusters", collection="shop")
    assert "No clusters and no topics yet" in shown(page)
    page.button(key="new_start").click().run()
    assert started.commands == [["topics", "shop.sonde", "--name", "topics"]]


def test_each_method_becomes_a_command(pages: Pages, started: Started) -> None:
    shop(pages)
    page = pages.open("clusters", collection="shop")
    page.radio(key="new_method").set_value("kmeans").run()
    page.number_input(key="new_about_kmeans").set_value(7).run()
    page.text_input(key="new_where").set_value("stars <= 2").run()
    page.button(key="new_start").click().run()
    page = pages.open("clusters", collection="shop")
    page.number_input(key="new_about_topics").set_value(20).run()
    page.button(key="new_start").click().run()
    assert started.commands.pop() == ["topics", "shop.sonde", "--name", "topics", "--about", "20"]
    words = ["cluster", "shop.sonde", "--method", "kmeans", "--name", "kmeans", "-k", "7", "--where"]
    assert started.commands[-1] == [*words, "stars <= 2"]
    page = pages.open("clusters", collection="shop")
    page.radio(key="new_method").set_value("density").run()
    page.toggle(key="new_size_auto").set_value(False).run()
    page.selectbox(key="new_outliers_density").set_value("nearest").run()
    page.button(key="new_start").click().run()
    words = "cluster shop.sonde --method density --name density --min-size 10 --outliers nearest"
    assert started.commands[-1] == words.split()


def test_a_run_is_replaced_only_where_the_checkbox_says_so(
    pages: Pages, clustered: Collection, started: Started
) -> None:
    clustered.cluster("kmeans", k=3, refits=0)
    page = pages.open("clusters", collection="shop")
    page.radio(key="new_method").set_value("kmeans").run()
    page.button(key="new_start").click().run()
    assert started.commands[-1][4:6] == ["--name", "kmeans-2"]
    assert "--replace" not in started.commands[-1]
    page.text_input(key="new_name_kmeans:kmeans-2").set_value("kmeans ").run()
    assert "The cluster run kmeans already has this name: 120 documents, created 20" in shown(page)
    page.button(key="new_start").click().run()
    assert len(started.commands) == 1 and "tick the box to replace the run" in shown(page)
    assert page.checkbox(key="new_name_kmeans_replace:kmeans").value is False
    page.checkbox(key="new_name_kmeans_replace:kmeans").check().run()
    page.button(key="new_start").click().run()
    assert started.commands[-1][4:7] == ["--name", "kmeans", "--replace"]
    page.text_input(key="new_name_kmeans:kmeans-2").set_value("k").run()
    page.button(key="new_start").click().run()
    assert len(started.commands) == 2, "the checkbox was for another run"
    page.button(key="new_name_kmeans_free").click().run()
    assert page.text_input(key="new_name_kmeans:kmeans-2").value == "k-2"
    page.button(key="new_start").click().run()
    assert started.commands[-1][4:6] == ["--name", "k-2"]
    assert "--replace" not in started.commands[-1]


def test_cards_say_what_the_run_knows(pages: Pages, clustered: Collection) -> None:
    page = pages.open("clusters", collection="shop")
    said = shown(page)
    items = clustered.run("k").items
    for item in items:
        assert item.name in said and f"cohesion {item.data['cohesion']:.2f}" in said
    assert said.count("30 documents · 25.0%") == 4 and "Documents 120" in said and "Clusters 4" in said
    assert "Outliers none" in said
    first = next(row for row in clustered.rows() if row["id"] == items[0].data["representatives"][0])
    assert first["text"] in said
    found = pages.open("clusters", collection="shop", q="screen pixel glass")
    cosines = [line for line in shown(found).splitlines() if "cosine" in line]
    assert len(cosines) == 4
    order = [
        number.split()[0] for number in shown(found).splitlines() if number[:1].isdigit() and "documents" not in number
    ]
    screen = next(row["cluster:k"] for row in clustered.rows() if row["id"] == "screen-1")
    assert order[0] == str(screen)


def test_the_documents_of_a_group_page_by_page(pages: Pages, clustered: Collection) -> None:
    page = pages.open("clusters", collection="shop", part="documents")
    said = shown(page)
    first = page.selectbox(key="group").options[0]
    members = [row["text"] for row in clustered.rows() if row["cluster:k"] == int(first.split()[0])]
    assert sum(text in said for text in members) >= 6 and "score" in said
    again = pages.open("clusters", collection="shop", part="documents", group=page.selectbox(key="group").options[2])
    assert shown(again) != said and not again.exception


def test_a_run_and_a_cluster_are_renamed_and_a_run_is_deleted(pages: Pages, clustered: Collection) -> None:
    page = pages.open("clusters", collection="shop")
    page.selectbox(key="rename_what").set_value(page.selectbox(key="rename_what").options[1]).run()
    page.text_input(key="rename_to").set_value("late <b>parcels</b>").run()
    page.button(key="rename_do").click().run()
    assert clustered.run("k").items[1].name == "late <b>parcels</b>"
    assert "late <b>parcels</b>" in shown(page)
    page.selectbox(key="rename_what").set_value("the whole run k").run()
    page.text_input(key="rename_to").set_value("themes").run()
    page.button(key="rename_do").click().run()
    assert [run.name for run in clustered.runs()] == ["themes"] and page.selectbox(key="run").value == "cluster:themes"
    with writer_lock(clustered.path):
        page.button(key="delete_run").click().run()
    assert "Another process is writing to this collection" in shown(page) and len(clustered.runs()) == 1
    page.button(key="delete_run").click().run()
    assert clustered.runs() == [] and "No clusters and no topics yet" in shown(page)


def test_groups_are_merged_and_newer_documents_added_by_jobs(
    pages: Pages, clustered: Collection, started: Started
) -> None:
    pages.collection("shop", rows(31))
    page = pages.open("clusters", collection="shop")
    names = page.multiselect(key="merge_which").options
    page.multiselect(key="merge_which").set_value([names[2], names[0]]).run()
    page.button(key="merge_do").click().run()
    assert started.commands == [["runs", "shop.sonde", "k", "--kind", "cluster", "--merge", "2,0"]]
    next(button for button in page.button if button.label == "Add 4 new documents").click().run()
    assert started.commands[-1] == ["cluster", "shop.sonde", "--update", "k"]


def test_the_curve_of_an_automatic_k(pages: Pages) -> None:
    made = shop(pages)
    made.cluster("auto", refits=0)
    page = pages.open("clusters", collection="shop", part="choice of k")
    assert len(page.get("plotly_chart")) == 1
    assert f"k = {made.run('auto').run.report['k']} is the smallest" in shown(page)
    made.cluster("four", k=4, refits=0)
    page = pages.open("clusters", collection="shop", run="cluster:four", part="choice of k")
    assert not page.exception and page.get("plotly_chart") == []


def test_documents_over_a_column(pages: Pages, clustered: Collection) -> None:
    page = pages.open("clusters", collection="shop", part="by column")
    assert page.selectbox(key="column").value == "day" and len(page.get("plotly_chart")) == 1
    page = pages.open("clusters", collection="shop", part="by column", column="theme", share="true")
    [chart] = page.get("plotly_chart")
    assert "100%" in chart.proto.spec


def test_two_groups_and_two_runs_side_by_side(pages: Pages, clustered: Collection) -> None:
    clustered.cluster("two", k=2, refits=0)
    page = pages.open("clusters", collection="shop", run="cluster:k", part="compare")
    said = shown(page)
    assert "Cosine of the two means" in said and said.count("30 documents") == 2
    assert "Documents in both 120" in said
    frame = page.dataframe[0].value
    assert frame["what"].tolist() == ["merged"] * len(frame) and 1 <= len(frame) <= 2
    one = page.selectbox(key="one").options[0]
    page.selectbox(key="other").set_value(one).run()
    assert "Choose two different groups" in shown(page)


def test_topics_have_a_tree_that_is_cut(pages: Pages, started: Started) -> None:
    topics(shop(pages))
    page = pages.open("clusters", collection="shop", part="hierarchy")
    assert len(page.get("plotly_chart")) == 1
    page.slider(key="cut").set_value(2).run()
    next(button for button in page.button if button.label == "Apply").click().run()
    assert started.commands == [["topic", "shop.sonde", "--reduce-to", "2", "--run", "topics"]]
    page = pages.open("clusters", collection="shop", q="parcel courier")
    assert "cosine" in shown(page) and not page.exception


def test_names_that_look_like_markup_stay_text(pages: Pages) -> None:
    made = shop(pages, hostile=True)
    made.cluster(MARKUP, k=4, refits=0)
    made.rename_run(MARKUP, MARKUP, item=0)
    made.cluster("other", k=3, refits=0, where=f"theme != '{MARKUP}'".replace("'", "'"))
    for part in ("groups", "by column", "compare"):
        page = pages.open("clusters", collection="shop", run=f"cluster:{MARKUP}", part=part, column="theme")
        unread(page)
        assert page.selectbox(key="run").value == f"cluster:{MARKUP}"
    unread(pages.open("clusters", collection="shop", run="cluster:other"))


def test_a_run_that_is_gone_and_fewer_documents_than_k(pages: Pages, clustered: Collection) -> None:
    page = pages.open("clusters", collection="shop", run="cluster:gone", part="nonsense")
    assert not page.exception and "Clusters 4" in shown(page)
    page = pages.open("clusters", collection="shop")
    clustered.delete_run("k")
    page.run()
    assert "No clusters and no topics yet" in shown(page)
    pages.collection("tiny")
    page = pages.open("clusters", collection="tiny")
    page.radio(key="new_method").set_value("kmeans").run()
    about = page.number_input(key="new_about_kmeans")
    assert (about.max, about.value, about.placeholder) == (3, None, "suggested")


def test_what_is_said_of_agreement_by_chance_is_true(pages: Pages, clustered: Collection) -> None:
    clustered.cluster("other", k=2, refits=0)
    page = pages.open("clusters", collection="shop", part="compare")
    helps = {metric.label: metric.proto.help for metric in page.metric}
    assert "chance gives more than 0" in helps["NMI"], "only ARI is adjusted"
    assert "0 as much as by chance" in helps["ARI"]


def test_a_level_that_was_reduced_is_named_and_has_no_figures_of_other_groups(pages: Pages) -> None:
    pytest.importorskip("evoc")
    made = shop(pages)
    made.topics(names="terms")
    before, level = shown(pages.open("clusters", collection="shop")), made.run("topics").run.report["level"]
    assert "Silhouette" in before and "Stability" in before
    size = made.topic_run().levels[level]
    made.topic_run().reduce(2)
    page = pages.open("clusters", collection="shop")
    [choice] = [each for each in page.segmented_control if each.label == "Level"]
    assert f"{level}, changed (2)" in choice.options and f"{level} ({size})" not in choice.options
    assert "Topics 2" in shown(page)
    assert "Silhouette" not in shown(page) and "Stability" not in shown(page)


def test_a_run_of_about_as_many_groups_says_that_they_were_asked_for(pages: Pages) -> None:
    pytest.importorskip("evoc")
    made = shop(pages)
    made.topics(names="terms", about=5)
    page = pages.open("clusters", collection="shop")
    [choice] = [each for each in page.segmented_control if each.label == "Level"]
    assert any(option.endswith(", merged to your number (5)") for option in choice.options)
    assert "Topics 5" in shown(page)


def test_a_level_of_topics_is_chosen(pages: Pages) -> None:
    pytest.importorskip("evoc")
    made = shop(pages)
    made.topics(names="terms")
    levels = made.topic_run().levels
    page = pages.open("clusters", collection="shop", run="topic:topics")
    assert levels["coarse"] == 4 < levels["fine"]
    choice = page.segmented_control(key=f"level:{made.run('topics').run.number}")
    assert choice.value == "coarse (4)"
    assert "Delete the topic run topics?" in shown(page)
    choice.set_value(f"fine ({levels['fine']})").run()
    fine = made.topic_run("fine:topics")
    assert all(topic.name in shown(page) for topic in fine)
    assert "Delete the" not in shown(page)  # a level is changed with its run
    suggested = made.run("topics").run.report["level"]
    assert f"Groups are edited at the level {suggested}. There, Make a taxonomy gives a tree" in shown(page)


def test_a_number_of_groups_that_is_not_clear_is_said(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("evoc")
    made = shop(pages)
    made.topics(names="terms")
    for equal, said in ([4, 9], "4 to 9 are about equally good"), ([4, 4], "other seeds give other groups"):
        monkeypatch.setattr(Suggestion, "to_dict", lambda self, equal=equal: {"clear": False, "equal": equal})
        made.topics(names="terms", replace=True)
        page = pages.open("clusters", collection="shop", run="topic:topics")
        assert f"The number of groups is not clear: {said}." in shown(page)


def test_a_running_job_says_about_how_long_it_still_takes(pages: Pages, clustered: Collection) -> None:
    known = {"stage": "judging", "total": 1000, "unit": "documents"}
    events = [known | {"done": 100, "at": 5.0}, known | {"done": 300, "at": 9.0}]
    kept_job(pages, ["label"], title="Label", code=None, events=events)
    page = pages.open("clusters", collection="shop")
    [said] = [bar.proto.text.replace("\\", "") for bar in page.get("progress")]
    assert said == "shop · Label: judging · 300 of 1,000 documents · about 14 s left"


@pytest.mark.parametrize("run", ["cluster:k", "taxonomy:taxonomy", "label:labels"])
def test_the_groups_of_a_run_are_downloaded_as_a_table(pages: Pages, clustered: Collection, run: str) -> None:
    clustered.make_taxonomy("k")
    clustered.label(["parcel", "battery", "screen", "refund"])
    page = pages.open(
        "labels" if run.startswith("label") else "clusters", collection="shop", run=run.removeprefix("label:")
    )
    buttons = [each.proto.label for each in page.get("download_button")]
    assert buttons[buttons.index("Download as Excel") + 1] == "Download as CSV"
    content = written(".csv", lambda path: clustered.export_groups(path, run))
    assert content.startswith(b"\xef\xbb\xbfnumber,name,"), "Excel reads it as UTF-8"
    assert written(".xlsx", lambda path: clustered.export_groups(path, run)).startswith(b"PK")


def test_the_columns_of_a_download_are_chosen(pages: Pages, clustered: Collection) -> None:
    page = pages.open("clusters", collection="shop", run="cluster:k", part="documents")
    box = page.multiselect(key="group_columns")
    assert (box.value, box.placeholder, box.options) == ([], "All columns", clustered.export_columns())
    assert "cluster:k name" in box.options
    helps = [each.proto.help for each in page.get("download_button")]
    assert any("Columns in which none of these documents has a value are left out" in said for said in helps)
    box.set_value(["text"]).run()
    helps = [each.proto.help for each in page.get("download_button")]
    assert not any("left out" in said for said in helps), "a column that was chosen is never left out"
    assert not page.exception


def test_another_run_begins_on_its_first_page(
    pages: Pages, clustered: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    clustered.cluster("other", k=4, refits=0)
    drawn: list[int] = []
    monkeypatch.setattr(cards, "PAGE", 2)
    monkeypatch.setattr(cards, "_card", lambda _, run, item, cosine: drawn.append(item.number))
    page = pages.open("clusters", collection="shop", run="cluster:k")
    first = list(drawn)
    page.session_state[f"page cluster:k {clustered.run('k').run.created}"] = 2
    drawn.clear()
    page.run()
    assert len(drawn) == 2 and not set(drawn) & set(first)
    drawn.clear()
    page.selectbox(key="run").set_value("cluster:other").run()
    assert drawn == first


def test_topics_name_the_method_with_groups_of_similar_size(pages: Pages) -> None:
    shop(pages)
    page = pages.open("clusters", collection="shop")
    said = "Topics differ much in size. For a report with groups of similar size, choose KMeans."
    assert said in shown(page)
    page.radio(key="new_method").set_value("kmeans").run()
    assert said not in shown(page)
