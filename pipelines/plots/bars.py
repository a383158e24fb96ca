"""Stacked bars: how the documents of each class are shared out among topics."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .colors import GREY, OTHERS, PALETTE
from .file import new_figure, plotly
from .text import escaped, plain

NAME, CLASS = 42, 40


@dataclass(frozen=True, slots=True)
class BarsPlot:
    """Bars to be drawn, one for each class.

    Attributes:
        title: Above them.
        classes: From top to bottom.
        names: Of the parts of a bar, the most important first.
        values: float [names, classes].
        hovers: For each name, what is known of each class, for the mouse.
        unit: What stands along the horizontal axis.
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
        other = (f"{OTHERS} ({len(rest)})", GREY, np.sum([part[2] for part in rest], axis=0), [""] * len(self.classes))
        return [*found[: len(PALETTE) - 1], other]

    def interactive(self) -> Any:
        """Return a Plotly figure."""
        go = plotly()
        figure, marks = go.Figure(), list(range(len(self.classes)))
        for name, color, values, hovers in self._parts():
            figure.add_trace(
                go.Bar(
                    y=marks, x=values.tolist(), orientation="h", name=escaped(plain(name, NAME)),
                    marker={"color": color},
                    text=[escaped(plain(text, 100)) for text in hovers], textposition="none",
                    hovertemplate="%{x} · %{text}<extra>%{fullData.name}</extra>",
                )
            )  # fmt: skip
        figure.update_layout(
            title=escaped(self.title), barmode="stack", bargap=0.25, xaxis={"title": escaped(self.unit)},
            height=max(420, 150 + 30 * len(self.classes)), margin={"l": 10, "r": 20, "t": 60, "b": 60},
            legend={"traceorder": "normal"},
            yaxis={"autorange": "reversed", "automargin": True, "tickvals": marks,
                   "ticktext": [escaped(plain(name, CLASS)) for name in self.classes]},
        )  # fmt: skip
        return figure

    def still(self) -> Any:
        """Return a matplotlib figure."""
        figure, axes = new_figure(12, float(np.clip(1.6 + 0.32 * len(self.classes), 5, 40)))
        marks, left = np.arange(len(self.classes)), np.zeros(len(self.classes))
        for name, color, values, _ in self._parts():
            axes.barh(marks, values, left=left, height=0.75, color=color, label=plain(name, NAME))
            left = left + values
        axes.set_yticks(marks, [plain(name, CLASS) for name in self.classes])
        axes.set_ylim(len(marks) - 0.5, -0.5)
        axes.set_xlabel(self.unit)
        axes.set_title(self.title, loc="left", fontsize=13)
        axes.grid(axis="x", color="#e5e5e5")
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        if self.names:
            axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=9)
        return figure
