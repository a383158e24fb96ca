"""Two groups, or two runs, side by side."""

from typing import Any

import streamlit as st

from .....indexer.runs import Item, Run
from .....indexer.wording import counted
from .....pipelines.compare import Contrast, RunComparison, compare_filters, compare_runs
from ....api import Collection
from ...generation import stamp
from ...plain import chips, show_text
from ...ways_on import empty
from .change import options_of

SHORT = 300
NMI = "Normalised mutual information: 1 is the same. Chance gives more than 0, and the more, the more groups there are."
SAMPLE = 1_000
"""Documents of each side that terms are counted in."""


def show_compare(collection: Collection, runs: list[Run], run: Run, items: list[Item]) -> None:
    """Show two groups of a run side by side, and how far another run agrees."""
    groups = options_of(items)
    if len(groups) < 2:
        empty("Nothing to compare", "This run has fewer than two groups.")
        return
    names = list(groups)
    left, right = st.columns(2)
    first = left.selectbox("One group", names, key="one", bind="query-params")
    second = right.selectbox("Another", names, index=1, key="other", bind="query-params")
    if first == second:
        st.info("Choose two different groups.")
    else:
        key = (*stamp(collection), run.number, run.created)
        _side_by_side(
            collection, _contrast(collection, run.kind, run.name, groups[first], groups[second], key), first, second
        )
    others = [f"{other.kind}:{other.name}" for other in runs if other.number != run.number]
    if others:
        st.subheader("Against another run", anchor=False)
        chosen = st.selectbox("Run to compare with", others, key="against", bind="query-params")
        other = next(each for each in runs if f"{each.kind}:{each.name}" == chosen)
        _two_runs(_comparison(collection, run.name, other.name, run.kind if run.kind == other.kind else None,
                              (*stamp(collection), run.number, other.number)))  # fmt: skip


@st.cache_data(show_spinner="Comparing …", max_entries=32)
def _contrast(_collection: Collection, kind: str, run: str, one: int, two: int, key: tuple[Any, ...]) -> Contrast:
    del key
    quoted = f"{kind}:{run}".replace('"', '""')
    return compare_filters(_collection, [f'"{quoted}" = {number}' for number in (one, two)], SAMPLE)


@st.cache_data(show_spinner="Comparing …", max_entries=32)
def _comparison(_collection: Collection, one: str, two: str, kind: Any, key: tuple[Any, ...]) -> RunComparison:
    del key
    return compare_runs(_collection, one, two, kind)


def _side_by_side(collection: Collection, found: Contrast, *names: str) -> None:
    st.caption(f"Cosine of the two means: {found.similarity:.2f}. Terms tell one group from the other.")
    for cell, side, name in zip(st.columns(2), found.sides, names, strict=True):
        with cell.container(border=True, gap="small"):
            show_text(name)
            show_text(counted(side.documents, "document"), small=True)
            chips((term, f"{score:.1f}") for term, score in side.terms[:12])
            with collection.view() as view:
                numbers = [number for key in side.examples[:3] if (number := view.document_number(key)) is not None]
                for document in view.documents(numbers).values():
                    text = f"{document.title}\n{document.text}".strip()
                    show_text(text if len(text) <= SHORT else text[:SHORT] + " …", small=True)


def _two_runs(found: RunComparison) -> None:
    cells = st.columns(3)
    cells[0].metric("Documents in both", f"{found.documents:,}")
    cells[1].metric("NMI", f"{found.nmi:.2f}", help=NMI)
    cells[2].metric("ARI", f"{found.ari:.2f}", help="Adjusted Rand index: 1 is the same, 0 is what chance gives.")
    table = [
        {"what": what, "group": f"{change.number} {change.name}", "documents": change.size,
         "parts": ", ".join(f"{share:.0%} {number} {name}" for number, name, share in change.parts)}
        for what, changes in (("split", found.split), ("merged", found.merged)) for change in changes
    ]  # fmt: skip
    if table:
        st.dataframe(table, hide_index=True)
    else:
        st.text(f"No group of {found.runs[0]} is split or merged in {found.runs[1]}.")
