"""Beside the hits: where they lie on the map, which choices of the metadata they hold, and their export."""

import streamlit as st

from .....pipelines.facets import choices_among
from .....pipelines.hit_file import to_csv, to_jsonl
from .....pipelines.results import Results
from ....api import Collection
from ...plain import escape_markdown
from ...work import name_of
from .asking import WIDE, Asked
from .filters import choose, chosen_of, facets_of, shown_value
from .found import all_of
from .places import show_places

MOST = 1_000
"""Hits of an export."""
SHOWN = 8
FACETS = 6
LONGEST = 20
"""Characters of a choice, so that its count is not cut off."""


def show_aside(collection: Collection, asked: Asked, every: Results) -> None:
    """Draw the column beside the hits."""
    show_places(collection, asked, every)
    _show_facets(collection, every)
    _show_export(collection, asked)


def _show_facets(collection: Collection, every: Results) -> None:
    known = facets_of(collection)
    with collection.view() as view:
        counted = choices_among(view, [hit.id for hit in every], known)
    shown = [facet for facet in known if len(counted.get(facet.name, ())) > 1 or chosen_of(collection, facet)]
    if shown:
        st.caption(f"Among the best {len(every)} hits" if len(every) >= WIDE else "Among these hits")
    for facet in shown[:FACETS]:
        st.markdown(f"**{escape_markdown(facet.name)}**")
        held = chosen_of(collection, facet)
        with st.container(horizontal=True, gap="xsmall"):
            for value, count in counted.get(facet.name, [])[:SHOWN]:
                st.button(
                    f"{escape_markdown(_short(shown_value(value)))} · {count:,}", key=f"facet:{facet.name}:{value}",
                    on_click=choose, args=(collection, facet, value),
                    type="primary" if value in held else "secondary",
                )  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _show_export(collection: Collection, asked: Asked) -> None:
    st.caption(f"Export the best hits, {MOST:,} at most")
    name = f"{name_of(collection)}-hits"
    with st.container(horizontal=True):
        for suffix, write in (("csv", to_csv), ("jsonl", to_jsonl)):
            st.download_button(
                suffix.upper(), lambda write=write: write(all_of(collection, asked, MOST)), f"{name}.{suffix}",
                mime="text/csv" if suffix == "csv" else "application/jsonl", key=f"export_{suffix}",
                on_click="ignore", icon=":material/download:",
            )  # fmt: skip
