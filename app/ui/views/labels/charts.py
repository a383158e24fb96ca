"""Bars of documents by label."""

import html
from collections.abc import Mapping

import streamlit as st

BAR = (
    "<div style='display:grid;grid-template-columns:minmax(6rem,14rem) 1fr 9rem;gap:.75rem;align-items:center;"
    "font-size:.9rem;margin:.15rem 0'>"
    "<span style='overflow:hidden;text-overflow:ellipsis;white-space:nowrap'>{0}</span>"
    "<span style='background:rgba(128,128,128,.15);border-radius:3px'><span style='display:block;height:.8rem;"
    "border-radius:3px;background:var(--st-primary-color,#0f6e84);width:{1:.1f}%'></span></span>"
    "<span style='text-align:right;font-variant-numeric:tabular-nums'>{2:,} · {3:.1%}</span></div>"
)
MOST = 40
"""Bars that are drawn, the longest."""


def show_counts(counts: Mapping[str, int], total: int) -> None:
    """Show how many of `total` documents each label has, the most frequent first."""
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    longest = max((count for _, count in ranked), default=0) or 1
    bars = (
        BAR.format(html.escape(name), 100 * count / longest, count, count / max(total, 1))
        for name, count in ranked[:MOST]
    )
    st.html("".join(bars))
    if len(ranked) > MOST:
        st.caption(f"and {len(ranked) - MOST:,} more labels")
