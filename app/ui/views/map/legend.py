"""What the colours stand for, beside the map."""

import html

import numpy as np
import streamlit as st

from .....pipelines.plots.colors import Coloring
from .....pipelines.plots.text import plain
from .figure import NOWHERE, shade

ROW = (
    "<div style='display:flex;gap:.5rem;align-items:baseline;font-size:.85rem'>"
    "<span style='flex:none;width:.7rem;height:.7rem;border-radius:50%;background:{0}'></span>"
    "<span style='flex:1;overflow:hidden;text-overflow:ellipsis;white-space:nowrap'>{1}</span>"
    "<span style='flex:none;opacity:.7;font-variant-numeric:tabular-nums'>{2:,}</span></div>"
)


def show_legend(coloring: Coloring, mode: str) -> None:
    """Show each group's colour, name and number of points; numbers have their scale on the map."""
    if len(coloring.numbers):
        return
    counts = np.bincount(coloring.codes + 1, minlength=len(coloring.names) + 1).tolist()
    rows = [
        ROW.format(shade(coloring, n, mode), html.escape(plain(name, 60)), counts[n + 1])
        for n, name in enumerate(coloring.names)
    ]
    if counts[0]:
        rows.append(ROW.format(NOWHERE[mode], "none", counts[0]))
    st.html(f"<div style='margin-top:.5rem'>{''.join(rows)}</div>")
