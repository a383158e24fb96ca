"""The tree of topics: which are alike, and at which distance they become one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .colors import escaped, one_line
from .file import new_figure, plotly

NAME = 60
COLOR = "#1f77b4"


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
                    line={"color": COLOR, "width": 1.5},
                    showlegend=False,
                    text=[escaped(one_line(self.joined[node], NAME * 2))] * 4,
                    hovertemplate="%{x:.3f}: %{text}<extra></extra>",
                )
            )
        if self.cut is not None:
            figure.add_vline(x=self.cut, line={"dash": "dot", "color": "#888888"})
        figure.update_layout(
            title=escaped(self.title), hovermode="closest", height=max(400, 130 + 24 * len(leaves)),
            margin={"l": 10, "r": 30, "t": 60, "b": 50}, xaxis={"title": "distance", "range": [0, self._far()]},
            yaxis={"tickvals": list(range(len(leaves))), "automargin": True, "showgrid": False, "zeroline": False,
                   "ticktext": [escaped(one_line(self.names[leaf], NAME)) for leaf in leaves], "autorange": "reversed"},
        )  # fmt: skip
        return figure

    def still(self) -> Any:
        """Return a matplotlib figure."""
        leaves, lines = self._lines()
        figure, axes = new_figure(11, float(np.clip(1.2 + 0.22 * len(leaves), 3, 60)))
        for _, far, places in lines:
            axes.plot(far, places, color=COLOR, linewidth=1.2)
        if self.cut is not None:
            axes.axvline(self.cut, color="#888888", linestyle=":", linewidth=1)
        axes.set_yticks(range(len(leaves)), [one_line(self.names[leaf], NAME) for leaf in leaves], fontsize=9)
        axes.set_ylim(len(leaves) - 0.5, -0.5)
        axes.set_xlim(0, self._far())
        axes.set_xlabel("distance")
        axes.set_title(self.title, loc="left", fontsize=13)
        axes.tick_params(axis="y", length=0)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        return figure
