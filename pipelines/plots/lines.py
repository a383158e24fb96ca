"""Lines over periods: how many documents each topic has in each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .colors import PALETTE
from .file import new_figure, plotly
from .text import escaped, plain

SHOWN = 8
"""Lines that are drawn; a page holds the others too, to be switched on in the legend."""
NAME = 42


@dataclass(frozen=True, slots=True)
class LinesPlot:
    """Lines to be drawn.

    Attributes:
        title: Above them.
        periods: What stands along the horizontal axis.
        names: Of the lines, the most important first.
        values: float [lines, periods].
        hovers: For each line, what is known of each period, for the mouse.
        unit: What stands along the vertical axis.
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
                    name=escaped(plain(name, NAME)),
                    mode="lines+markers",
                    line={"color": PALETTE[number % len(PALETTE)]},
                    visible=True if number < SHOWN else "legendonly",
                    text=[escaped(plain(text, 100)) for text in hovers],
                    hovertemplate="%{x}: %{y}<br>%{text}<extra>%{fullData.name}</extra>",
                )
            )
        figure.update_layout(
            title=escaped(self.title), xaxis={"type": "category"}, hovermode="closest",
            yaxis={"title": escaped(self.unit), "rangemode": "tozero"}, margin={"l": 60, "r": 20, "t": 60, "b": 60},
        )  # fmt: skip
        return figure

    def still(self) -> Any:
        """Return a matplotlib figure of the first lines."""
        figure, axes = new_figure(12, 6)
        marks = np.arange(len(self.periods))
        for number, (name, values) in enumerate(zip(self.names[:SHOWN], self.values, strict=False)):
            color = PALETTE[number % len(PALETTE)]
            axes.plot(marks, values, color=color, marker="o", markersize=3, linewidth=1.6, label=plain(name, NAME))
        step = max(1, -(-len(marks) // 12))
        axes.set_xticks(marks[::step], [self.periods[mark] for mark in marks[::step]])
        axes.set_ylabel(self.unit)
        axes.set_ylim(bottom=0)
        axes.set_title(self.title, loc="left", fontsize=13)
        axes.grid(axis="y", color="#e5e5e5")
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=9)
        return figure
