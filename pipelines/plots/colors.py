"""Colours of groups and numbers on plots, and text that is never markup and never too long."""

import colorsys
import html
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

HOVER = 240
LINE = 60


def one_line(text: str, length: int) -> str:
    """Return text as one line of printable characters, shortened at a word."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: length * 4]).split())
    return line if len(line) <= length else line[: length - 1].rsplit(" ", 1)[0] + " …"


def escaped(text: str) -> str:
    """Return text that Plotly shows unchanged: it would take tags for markup, but it shows `&quot;` as it is."""
    return html.escape(text, quote=False)


def hover(title: str, text: str, more: str = "") -> str:
    """Return what is shown over a point: a title, the beginning of the text, in lines."""
    parts = [f"<b>{escaped(one_line(title, LINE))}</b>"] if title.strip() else []
    parts += [escaped(line) for line in textwrap.wrap(one_line(text, HOVER), LINE)]
    parts += [f"<i>{escaped(one_line(more, LINE))}</i>"] if more else []
    return "<br>".join(parts)


PALETTE = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#17becf", "#bcbd22", "#393b79",
    "#aec7e8", "#ffbb78", "#98df8a", "#ff9896", "#c5b0d5", "#c49c94", "#f7b6d2", "#9edae5", "#dbdb8d", "#637939",
)  # fmt: skip
GREY = "#c8c8c8"
GREYS = {"light": GREY, "dark": "#5a5f6a"}
"""The colour of what has no group, on a light and on a dark page."""
BRIGHTER = {"#393b79": "#8083d6", "#8c564b": "#c48a7e", "#637939": "#a3b96c", "#1f77b4": "#4c9fd8"}
"""Colours of the palette that are too dark on a dark page."""
GOLDEN = 0.618034
"""Steps of this part of the colour circle keep neighbouring groups apart."""
LIGHTNESS = {"light": (0.42, 0.56), "dark": (0.58, 0.72)}
OTHERS = "others"
NONE = "none"


@dataclass(frozen=True, slots=True)
class Coloring:
    """What colours stand for.

    Attributes:
        title: The column or run.
        names: Of the groups, the largest first; empty when colours stand for numbers.
        codes: int64 [n], each document's group, -1 for one that has none; empty for numbers.
        numbers: float64 [n], NaN where there is none; empty for groups.
    """

    title: str
    names: tuple[str, ...]
    codes: np.ndarray
    numbers: np.ndarray

    @classmethod
    def of(cls, title: str, values: Sequence[Any]) -> "Coloring":
        """Colour by any values: numbers (unless there are few different ones) by a scale, all else by groups."""
        found = {value for value in values if value is not None}
        if found and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in found):
            if len(found) > len(PALETTE):
                numbers = np.array([np.nan if value is None else float(value) for value in values])
                return cls(title, (), np.zeros(0, np.int64), numbers)
            values = [None if value is None else f"{value:g}" for value in values]
        return cls.groups(title, [None if value is None else str(value) for value in values])

    @classmethod
    def groups(cls, title: str, names: Sequence[str | None]) -> "Coloring":
        """Colour by groups; those beyond the palette share one grey."""
        counts = Counter(name for name in names if name is not None)
        order = sorted(counts, key=lambda name: (-counts[name], name))
        kept = order if len(order) <= len(PALETTE) else order[: len(PALETTE) - 1]
        number = {name: place for place, name in enumerate(kept)}
        rest = len(kept) if len(order) > len(kept) else -1
        codes = np.array([-1 if name is None else number.get(name, rest) for name in names], np.int64)
        shown = (*kept, f"{OTHERS} ({len(order) - len(kept)})") if rest >= 0 else tuple(kept)
        return cls(title, shown, codes, np.zeros(0))

    def color(self, code: int) -> str:
        """Return a group's colour as "#rrggbb"."""
        grey = code < 0 or self.names[code].startswith(f"{OTHERS} (")
        return GREY if grey else PALETTE[code % len(PALETTE)]


def shades(count: int, mode: Literal["light", "dark"], *, grey_last: bool = False) -> list[str]:
    """Return a colour for each of `count` groups, as "#rrggbb": the palette, then muted colours around the circle.

    Args:
        count: Number of groups.
        mode: Whether they are shown on a light or on a dark page.
        grey_last: Whether the last group collects what has no colour of its own.
    """
    found = [PALETTE[n] if n < len(PALETTE) else _muted(n, LIGHTNESS[mode][n % 2]) for n in range(count)]
    if mode == "dark":
        found = [BRIGHTER.get(color, color) for color in found]
    return [*found[:-1], GREYS[mode]] if grey_last and found else found


def _muted(number: int, lightness: float) -> str:
    channels = colorsys.hls_to_rgb(number * GOLDEN % 1, lightness, 0.45)
    return "#" + "".join(f"{round(channel * 255):02x}" for channel in channels)
