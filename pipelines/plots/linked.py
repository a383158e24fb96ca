"""Points of two kinds with a line between those that belong together: sentences and their translations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .file import plotly
from .points import PointsPlot

COLOR = "#9a9a9a"
INK = 120
"""Lines that are drawn at full strength together: many faint ones show where they go, where strong ones are a smear."""


@dataclass(frozen=True, slots=True)
class LinkedPlot:
    """A map with lines.

    Attributes:
        points: The map.
        links: Pairs of the numbers of points.
    """

    points: PointsPlot
    links: Sequence[tuple[int, int]]

    @property
    def strength(self) -> float:
        """How opaque a line is, 0 to 1."""
        return min(0.6, max(0.06, INK / max(len(self.links), 1)))

    @property
    def script(self) -> str:
        """JavaScript of the map."""
        return self.points.script

    def interactive(self) -> Any:
        """Return a Plotly figure, the lines below the points."""
        go = plotly()
        figure = self.points.interactive()
        places = self.points.places
        xs, ys = (
            [value for one, two in self.links for value in (float(places[one, axis]), float(places[two, axis]), None)]
            for axis in (0, 1)
        )
        lines = go.Scattergl(
            x=xs, y=ys, mode="lines", line={"color": COLOR, "width": 0.6}, opacity=self.strength, hoverinfo="skip",
            name=f"{len(self.links):,} pairs",
        )  # fmt: skip
        figure.add_trace(lines)
        figure.data = (figure.data[-1], *figure.data[:-1])
        return figure

    def still(self) -> Any:
        """Return a matplotlib figure, the lines below the points."""
        from matplotlib.collections import LineCollection

        figure = self.points.still()
        places = self.points.places
        segments = [places[[one, two]] for one, two in self.links]
        figure.axes[0].add_collection(
            LineCollection(segments, colors=COLOR, linewidths=0.5, alpha=self.strength, zorder=0), autolim=False
        )
        return figure
