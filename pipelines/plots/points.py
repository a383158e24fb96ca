"""The map as a plot: coloured points with named regions, or linked pairs of points."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .colors import GREY, NONE, Coloring, escaped, one_line
from .file import FONT, new_figure, plotly

LEGEND = 40
"""Characters of a group's name in the legend."""
INK = "#222222"
HALO = "0 0 3px white, 0 0 3px white, 0 0 5px white"
NEAR = 0.45
"""The names of small regions appear when no more than this share of the map's width is in view."""


@dataclass(frozen=True, slots=True)
class PlotLabel:
    """The name of a region: level 1 is seen from afar, level 2 from near."""

    level: int
    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class PointsPlot:
    """A map to be drawn.

    Attributes:
        title: Above it.
        places: float [n, 2].
        hovers: What each point shows under the mouse, markup escaped; one for each point.
        coloring: What colours stand for.
        labels: Names of regions.
    """

    title: str
    places: np.ndarray
    hovers: Sequence[str]
    coloring: Coloring
    labels: Sequence[PlotLabel] = ()

    @property
    def size(self) -> float:
        """The diameter of a point: smaller the more there are."""
        return float(np.clip(60 / max(len(self.places), 1) ** 0.33, 2.5, 8))

    @property
    def script(self) -> str:
        """JavaScript that shows the names of small regions from near and of large ones from afar, none over another."""
        values = {"LEVELS": [label.level for label in self.labels], "NEAR": NEAR, "WIDTH": f"{self._width():.6g}"}
        script = _SCRIPT
        for name, value in values.items():
            script = script.replace(name, str(value))
        return script

    def _width(self) -> float:
        return float(np.ptp(self.places[:, 0])) * 1.1 if len(self.places) else 1.0

    def groups(self) -> list[tuple[str, str, np.ndarray]]:
        """Return name, colour and rows of each group, those without one first, so that they are drawn below."""
        rows = [("", GREY, np.flatnonzero(self.coloring.codes < 0))]
        rows[0] = (NONE, *rows[0][1:])
        rows += [
            (name, self.coloring.color(code), np.flatnonzero(self.coloring.codes == code))
            for code, name in enumerate(self.coloring.names)
        ]
        return [(name, color, found) for name, color, found in rows if len(found)]

    def interactive(self) -> Any:
        """Return a Plotly figure, drawn by WebGL."""
        go = plotly()
        figure = go.Figure()
        if len(self.coloring.numbers):
            figure.add_trace(self._numbers(go))
        else:
            for name, color, rows in self.groups():
                figure.add_trace(self._points(go, rows, escaped(one_line(name, LEGEND)), {"color": color}))
        axis = {"visible": False, "showgrid": False, "zeroline": False}
        figure.update_layout(
            title=escaped(self.title), xaxis=axis, yaxis=axis | {"scaleanchor": "x"}, hovermode="closest",
            dragmode="pan", annotations=self._names(), margin={"l": 10, "r": 10, "t": 50, "b": 10},
            hoverlabel={"align": "left", "font": {"family": FONT}},
            legend={"title": {"text": escaped(self.coloring.title)}, "itemsizing": "constant"},
        )  # fmt: skip
        return figure

    def _points(self, go: Any, rows: np.ndarray, name: str, marker: dict[str, Any]) -> Any:
        places = np.round(self.places[rows], 4)
        return go.Scattergl(
            x=places[:, 0].tolist(), y=places[:, 1].tolist(), mode="markers", name=name,
            text=[self.hovers[row] for row in rows.tolist()], hovertemplate="%{text}<extra></extra>",
            marker={"size": self.size, "opacity": 0.75, "line": {"width": 0}} | marker,
        )  # fmt: skip

    def _numbers(self, go: Any) -> Any:
        numbers = [None if np.isnan(value) else float(value) for value in self.coloring.numbers]
        scale = {"color": numbers, "colorscale": "Viridis", "showscale": True}
        rows = np.arange(len(self.places))
        return self._points(
            go, rows, "", scale | {"colorbar": {"title": {"text": escaped(self.coloring.title)}}}
        ).update(showlegend=False)  # fmt: skip

    def _names(self) -> list[dict[str, Any]]:
        """Return the names as annotations, which lie above the points."""
        return [
            {"x": label.x, "y": label.y, "visible": label.level == 1, "showarrow": False,
             "text": f"<b>{escaped(label.text)}</b>" if label.level == 1 else escaped(label.text),
             "font": {"size": 15 if label.level == 1 else 12, "color": INK, "family": FONT, "shadow": HALO}}
            for label in self.labels
        ]  # fmt: skip

    def still(self) -> Any:
        """Return a matplotlib figure."""
        figure, axes = new_figure(self.title, 13, 9)
        size = self.size**2 / 2.2
        if len(self.coloring.numbers):
            self._scale(figure, axes, size)
        else:
            self._legend(axes, size)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_axis_off()
        axes.margins(0.03)
        figure.canvas.draw()
        _write_labels(axes, self.labels)
        return figure

    def _scale(self, figure: Any, axes: Any, size: float) -> None:
        known = ~np.isnan(self.coloring.numbers)
        axes.scatter(*self.places[~known].T, s=size, c=GREY, linewidths=0)
        drawn = axes.scatter(
            *self.places[known].T, s=size, c=self.coloring.numbers[known], cmap="viridis", linewidths=0
        )
        figure.colorbar(drawn, ax=axes, label=self.coloring.title, shrink=0.6)

    def _legend(self, axes: Any, size: float) -> None:
        for name, color, rows in self.groups():
            axes.scatter(*self.places[rows].T, s=size, c=color, alpha=0.75, linewidths=0, label=one_line(name, LEGEND))
        if self.coloring.names:
            found = axes.legend(
                title=self.coloring.title, loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=9,
                alignment="left",
            )  # fmt: skip
            for handle in found.legend_handles:
                handle.set_sizes([40])


def _write_labels(axes: Any, labels: Sequence[PlotLabel]) -> None:
    """Write the names of large regions, then those of small ones where there is room."""
    from matplotlib.patheffects import withStroke

    taken: list[Any] = []
    for label in sorted(labels, key=lambda label: label.level):
        large = label.level == 1
        text = axes.text(
            label.x, label.y, label.text, ha="center", va="center", fontsize=11 if large else 7.5, color=INK,
            fontweight="bold" if large else "normal", path_effects=[withStroke(linewidth=3, foreground="white")],
        )  # fmt: skip
        box = text.get_window_extent().expanded(1.02, 1.1)
        if any(box.overlaps(other) for other in taken) and not _moved(axes, text, taken):
            text.remove()
            continue
        taken.append(text.get_window_extent().expanded(1.02, 1.1))


def _moved(axes: Any, text: Any, taken: list[Any]) -> bool:
    """Move a name up or down until it is free; False if it would have to go far."""
    x, y = axes.transData.transform(text.get_position())
    height = text.get_window_extent().height
    for step in (1, -1, 2, -2):
        text.set_position(axes.transData.inverted().transform((x, y + step * height * 1.2)))
        box = text.get_window_extent().expanded(1.02, 1.1)
        if not any(box.overlaps(other) for other in taken):
            return True
    return False


_SCRIPT = """
var plot = document.getElementById('{plot_id}'), levels = LEVELS;
function show() {
  var range = plot._fullLayout.xaxis.range, near = Math.abs(range[1] - range[0]) < NEAR * WIDTH;
  if (near === plot.near) return;
  plot.near = near;
  var change = {};
  levels.forEach(function (level, at) { change['annotations[' + at + '].visible'] = (level === 2) === near; });
  if (levels.length) Plotly.relayout(plot, change);
}
function tidy() {
  var taken = [];
  plot.querySelectorAll('.annotation').forEach(function (name) {
    name.style.display = '';
    var box = name.getBoundingClientRect(), free = taken.every(function (other) {
      return box.right < other.left || other.right < box.left || box.bottom < other.top || other.bottom < box.top;
    });
    if (free) taken.push(box); else name.style.display = 'none';
  });
}
plot.on('plotly_relayout', show);
plot.on('plotly_afterplot', tidy);
tidy();
"""

COLOR = "#9a9a9a"
LINKED_INK = 120
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
        return min(0.6, max(0.06, LINKED_INK / max(len(self.links), 1)))

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
