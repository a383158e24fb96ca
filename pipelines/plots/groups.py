"""Groups over time as lines, by class as stacked bars, and in a tree of which are alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .colors import GREY, OTHERS, PALETTE, escaped, one_line
from .file import new_figure, plotly

MARKS = 12
"""Ticks of an axis of counts, at most."""
SHOWN = 8
"""Lines that are drawn; a page holds the others too, to be switched on in the legend."""
NAME, CLASS = 42, 40


@dataclass(frozen=True, slots=True)
class LinesPlot:
    """Lines to be drawn.

    Attributes:
        title: Above them.
        periods: What the horizontal axis shows.
        names: Of the lines, the most important first.
        values: float [lines, periods].
        hovers: For each line, what is known of each period, for the mouse.
        unit: What the vertical axis shows.
    """

    title: str
    periods: Sequence[str]
    names: Sequence[str]
    values: np.ndarray
    hovers: Sequence[Sequence[str]]
    unit: str = "documents"

    def interactive(self) -> Any:
        """Return a Plotly figure."""
        go = plotly()
        figure = go.Figure()
        for number, (name, values, hovers) in enumerate(zip(self.names, self.values, self.hovers, strict=True)):
            figure.add_trace(
                go.Scatter(
                    x=list(self.periods),
                    y=values.tolist(),
                    name=escaped(one_line(name, NAME)),
                    mode="lines+markers",
                    line={"color": PALETTE[number % len(PALETTE)]},
                    visible=True if number < SHOWN else "legendonly",
                    text=[escaped(one_line(text, 100)) for text in hovers],
                    hovertemplate="%{x}: %{y}<br>%{text}<extra>%{fullData.name}</extra>",
                )
            )
        figure.update_layout(
            title=escaped(self.title), xaxis={"type": "category"}, hovermode="closest",
            yaxis={"title": escaped(self.unit), "rangemode": "tozero", **_ticks(self.values[:SHOWN])},
            margin={"l": 60, "r": 20, "t": 60, "b": 60},
        )  # fmt: skip
        return figure

    def still(self) -> Any:
        """Return a matplotlib figure of the first lines."""
        figure, axes = new_figure(self.title, 12, 6)
        marks = np.arange(len(self.periods))
        for number, (name, values) in enumerate(zip(self.names[:SHOWN], self.values, strict=False)):
            color = PALETTE[number % len(PALETTE)]
            axes.plot(marks, values, color=color, marker="o", markersize=3, linewidth=1.6, label=one_line(name, NAME))
        step = max(1, -(-len(marks) // 12))
        axes.set_xticks(marks[::step], [self.periods[mark] for mark in marks[::step]])
        _tick(axes.yaxis, self.values)
        axes.set_ylabel(self.unit)
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", color="#e5e5e5")
        axes.set_axisbelow(True)
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=9)
        return figure


@dataclass(frozen=True, slots=True)
class BarsPlot:
    """Bars to be drawn, one for each class.

    Attributes:
        title: Above them.
        classes: From top to bottom.
        names: Of the parts of a bar, the most important first.
        values: float [names, classes].
        hovers: For each name, what is known of each class, for the mouse.
        unit: What the horizontal axis shows.
    """

    title: str
    classes: Sequence[str]
    names: Sequence[str]
    values: np.ndarray
    hovers: Sequence[Sequence[str]]
    unit: str = "documents"

    def _parts(self) -> list[tuple[str, str, np.ndarray, Sequence[str]]]:
        """Return name, colour, values and hovers; names beyond the palette are one grey part."""
        found = [(name, PALETTE[n % len(PALETTE)], self.values[n], self.hovers[n]) for n, name in enumerate(self.names)]
        if len(found) <= len(PALETTE):
            return found
        rest = found[len(PALETTE) - 1 :]
        values = np.sum([part[2] for part in rest], axis=0)
        other = (f"{OTHERS} ({len(rest)} groups)", GREY, values, [""] * len(self.classes))
        return [*found[: len(PALETTE) - 1], other]

    def interactive(self) -> Any:
        """Return a Plotly figure."""
        go = plotly()
        figure, marks = go.Figure(), list(range(len(self.classes)))
        for name, color, values, hovers in self._parts():
            figure.add_trace(
                go.Bar(
                    y=marks, x=values.tolist(), orientation="h", name=escaped(one_line(name, NAME)),
                    marker={"color": color},
                    text=[escaped(one_line(text, 100)) for text in hovers], textposition="none",
                    hovertemplate="%{x} · %{text}<extra>%{fullData.name}</extra>",
                )
            )  # fmt: skip
        figure.update_layout(
            title=escaped(self.title), barmode="stack", bargap=0.25,
            xaxis={"title": escaped(self.unit), **_ticks(self.values.sum(axis=0))},
            height=max(420, 150 + 30 * len(self.classes)), margin={"l": 10, "r": 20, "t": 60, "b": 60},
            legend={"traceorder": "normal"},
            yaxis={"autorange": "reversed", "automargin": True, "tickvals": marks,
                   "ticktext": [escaped(one_line(name, CLASS)) for name in self.classes]},
        )  # fmt: skip
        return figure

    def still(self) -> Any:
        """Return a matplotlib figure."""
        figure, axes = new_figure(self.title, 12, float(np.clip(1.6 + 0.32 * len(self.classes), 5, 40)))
        marks, left = np.arange(len(self.classes)), np.zeros(len(self.classes))
        for name, color, values, _ in self._parts():
            axes.barh(marks, values, left=left, height=0.75, color=color, label=one_line(name, NAME))
            left = left + values
        axes.set_yticks(marks, [one_line(name, CLASS) for name in self.classes])
        axes.set_ylim(len(marks) - 0.5, -0.5)
        _tick(axes.xaxis, self.values)
        axes.set_xlabel(self.unit)
        axes.grid(axis="x", color="#e5e5e5")
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        if self.names:
            axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=9)
        return figure


def _whole(values: np.ndarray) -> bool:
    """Whether all values are counts, so that a tick between two of them has no meaning."""
    return bool((values == np.floor(values)).all())


def _ticks(values: np.ndarray) -> dict[str, int]:
    """Return what a Plotly axis needs for whole-number ticks: at most one tick for each count from 0 to the largest."""
    return {"nticks": min(MARKS, int(values.max(initial=1)) + 1)} if _whole(values) else {}


def _tick(axis: Any, values: np.ndarray) -> None:
    """Give a matplotlib axis of counts ticks at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    if _whole(values):
        axis.set_major_locator(MaxNLocator(MARKS, integer=True, steps=[1, 2, 5, 10]))


TREE_NAME = 60
TREE_COLOR = "#1f77b4"


@dataclass(frozen=True, slots=True)
class TreePlot:
    """A tree to be drawn.

    Attributes:
        title: Above it.
        names: Of the leaves.
        linkage: float64 [leaves - 1, 4], as SciPy has it: which two nodes join, at which distance, and of how many
            leaves.
        joined: What is known of each inner node, for the mouse: its terms.
        cut: Distance below which topics are one in the run now; None for no line.
    """

    title: str
    names: Sequence[str]
    linkage: np.ndarray
    joined: Sequence[str]
    cut: float | None = None

    def _lines(self) -> tuple[list[int], list[tuple[int, list[float], list[float]]]]:
        """Return the leaves from top to bottom, and for each inner node its number and the four corners of its line."""
        if not len(self.linkage):
            return list(range(len(self.names))), []
        from scipy.cluster.hierarchy import dendrogram

        drawn = dendrogram(self.linkage, no_plot=True)
        heights = {round(row[2], 12): number for number, row in enumerate(self.linkage)}
        return drawn["leaves"], [
            (heights.get(round(far[1], 12), 0), far, [(y - 5) / 10 for y in places])
            for places, far in zip(drawn["icoord"], drawn["dcoord"], strict=True)
        ]

    def _far(self) -> float:
        """How far the horizontal axis goes: a little beyond the last line."""
        return 1.03 * float(self.linkage[:, 2].max(initial=0)) or 1.0

    def interactive(self) -> Any:
        """Return a Plotly figure."""
        go = plotly()
        leaves, lines = self._lines()
        figure = go.Figure()
        for node, far, places in lines:
            figure.add_trace(
                go.Scatter(
                    x=far,
                    y=places,
                    mode="lines",
                    line={"color": TREE_COLOR, "width": 1.5},
                    showlegend=False,
                    text=[escaped(one_line(self.joined[node], TREE_NAME * 2))] * 4,
                    hovertemplate="%{x:.3f}: %{text}<extra></extra>",
                )
            )
        if self.cut is not None:
            figure.add_vline(x=self.cut, line={"dash": "dot", "color": "#888888"})
        figure.update_layout(
            title=escaped(self.title), hovermode="closest", height=max(400, 130 + 24 * len(leaves)),
            margin={"l": 10, "r": 30, "t": 60, "b": 50}, xaxis={"title": "distance", "range": [0, self._far()]},
            yaxis={"tickvals": list(range(len(leaves))), "automargin": True, "showgrid": False, "zeroline": False,
                   "ticktext": [escaped(one_line(self.names[leaf], TREE_NAME)) for leaf in leaves],
                   "autorange": "reversed"},
        )  # fmt: skip
        return figure

    def still(self) -> Any:
        """Return a matplotlib figure."""
        leaves, lines = self._lines()
        figure, axes = new_figure(self.title, 11, float(np.clip(1.2 + 0.22 * len(leaves), 3, 60)))
        for _, far, places in lines:
            axes.plot(far, places, color=TREE_COLOR, linewidth=1.2)
        if self.cut is not None:
            axes.axvline(self.cut, color="#888888", linestyle=":", linewidth=1)
        axes.set_yticks(range(len(leaves)), [one_line(self.names[leaf], TREE_NAME) for leaf in leaves], fontsize=9)
        axes.set_ylim(len(leaves) - 0.5, -0.5)
        axes.set_xlim(0, self._far())
        axes.set_xlabel("distance")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        return figure
