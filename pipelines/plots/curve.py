"""Curves over the number of clusters, and histograms laid over each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log10
from typing import Any

import numpy as np

from .colors import PALETTE, escaped, one_line
from .file import new_figure, plotly

BINS = 50
NAME = 60


@dataclass(frozen=True, slots=True)
class HistogramPlot:
    """Histograms to be drawn.

    Attributes:
        title: Above them.
        names: What each holds.
        values: float [n] for each.
        unit: What the horizontal axis shows.
    """

    title: str
    names: Sequence[str]
    values: Sequence[np.ndarray]
    unit: str = "cosine"

    def shares(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return the edges of the bins, float [bins + 1], and for each histogram the share of its values in each."""
        every = np.concatenate([np.asarray(values, np.float64) for values in self.values])
        low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
        edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
        return edges, [np.histogram(values, edges)[0] / max(len(values), 1) for values in self.values]

    def interactive(self) -> Any:
        """Return a Plotly figure."""
        go = plotly()
        figure = go.Figure()
        edges, shares = self.shares()
        middles = (edges[:-1] + edges[1:]) / 2
        for number, (name, heights) in enumerate(zip(self.names, shares, strict=True)):
            figure.add_trace(
                go.Bar(
                    x=middles.tolist(),
                    y=heights.tolist(),
                    width=float(edges[1] - edges[0]),
                    name=escaped(one_line(name, NAME)),
                    marker={"color": PALETTE[number % len(PALETTE)], "line": {"width": 0}},
                    opacity=0.6,
                    hovertemplate="%{x:.3f}: %{y:.1%}<extra>%{fullData.name}</extra>",
                )
            )
        figure.update_layout(
            title=escaped(self.title), barmode="overlay", bargap=0, xaxis={"title": escaped(self.unit)},
            yaxis={"title": "share of the pairs", "tickformat": ".0%", "rangemode": "tozero"},
            margin={"l": 60, "r": 20, "t": 60, "b": 60}, legend={"x": 1, "y": 1, "xanchor": "right"},
        )  # fmt: skip
        return figure

    def still(self) -> Any:
        """Return a matplotlib figure."""
        from matplotlib.ticker import PercentFormatter

        figure, axes = new_figure(self.title, 10, 5.5)
        edges, shares = self.shares()
        for number, (name, heights) in enumerate(zip(self.names, shares, strict=True)):
            color = PALETTE[number % len(PALETTE)]
            axes.stairs(heights, edges, fill=True, color=color, alpha=0.45, label=one_line(name, NAME))
            axes.stairs(heights, edges, color=color, linewidth=1.2)
        axes.set_xlabel(self.unit)
        axes.set_ylabel("share of the pairs")
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.grid(axis="y", color="#e5e5e5")
        axes.set_axisbelow(True)
        axes.legend(frameon=False)
        return figure


LINES = {"silhouette": "#1f77b4", "stability": "#ff7f0e", "score": "#2ca02c"}


@dataclass(frozen=True, slots=True)
class CurvePlot:
    """A curve to be drawn.

    Attributes:
        title: Above it.
        points: One for each k tried, with "k", "silhouette", "stability" and "score".
        chosen: The k that was taken.
    """

    title: str
    points: Sequence[Mapping[str, float]]
    chosen: int

    def interactive(self) -> Any:
        """Return a Plotly figure."""
        go = plotly()
        figure = go.Figure()
        for name, color in LINES.items():
            values = [point.get(name) for point in self.points]
            figure.add_trace(
                go.Scatter(
                    x=[point["k"] for point in self.points],
                    y=values,
                    name=name,
                    mode="lines+markers",
                    line={"color": color},
                    hovertemplate="k = %{x}: %{y:.3f}<extra>" + name + "</extra>",
                )
            )
        figure.add_vline(x=self.chosen, line={"dash": "dot", "color": "#888888"})
        figure.add_annotation(  # on a logarithmic axis, Plotly wants the logarithm here, and the number above
            x=log10(self.chosen), y=1, yref="paper", text=f"k = {self.chosen}", showarrow=False, xanchor="left",
            xshift=5, yanchor="top",
        )  # fmt: skip
        ends = (log10(self.points[0]["k"]), log10(self.points[-1]["k"]))
        figure.update_layout(
            title=escaped(self.title), margin={"l": 60, "r": 20, "t": 60, "b": 60}, yaxis={"rangemode": "tozero"},
            xaxis={"title": "number of clusters, k", "type": "log", "tickvals": self._marks(),
                   "range": [ends[0] - 0.05, ends[1] + 0.05]},
        )  # fmt: skip
        return figure

    def _marks(self) -> list[float]:
        ks = [point["k"] for point in self.points]
        return ks[:: max(1, len(ks) // 10)]

    def still(self) -> Any:
        """Return a matplotlib figure."""
        from matplotlib.ticker import NullFormatter, NullLocator

        figure, axes = new_figure(self.title, 10, 5.5)
        ks = [point["k"] for point in self.points]
        for name, color in LINES.items():
            values = [point.get(name) for point in self.points]
            axes.plot(ks, values, color=color, marker="o", markersize=3.5, linewidth=1.6, label=name)
        axes.axvline(self.chosen, color="#888888", linestyle=":", linewidth=1)
        axes.annotate(f"k = {self.chosen}", (self.chosen, 1), xycoords=("data", "axes fraction"), xytext=(4, -12),
                      textcoords="offset points", color="#555555")  # fmt: skip
        axes.set_xscale("log")
        marks = self._marks()
        axes.set_xticks(marks, [f"{mark:g}" for mark in marks])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("number of clusters, k")
        axes.grid(axis="y", color="#e5e5e5")
        axes.legend(frameon=False)
        return figure
