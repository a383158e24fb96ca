"""Histograms laid over each other: how the similarities of one kind of pairs lie beside those of another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .colors import PALETTE
from .file import new_figure, plotly
from .text import escaped, plain

BINS = 50
NAME = 60


@dataclass(frozen=True, slots=True)
class HistogramPlot:
    """Histograms to be drawn.

    Attributes:
        title: Above them.
        names: What each holds.
        values: float [n] for each.
        unit: What stands along the horizontal axis.
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
                    name=escaped(plain(name, NAME)),
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

        figure, axes = new_figure(10, 5.5)
        edges, shares = self.shares()
        for number, (name, heights) in enumerate(zip(self.names, shares, strict=True)):
            color = PALETTE[number % len(PALETTE)]
            axes.stairs(heights, edges, fill=True, color=color, alpha=0.45, label=plain(name, NAME))
            axes.stairs(heights, edges, color=color, linewidth=1.2)
        axes.set_xlabel(self.unit)
        axes.set_ylabel("share of the pairs")
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.set_title(self.title, loc="left", fontsize=13)
        axes.grid(axis="y", color="#e5e5e5")
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.legend(frameon=False)
        return figure
