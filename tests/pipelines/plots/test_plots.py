"""Plots of trees, lines and curves: both kinds of file, texts as texts, one line for what cannot be."""

import errno
import re
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from extras import needs
from thinned import thinned

from sonde.indexer.errors import MissingExtraError, SondeError, UsageError
from sonde.pipelines.plots import (
    BarsPlot,
    CurvePlot,
    LinesPlot,
    Plot,
    PlotLabel,
    PointsPlot,
    TreePlot,
    check_plot_target,
    write_plot,
)
from sonde.pipelines.plots.colors import GREY, Coloring, hover, one_line

pytestmark = needs("plotly", "matplotlib")

NAMES = ["<i>prices</i> & $fees$", "日本語 topic", "late parcels"]
TREE = TreePlot("a <tree>", NAMES, np.array([[0, 1, 0.2, 2], [2, 3, 0.5, 3]]), ["fees", "all"], cut=0.3)
PLOTS: dict[str, Plot] = {
    "tree": TREE,
    "tree of one": TreePlot("one", NAMES[:1], np.zeros((0, 4)), []),
    "lines": LinesPlot("lines", ["2024-01", "2024-02"], NAMES, np.array([[1, 2], [3, 0], [0, 0]]), [["a", "b"]] * 3),
    "bars": BarsPlot("bars", NAMES, NAMES, np.eye(3), [["a", "<i>b", "c"]] * 3),
    "many bars": BarsPlot("bars", ["one"], [f"t{n}" for n in range(30)], np.ones((30, 1)), [["a"]] * 30),
    "curve": CurvePlot("k", [{"k": k, "silhouette": 0.1, "stability": 0.9, "score": 0.09} for k in (2, 3, 5)], 3),
    "points": PointsPlot("map", np.eye(2), ["one", "two"], Coloring.of("n", [1, 2])),
    "nothing": PointsPlot("map", np.zeros((0, 2)), [], Coloring.of("n", [])),
}


@pytest.mark.parametrize("name", PLOTS)
def test_a_page_fetches_nothing(tmp_path: Path, name: str) -> None:
    write_plot(PLOTS[name], tmp_path / "plot.html")
    page = (tmp_path / "plot.html").read_text("utf-8")
    assert re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=", page) == []
    drawn = page[page.index("Plotly.newPlot(") :]
    assert "http" not in drawn.partition("</script>")[0]
    assert "<i>prices" not in drawn.replace("\\u003c", "<")
    assert list(tmp_path.iterdir()) == [tmp_path / "plot.html"]


def test_names_are_escaped_as_plotly_reads_them() -> None:
    """Plotly shows `&amp;` as an ampersand, and `&quot;` as it is."""
    name = 'Transfers / "SEPA" & <b>Co.</b>'
    figure = LinesPlot(name, ["2024"], [name], np.ones((1, 1)), [[name]]).interactive()
    shown = 'Transfers / "SEPA" &amp; &lt;b&gt;Co.&lt;/b&gt;'
    assert [figure.data[0].name, figure.data[0].text[0], figure.layout.title.text] == [shown] * 3


@pytest.mark.parametrize("name", thinned([*PLOTS], 3))
def test_an_image_is_the_same_each_time(tmp_path: Path, name: str, recwarn: pytest.WarningsRecorder) -> None:
    for file in ("one.png", "two.PNG"):
        write_plot(PLOTS[name], tmp_path / file)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.PNG").read_bytes()
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    assert [str(warning.message) for warning in recwarn if "Glyph" in str(warning.message)] == []


@pytest.mark.parametrize("name", thinned([*PLOTS], 3))
def test_a_drawing_is_the_same_each_time_and_its_text_is_text(tmp_path: Path, name: str) -> None:
    for file in ("one.svg", "two.SVG"):
        write_plot(PLOTS[name], tmp_path / file)
    drawn = (tmp_path / "one.svg").read_text("utf-8")
    assert drawn == (tmp_path / "two.SVG").read_text("utf-8")
    kinds = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(drawn).iter()}
    assert "text" in kinds
    assert kinds & {"script", "i", "b", "image"} == set()


def test_many_points_of_a_drawing_are_one_picture(tmp_path: Path) -> None:
    places = np.random.default_rng(1).normal(size=(2_001, 2))
    coloring = Coloring.groups("kind", ["a"] * 2_001)
    write_plot(PointsPlot("many", places, [""] * 2_001, coloring, []), tmp_path / "many.svg")
    drawn = ElementTree.fromstring((tmp_path / "many.svg").read_text("utf-8"))
    assert sum(element.tag.endswith("}image") for element in drawn.iter()) == 1
    assert "many" in [element.text for element in drawn.iter() if element.tag.endswith("}text")]


def refused(**_: object) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")


def test_what_cannot_be_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"cannot draw 'plot.pdf': the name must end in .html, .png or .svg"):
        write_plot(TREE, tmp_path / "plot.pdf")
    with pytest.raises(SondeError, match=r"the folder .* does not exist"):
        write_plot(TREE, tmp_path / "no" / "plot.png")
    with monkeypatch.context() as readonly:
        readonly.setattr(tempfile, "TemporaryFile", refused)
        with pytest.raises(SondeError, match=r"plot.png: Permission denied; give a file in another folder$"):
            check_plot_target(tmp_path / "plot.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(MissingExtraError, match=r"a PNG or SVG plot needs matplotlib, .* pip install 'sonde\[plots\]'"):
        write_plot(TREE, tmp_path / "plot.png")
    with pytest.raises(MissingExtraError, match=r"an HTML plot needs Plotly, .* pip install 'sonde\[plots\]'"):
        write_plot(TREE, tmp_path / "plot.html")
    assert list(tmp_path.iterdir()) == []


def test_bars_beyond_the_palette_are_one() -> None:
    bars = PLOTS["many bars"].interactive().data
    assert len(bars) == 20 and (bars[-1].name, bars[-1].x) == ("others (11 groups)", (11,))


@pytest.mark.parametrize("most", [1, 2, 3, 5, 9, 12, 17, 250, 4_321])
def test_counts_have_ticks_at_whole_numbers(most: int) -> None:
    """Both axes of counts; those of shares keep their fractions."""
    counts = np.array([[most, 0], [0, 1]])
    lines = LinesPlot("lines", ["2024-01", "2024-02"], ["a", "b"], counts, [["", ""]] * 2)
    bars = BarsPlot("bars", ["x", "y"], ["a", "b"], counts, [["", ""]] * 2)
    for axis in (lines.still().axes[0].yaxis, bars.still().axes[0].xaxis):
        ticks = axis.get_majorticklocs()
        assert 2 <= len(ticks) <= 14 and (ticks == np.round(ticks)).all(), ticks
    for axis in (lines.interactive().layout.yaxis, bars.interactive().layout.xaxis):
        assert axis.nticks == min(12, most + 1), "Plotly's step is then 1 or more"
    shares = LinesPlot("lines", ["2024-01", "2024-02"], ["a", "b"], counts / most / 2, [["", ""]] * 2)
    assert shares.interactive().layout.yaxis.nticks is None
    assert 0.1 in shares.still().axes[0].yaxis.get_majorticklocs()


def test_names_on_a_map_lie_above_the_points_and_change_with_the_zoom() -> None:
    labels = [PlotLabel(1, 0.0, 0.0, "<b>large</b>"), PlotLabel(2, 1.0, 1.0, "small")]
    plot = PointsPlot("map", np.eye(2), ["one", "two"], Coloring.of("n", [1, 2]), labels)
    shown = [(note.text, note.visible) for note in plot.interactive().layout.annotations]
    assert shown == [("<b>&lt;b&gt;large&lt;/b&gt;</b>", True), ("small", False)]
    assert "levels = [1, 2]" in plot.script


def test_the_curve_ends_where_its_points_do() -> None:
    layout = PLOTS["curve"].interactive().layout
    assert layout.xaxis.range == pytest.approx((np.log10(2) - 0.05, np.log10(5) + 0.05))
    assert (layout.annotations[0].text, layout.annotations[0].x) == ("k = 3", pytest.approx(np.log10(3)))


def test_colours_of_groups() -> None:
    coloring = Coloring.of("label", ["b", "a", None, "b"])
    assert coloring.names == ("b", "a")
    assert coloring.codes.tolist() == [0, 1, -1, 0]
    assert coloring.color(-1) == GREY
    many = Coloring.of("label", [f"group {n}" for n in range(30) for _ in range(30 - n)])
    assert many.names[:2] == ("group 0", "group 1")
    assert many.names[-1] == "others (11)"
    assert len(many.names) == 20
    assert many.color(19) == GREY
    assert (many.codes == 19).sum() == sum(30 - n for n in range(19, 30))


def test_colours_of_numbers() -> None:
    assert Coloring.of("stars", [1, 2, None, 1]).names == ("1", "2")
    scale = Coloring.of("price", [*(n / 7 for n in range(40)), None])
    assert scale.names == ()
    assert scale.numbers[1] == pytest.approx(1 / 7)
    assert np.isnan(scale.numbers[-1])
    assert Coloring.of("flag", [True, False, True]).names == ("True", "False")


def test_texts_on_plots() -> None:
    assert hover("<t>", "a & b", "id<") == "<b>&lt;t&gt;</b><br>a &amp; b<br><i>id&lt;</i>"
    assert len(one_line("word " * 100, 50)) <= 51
