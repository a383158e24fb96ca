"""What the colours stand for, beside the map."""

import html
from datetime import date

import numpy as np
import streamlit as st

from .....pipelines.plots.colors import Coloring
from .....pipelines.plots.text import plain
from .figure import NOWHERE, SCALE, shade

ROW = (
    "<div style='display:flex;gap:.5rem;align-items:baseline;font-size:.85rem'>"
    "<span style='flex:none;width:.7rem;height:.7rem;border-radius:50%;background:{0}'></span>"
    "<span style='flex:1;overflow:hidden;text-overflow:ellipsis;white-space:nowrap'>{1}</span>"
    "<span style='flex:none;opacity:.7;font-variant-numeric:tabular-nums'>{2:,}</span></div>"
)


BAR = (
    "<div style='margin-top:.5rem;font-size:.85rem'><div>{0}</div>"
    "<div style='height:.7rem;border-radius:.35rem;margin:.3rem 0;background:linear-gradient(to right,{1})'></div>"
    "<div style='display:flex;justify-content:space-between;font-variant-numeric:tabular-nums'>{2}</div></div>"
)


def show_legend(coloring: Coloring, days: bool, mode: str) -> None:
    """Show each group's colour, name and number of points, or the scale of numbers and how many points have none."""
    if len(coloring.numbers):
        _show_scale(coloring, days, mode)
        return
    counts = np.bincount(coloring.codes + 1, minlength=len(coloring.names) + 1).tolist()
    rows = [
        ROW.format(shade(coloring, n, mode), html.escape(plain(name, 60)), counts[n + 1])
        for n, name in enumerate(coloring.names)
    ]
    if counts[0]:
        rows.append(ROW.format(NOWHERE[mode], "none", counts[0]))
    st.html(f"<div style='margin-top:.5rem'>{''.join(rows)}</div>")


def _show_scale(coloring: Coloring, days: bool, mode: str) -> None:
    known = coloring.numbers[~np.isnan(coloring.numbers)]
    marks = np.linspace(known.min(), known.max(), 3) if len(known) else []
    said = [date.fromordinal(round(mark)).isoformat() if days else f"{mark:,.6g}" for mark in marks]
    spans = "".join(f"<span>{mark}</span>" for mark in said)
    missing = len(coloring.numbers) - len(known)
    below = ROW.format(NOWHERE[mode], "none", missing) if missing else ""
    st.html(BAR.format(html.escape(plain(coloring.title, 60)), ",".join(SCALE), spans) + below)
