"""Puts the chart on a page: the scripts beside, as one module, and what they draw."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa
from streamlit.components import v2

from ......pipelines.map.regions import Outline

SCRIPTS = ("view.js", "points.js", "near.js", "overlay.js", "hand.js", "chart.js")
"""In the order in which they name each other; `chart.js` has the function that Streamlit calls."""
DIMMED = 0.15
"""The opacity of points while hits are highlighted."""


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a region, in the middle of it; level 1 is seen from afar, level 2 stands for a part of one."""

    x: float
    y: float
    text: str
    level: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A highlighted hit, with what is shown over it."""

    x: float
    y: float
    title: str
    text: str


class Chart(TypedDict):
    """What is drawn.

    Attributes:
        points: Columns x and y, float32; color, uint32 with red in the lowest byte; title and text, shown over a point.
            The last is drawn above the others.
        bounds: Of all places: left, low, right, high.
        size: The diameter of a point, in pixels.
        opacity: Of a point, 0 to 1.
        density: Shades behind the points, or None.
    """

    points: pa.Table
    bounds: tuple[float, float, float, float]
    size: float
    opacity: float
    density: dict[str, Any] | None


def draw(
    chart: Chart,
    names: Sequence[Name],
    marks: Sequence[Mark],
    mark: str,
    outlines: Sequence[Outline],
    key: str,
    on_select: Callable[[], None],
) -> None:
    """Put the chart on the page.

    Args:
        chart: The points.
        names: Of regions, the most important first: one that another covers is left out until one comes nearer.
        marks: Hits, the best first.
        mark: The colour of hits and outlines.
        outlines: What is selected.
        key: Of the session's state, where "outlines" is what a person drew.
        on_select: Called when it changes.
    """
    data = {
        **chart, "opacity": DIMMED if marks else chart["opacity"], "names": [asdict(name) for name in names],
        "hits": [asdict(one) for one in marks], "hit": mark, "outlines": [list(outline) for outline in outlines],
    }  # fmt: skip
    _component()(key=key, data=data, on_outlines_change=on_select)


def _component() -> Any:
    html, css, js = _parts()
    return v2.component("sonde_map", html=html, css=css, js=js)


@cache
def _parts() -> tuple[str, str, str]:
    html, css, *scripts = (
        Path(__file__).with_name(name).read_text("utf-8") for name in ("chart.html", "chart.css", *SCRIPTS)
    )
    return html, css, "\n".join(scripts)
