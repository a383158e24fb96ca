"""Cards of clusters and topics, and how to change them: rename, merge, update, delete."""

import html

import streamlit as st

from ....indexer.store.kinds import CLUSTER, TAXONOMY
from ....indexer.store.runs import Item, Run
from ....indexer.wording import counted
from ...api import Collection
from ..jobs.panel import NO_NAME, free_name, may_start, start
from ..page import (
    chips,
    escape_markdown,
    link,
    popover,
    sentences,
    shortened,
    show_text,
    shown_score,
    shut_popovers,
    submitted,
)  # fmt: skip
from ..workspace import Workspace


def show_change(shelf: Workspace, collection: Collection, run: Run, items: list[Item], running: bool) -> None:
    """Show what can be changed, each behind a button."""
    idle = may_start(running)
    with st.container(horizontal=True):
        with popover("Rename", "rename", icon=":material/edit:"), sentences():
            _rename(collection, run, items)
        with popover("Merge", "merge", icon=":material/merge:", disabled=not idle), sentences():
            _merge(shelf, collection, run, items)
        update = run.kind.update
        newer = len(collection) - run.documents if update and not run.parameters.get("where") else 0
        if newer > 0 and st.button(
            f"Add {counted(newer, 'new document')}", icon=":material/update:", disabled=not idle
        ):
            with sentences():
                start(shelf, collection, f"Add new documents to '{run.name}'", *update, run.name)
        _taxonomy_button(collection, run)
        with popover("Delete", "delete", icon=":material/delete:"), sentences():
            st.text(f"Delete the {run.kind} run {run.name}? The documents are not changed.")
            if st.button("Delete", type="primary", key="delete_run"):
                collection.delete_run(run.name, kind=run.kind)
                shut_popovers()
                st.rerun()


KEEP = "A tree of groups that you can edit. Your edits stay when documents are added, and you can undo them."


def _taxonomy_button(collection: Collection, run: Run) -> None:
    """Offer to make a taxonomy of a run, under a free name; ask first if there is one already."""
    known = [one.name for one in collection.uncounted_runs(TAXONOMY)]
    name = free_name(str(TAXONOMY), known)
    icon = ":material/account_tree:"
    if not known:
        if st.button("Make a taxonomy", icon=icon, key="make_taxonomy", help=KEEP):
            with sentences():
                _make_taxonomy(collection, run, name)
        return
    with popover("Make a taxonomy", "taxonomy", icon=icon, help=KEEP), sentences():
        st.text(
            f"This makes another taxonomy, '{name}'. Your edits in other taxonomies stay there and are not copied. "
            f"Afterwards, commands use '{name}' unless you name another taxonomy."
        )
        if st.button(f"Make {escape_markdown(name)}", type="primary", key="make_taxonomy"):
            shut_popovers()
            _make_taxonomy(collection, run, name)


def _make_taxonomy(collection: Collection, run: Run, name: str) -> None:
    """Make a taxonomy of a run, and show it."""
    collection.make_taxonomy(run.name, name, kind=str(run.kind), by="web UI")
    st.session_state["_run"] = TAXONOMY.column(name)
    st.rerun()


def options_of(items: list[Item]) -> dict[str, int]:
    """Return the numbers of groups by what a list shows of them."""
    return {f"{item.number} {item.name}": item.number for item in items if item.number >= 0}


def _rename(collection: Collection, run: Run, items: list[Item]) -> None:
    groups = options_of(items)
    whole = f"the whole run {run.name}"
    which = st.selectbox("What", [*groups, whole], key="rename_what")
    name = st.text_input("New name", key="rename_to")
    if submitted("Rename", "" if name.strip() else NO_NAME, type="primary", key="rename_do"):
        number = groups.get(which)
        collection.rename_run(run.name, name.strip(), kind=run.kind, item=number)
        if number is None:
            st.session_state["_run"] = run.kind.column(name.strip())
        st.toast(f"Renamed to {escape_markdown(name.strip())}")
        shut_popovers()
        st.rerun()


FINAL = (
    "You cannot split merged clusters again, and their names are lost. To be able to undo a merge, make a taxonomy of "
    "the run and merge there."
)
REVERSIBLE = "You can split merged topics again under *hierarchy*. They get their names back."


def _merge(shelf: Workspace, collection: Collection, run: Run, items: list[Item]) -> None:
    groups = options_of(items)
    chosen = st.multiselect(
        "Groups to merge", list(groups), key="merge_which", help="The result gets the number of the first one."
    )
    numbers = ",".join(str(groups[name]) for name in chosen)
    st.caption(FINAL if run.kind is CLUSTER else REVERSIBLE)
    if st.button("Merge", type="primary", key="merge_do", disabled=len(chosen) < 2):
        what = (run.name, "--kind", run.kind, "--merge", numbers)
        start(shelf, collection, f"Merge {len(chosen)} groups of '{run.name}'", "runs", *what)


PAGE = 9
EXAMPLES = 3
SHORT = 220
ORDERS = {
    "size": "largest first",
    "number": "by number",
    "cohesion": "most cohesive first",
    "stability": "most stable first",
}


@st.fragment
def show_group_cards(collection: Collection, run: Run, items: list[Item]) -> None:
    """Show a page of cards, in an order or as they answer a query."""
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    query = left.text_input("Find groups for a query", key="q", bind="query-params", placeholder="late parcels")
    known = [name for name in ORDERS if name in ("size", "number") or any(item.data.get(name) for item in items)]
    order = right.selectbox("Order", known, format_func=ORDERS.__getitem__, key="order", disabled=bool(query.strip()))
    with sentences():
        near = _near(collection, run, items, query) if query.strip() else None
        found = [(item, None) for item in _ordered(items, order)] if near is None else near
        pages = max(1, -(-len(found) // PAGE))
        key = f"page {run.kind.column(run.name)} {run.created}"  # another run begins on its first page
        page = min(st.session_state.get(key, 1), pages)
        shown = found[(page - 1) * PAGE : page * PAGE]
        for start in range(0, len(shown), 3):
            for cell, (item, cosine) in zip(st.columns(3), shown[start : start + 3], strict=False):
                with cell.container(border=True, height="stretch", gap="small"):
                    _card(collection, run, item, cosine)
        if pages > 1:
            st.pagination(pages, key=key)


def _ordered(items: list[Item], order: str) -> list[Item]:
    """Return items in an order, outliers last."""
    if order == "number":
        return sorted(items, key=lambda item: (item.number < 0, item.number))
    return sorted(items, key=lambda item: (item.number < 0, -(item.data.get(order) or 0), item.number))


def _near(collection: Collection, run: Run, items: list[Item], query: str) -> list[tuple[Item, float | None]]:
    if run.kind is CLUSTER:
        now = {item.number: item.data for item in items}  # the run keeps the sizes that its groups had at first
        near = collection.clusters_near(query, run.name, PAGE)
        return [(Item(item.number, item.name, now.get(item.number, item.data)), cosine) for item, cosine in near]
    topics = collection.topic_run(run.kind.column(run.name) if run.kind.part else run.name)
    return [
        (Item(topic.number, topic.name, topic.to_dict() | {"terms": [list(pair) for pair in topic.terms]}), cosine)
        for topic, cosine in topics.search(query, PAGE)
    ]


def _card(collection: Collection, run: Run, item: Item, cosine: float | None) -> None:
    data = item.data
    size = data.get("size", 0)
    said = f"{counted(size, 'document')} · {size / max(run.documents, 1):.1%}"
    said += "".join(
        f" · {name} {shown_score(data[name])}" for name in ("cohesion", "stability") if data.get(name) is not None
    )
    said += f" · name accuracy {data['name_accuracy']:.2f}" if data.get("name_accuracy") is not None else ""
    said += f" · cosine {shown_score(cosine)}" if cosine is not None else ""
    number = "" if item.number < 0 else f"<span style='opacity:.55'>{item.number}</span> "
    name = f"<span dir='auto'>{html.escape(item.name)}</span>"
    st.html(f"<div style='font-weight:600;overflow-wrap:anywhere'>{number}{name}</div>")
    show_text(said, small=True)
    terms = [str(term) for term, _ in data.get("terms", [])[:8]]
    if terms:
        chips(("", term) for term in terms)
    with st.expander("Documents"):
        _documents(collection, run, item)


def _documents(collection: Collection, run: Run, item: Item) -> None:
    for title, text in _examples(collection, run, item):
        if title.strip():
            show_text(title)
        show_text(shortened(text, SHORT), small=True)
    column = run.kind.column(run.name)
    link("search", "Search in this group", where=filter_of(column, item.number))
    link("map", "Show on the map", color=column)


def filter_of(column: str, number: int) -> str:
    """Return the filter that the documents of a group pass."""
    return f'"{column.replace(chr(34), chr(34) * 2)}" = {number}'


def _examples(collection: Collection, run: Run, item: Item) -> list[tuple[str, str]]:
    """Return title and text of the documents that stand for a group: those that the run names, as far as they exist."""
    ids = item.data.get("representatives", [])[:EXAMPLES]
    if not ids:
        surest = collection.members(run.name, item.number, kind=run.kind, k=EXAMPLES)
        return [(each.title, each.text) for each in surest]
    found = collection.documents(ids)
    return [(found[id].title, found[id].text) for id in ids if id in found]
