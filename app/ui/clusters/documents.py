"""The documents of a taxonomy's group: listed or searched, chosen in a table, and moved or locked in one edit."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import streamlit as st

from ....indexer.store.kinds import TAXONOMY
from ....indexer.wording import counted
from ....pipelines.taxonomy import Taxonomy, TaxonomyGroup
from ...api import Collection
from ..page import is_digest, shortened
from .cards import filter_of

LISTED, SHORT = 500, 160
"""Documents in a table, and the characters of their texts."""
WEAK = " weak"
NONE = "none"
"""Where documents of no group are."""
MOVED = "Documents that you move are locked in their new group. One Undo moves all of them back."
Edit = Callable[..., None]


def show_documents(collection: Collection, found: Taxonomy, group: TaxonomyGroup, edit: Edit) -> None:
    """Let documents of a group be chosen, and moved to another group or locked in this one."""
    under = any(each.parent == group.number for each in found.groups)
    what = "Search in this group and those under it" if under else "Search in this group"
    query = st.text_input(what, key=f"tax_find_{group.number}", placeholder="late parcels").strip()
    rows = _hits(collection, found, group, query) if query else _members(collection, found, group)
    if not rows:
        st.text("Nothing found." if query else "No document is directly in this group.")
        return
    ids = [row["id"] for row in rows]
    table = f"tax_documents_{sha256(repr(ids).encode()).hexdigest()[:16]}"  # other rows begin with none chosen
    chosen = [ids[place] for place in _chosen(rows, table)]
    _offer_all(rows, table, "hit" if query else "document")
    places = {each.path: each.number for each in found.groups if each.number != group.number} | {"no group": NONE}
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    to = left.selectbox("Move to", list(places), key="tax_members_to", help=MOVED)
    many = counted(len(chosen), "document")
    if right.button(
        f"Move {many}" if chosen else "Move", type="primary", key="tax_members_do", disabled=not chosen, width="stretch"
    ):
        edit(f"Moved {many}", "move", ids=chosen, to=places[to])
    if chosen and st.button(f"Lock {many} here", key="tax_members_lock"):
        edit(f"Locked {many}", "lock", ids=chosen)


def _members(collection: Collection, found: Taxonomy, group: TaxonomyGroup) -> list[dict[str, Any]]:
    """Return a row for each document directly in a group, the best matches first."""
    members = collection.members(found.name, group.number, kind=TAXONOMY, k=LISTED)
    if len(members) < group.documents:
        st.caption(f"The first {len(members):,} of {counted(group.documents, 'document')}. Search to see others.")
    return [{"document": _line(one.title, one.text), "id": one.id} for one in members]


def _hits(collection: Collection, found: Taxonomy, group: TaxonomyGroup, query: str) -> list[dict[str, Any]]:
    """Return a row for each document that a search finds in a group and those under it, the best first."""
    inside = filter_of(TAXONOMY.column(found.name), group.number)
    hits = collection.search(query, k=LISTED, where=inside, collapse=False)  # each copy is a document to move
    if len(hits) == LISTED:
        st.caption(f"The best {LISTED:,} hits.")
    return [
        {"relevance": hit.relevance_shown + (WEAK if hit.weak else ""), "document": _line(hit.title, hit.text),
         "id": hit.id}
        for hit in hits
    ]  # fmt: skip


def _line(title: str, text: str) -> str:
    return shortened(" ".join(f"{title} {text}".split()), SHORT)


def _chosen(rows: Sequence[dict[str, Any]], key: str) -> list[int]:
    """Show a table in which rows can be ticked, and return the places of those that are."""
    named = not all(is_digest(row["id"]) for row in rows)
    order = [name for name in rows[0] if named or name != "id"]
    event: Any = st.dataframe(
        rows, key=key, hide_index=True, height="content" if len(rows) < 8 else 320, column_order=order,
        column_config={"document": st.column_config.TextColumn(width="large")},
        on_select="rerun", selection_mode="multi-row",
    )  # fmt: skip
    return sorted(event.selection.rows)


def _offer_all(rows: Sequence[dict[str, Any]], key: str, what: str) -> None:
    """Offer to tick all rows of the table at once, without weak hits: a search by meaning finds some for any query."""
    sure = [place for place, row in enumerate(rows) if not row.get("relevance", "").endswith(WEAK)]
    if len(sure) > 1:
        which = (
            f"all {len(sure):,} {what}s" if len(sure) == len(rows) else f"the {len(sure):,} {what}s that are not weak"
        )
        st.button(f"Choose {which}", key="tax_members_all", on_click=_choose, args=(key, sure))


def _choose(key: str, places: list[int]) -> None:
    st.session_state[key] = {"selection": {"rows": places}}
