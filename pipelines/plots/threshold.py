"""The curve of a threshold: what is answered rightly, and what is answered that has no answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .file import new_figure, plotly
from .text import escaped

if TYPE_CHECKING:
    from ..tune.threshold import ThresholdPoint

LINES = {"precision": "#1f77b4", "recall": "#2ca02c", "f1": "#9467bd", "false_answers": "#d62728"}
NAMES = {"f1": "F1", "false_answers": "answers where there is none"}


@dataclass(frozen=True, slots=True)
class ThresholdPlot:
    """A curve to be drawn: a title, the points by rising threshold, and the threshold that was taken."""

    title: str
    points: "Sequence[ThresholdPoint]"
    chosen: float

    def interactive(self) -> Any:
        """Return a Plotly figure."""
        go = plotly()
        figure = go.Figure()
        for name, color in LINES.items():
            figure.add_trace(
                go.Scatter(
                    x=[point.threshold for point in self.points],
                    y=[getattr(point, name) for point in self.points],
                    name=NAMES.get(name, name), mode="lines", line={"color": color},
                    hovertemplate="threshold %{x:.2f}: %{y:.3f}<extra>" + NAMES.get(name, name) + "</extra>",
                )
            )  # fmt: skip
        figure.add_vline(x=self.chosen, line={"dash": "dot", "color": "#888888"}, annotation_text=f"{self.chosen:.3f}")
        figure.update_layout(
            title=escaped(self.title), xaxis={"title": "threshold (cosine)"}, yaxis={"range": [0, 1.02]},
            margin={"l": 60, "r": 20, "t": 60, "b": 60},
        )  # fmt: skip
        return figure

    def still(self) -> Any:
        """Return a matplotlib figure."""
        figure, axes = new_figure(10, 5.5)
        thresholds = [point.threshold for point in self.points]
        for name, color in LINES.items():
            values = [getattr(point, name) for point in self.points]
            axes.plot(thresholds, values, color=color, linewidth=1.6, label=NAMES.get(name, name))
        axes.axvline(self.chosen, color="#888888", linestyle=":", linewidth=1)
        axes.annotate(f"{self.chosen:.3f}", (self.chosen, 1), xycoords=("data", "axes fraction"), xytext=(4, -12),
                      textcoords="offset points", color="#555555")  # fmt: skip
        axes.set_xlabel("threshold (cosine)")
        axes.set_ylim(0, 1.02)
        axes.set_title(self.title, loc="left", fontsize=13)
        axes.grid(axis="y", color="#e5e5e5")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.legend(frameon=False)
        return figure
