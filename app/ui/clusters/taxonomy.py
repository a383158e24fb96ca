"""A taxonomy on the page Clusters and topics: its tree, and the edits of the groups that are chosen."""

from collections.abc import Callable, Iterator
from typing import Any

import streamlit as st

from ....indexer.store.kinds import TAXONOMY
from ....indexer.store.runs import Run
from ....indexer.wording import counted
from ....pipelines.taxonomy import LogEntry, Taxonomy, TaxonomyGroup
from ...api import Collection
from ..downloads import for_spreadsheets, show_groups_download
from ..jobs.panel import NO_NAME, may_start, start
from ..page import chips, empty, escape_markdown, popover, sentences, shortened, show_text, shut_popovers, submitted
from ..workspace import Workspace, may_write
from .documents import Edit, show_documents

BY = "web UI"
"""Who edits, in the log."""
TOP = "top"
FORMS = {"JSON (complete)": "json", "CSV (groups)": "csv", "CSV (documents)": "documents", "SKOS (Turtle)": "ttl"}
SUFFIXES = {"documents": "csv"}


def show_taxonomy(shelf: Workspace, collection: Collection, run: Run, running: bool) -> None:
    """Show a taxonomy: what can be done with it, its tree, and the groups that are chosen."""
    found = collection.taxonomy(run.name)
    log = collection.taxonomy_log(run.name, 20)
    if may_write():
        _whole(shelf, collection, found, log, running)
    if found.groups:
        show_groups_download(collection, run, "taxonomy")
    if not found.groups:
        empty(
            "No groups yet",
            "Add a group here, or open a cluster or topic run and choose Make a taxonomy.",
            ":material/account_tree:",
        )
    else:
        st.dataframe(_rows(found), hide_index=True, height="content" if len(found.groups) < 15 else 460)
    if may_write():
        _edits(collection, found)


def _rows(found: Taxonomy) -> list[dict[str, Any]]:
    """Return the rows of the tree, without columns that are empty; wide spaces stand for each level."""
    rows = [
        {
            "number": group.number, "documents": group.total,  # before the names, which fill the table of a phone
            "group": "\u2003\u2003" * group.level + group.name,
            "state": ", ".join(word for word in ("locked", "proposed") if getattr(group, word)),
            "rule": group.rule, "description": group.description,
        }
        for group in found.groups
    ]  # fmt: skip
    used = [name for name in rows[0] if any(row[name] != "" for row in rows)]
    return [{name: row[name] for name in used} for row in rows]


def _whole(shelf: Workspace, collection: Collection, found: Taxonomy, log: list[LogEntry], running: bool) -> None:
    """Show what can be done with the whole taxonomy."""
    idle = may_start(running)
    last = next((entry for entry in log if not entry.undone and entry.operation not in ("undo", "make")), None)
    with st.container(horizontal=True):
        help_ = f"Undo: {last.said}" if last else "There is nothing to undo."
        if st.button(
            "Undo", icon=":material/undo:", key="tax_undo", disabled=last is None, help=escape_markdown(help_)
        ):
            _do("Undone", lambda: collection.undo_taxonomy(1, found.name, by=BY))
        more = f" {counted(found.unknown, 'new document')}" if found.unknown else ""
        if st.button(f"Add{more or ' new documents'}", icon=":material/update:", key="tax_update", disabled=not idle):
            with sentences():
                start(shelf, collection, f"Update the taxonomy '{found.name}'", "taxonomy update", "--name", found.name)
        if st.button("Refit", icon=":material/model_training:", key="tax_refit", disabled=not idle, help=REFIT):
            with sentences():
                start(shelf, collection, f"Refit the taxonomy '{found.name}'", "taxonomy refit", "--name", found.name)
        with st.popover("Add a group", icon=":material/add:"), sentences():
            _add(collection, found)
        with st.popover("Export", icon=":material/download:"), sentences():
            _export(collection, found)
        with st.popover("Log", icon=":material/history:"):
            for entry in log:
                undone = " (undone)" if entry.undone else ""
                show_text(f"{entry.number} · {entry.at[:16].replace('T', ' ')} · {entry.by} · {entry.said}{undone}",
                          small=True)  # fmt: skip
        with popover("Rename", "tax_rename", icon=":material/edit:"), sentences():
            _rename(collection, found)
        with popover("Delete", "tax_delete", icon=":material/delete:"), sentences():
            _delete(collection, found)


REFIT = "Learn the groups again from all documents. Locked groups and documents do not change. Numbers and names stay."


def _do(said: str, edit: Callable[[], object]) -> None:
    """Make an edit, and show the page again."""
    with sentences():
        changed = edit()
        st.session_state.pop(SEEN, None)  # what is different now is this session's own edit
        shut_popovers()
        st.toast(said if changed else "Nothing to change: the taxonomy is already like this.")
        st.rerun()


def _add(collection: Collection, found: Taxonomy) -> None:
    name = st.text_input("Name", key="tax_add_name")
    places = {"the top level": TOP} | {group.path: group.number for group in found.groups}
    to = places[st.selectbox("Add under", list(places), key="tax_add_to")]
    if submitted("Add", "" if name.strip() else NO_NAME, type="primary", key="tax_add_do"):
        _do("Added", lambda: collection.edit_taxonomy("add", found.name, by=BY, name=name, to=to))


def _rename(collection: Collection, found: Taxonomy) -> None:
    name = st.text_input("New name of the taxonomy", found.name, key=f"tax_rename_{found.name}").strip()
    same = "Change the name first." if name == found.name else ""
    if submitted("Rename", same if name else NO_NAME, type="primary", key="tax_rename_do"):
        collection.rename_run(found.name, name, kind=TAXONOMY)
        st.session_state["_run"] = TAXONOMY.column(name)
        shut_popovers()
        st.toast(f"Renamed to {escape_markdown(name)}")
        st.rerun()


def _delete(collection: Collection, found: Taxonomy) -> None:
    """Say what is lost with a taxonomy, and delete it once that is confirmed."""
    own = [f"{counted(len(found.groups), 'group')} with names, descriptions and rules"]
    own += [f"the locks of {counted(found.locked, 'document')}"] if found.locked else []
    own += [f"the log of {counted(found.edits - 1, 'edit')}"] if found.edits > 1 else []
    st.text(f"Delete the taxonomy {found.name}? You cannot undo this. You will lose {', '.join(own)}.")
    st.text("The documents are not changed. To keep a copy, use Export with the format JSON first.")
    if st.button("Delete the taxonomy", type="primary", key="tax_delete_do"):
        collection.delete_run(found.name, kind=TAXONOMY)
        shut_popovers()
        st.toast(f"Deleted {escape_markdown(found.name)}")
        st.rerun()


def _export(collection: Collection, found: Taxonomy) -> None:
    form: Any = FORMS[st.selectbox("Format", list(FORMS), key="tax_form")]
    st.download_button(
        "Download",
        lambda: for_spreadsheets(
            collection.export_taxonomy(form, found.name).encode(), f".{SUFFIXES.get(form, form)}"
        ),
        on_click="ignore",
        file_name=f"{found.name}.{SUFFIXES.get(form, form)}", key="tax_download",
    )  # fmt: skip


def _edits(collection: Collection, found: Taxonomy) -> None:
    """Let groups be chosen and edited."""
    options = {f"{group.number} {group.name}": group for group in found.groups}
    changed = _changed_elsewhere(found)
    if edited := st.session_state.pop(EDITED, None):  # under the names that they have now
        st.session_state["tax_groups"] = [shown for shown, group in options.items() if group.number in edited]
    chosen = st.multiselect("Groups to edit", list(options), key="tax_groups", placeholder="Choose one or more")
    groups = [options[one] for one in chosen]
    st.session_state[SEEN] = found.name, groups
    if not groups:
        return
    numbers = [group.number for group in groups]

    def edit(said: str, operation: Any, *more: tuple[Any, dict[str, Any]], **options: Any) -> None:
        if not changed:  # else the click was meant for groups as they were; the page says what they are now
            st.session_state[EDITED] = numbers
            edits = [(operation, options), *more]
            made = (collection.edit_taxonomy(one, found.name, by=BY, **given) for one, given in edits)
            _do(said, lambda: [entry for entry in made if entry])

    with st.container(horizontal=True):
        with st.popover("Move under", icon=":material/drive_file_move:"), sentences():
            _move(found, groups, edit)
        if len(groups) > 1:
            with popover("Merge", "tax_merge", icon=":material/merge:"), sentences():
                _merge(groups, edit)
        locked = all(group.locked for group in groups)
        icon = ":material/lock_open:" if locked else ":material/lock:"
        if st.button("Unlock" if locked else "Lock", icon=icon, key="tax_lock"):
            edit("Unlocked" if locked else "Locked", "unlock" if locked else "lock", groups=numbers)
        if st.button("Remove", icon=":material/delete:", key="tax_remove", help=REMOVE):
            edit("Removed", "remove", groups=numbers)
        if all(group.proposed for group in groups):
            if st.button("Accept", type="primary", icon=":material/check:", key="tax_accept"):
                edit("Accepted", "accept", groups=numbers)
            if st.button("Reject", icon=":material/close:", key="tax_reject", help=REJECT):
                edit("Rejected", "reject", groups=numbers)
    if len(groups) == 1:
        _one(collection, found, groups[0], edit)


SEEN, CHANGED, EDITED = "_taxonomy_seen", "_taxonomy_changed", "_taxonomy_edited"
"""The taxonomy and the chosen groups that this session saw last; the taxonomy and what others have done to them; the
numbers of the groups that this session has just edited, which stay chosen."""
ELSEWHERE = "Another tab, another person or a job changed this taxonomy. Nothing was saved here."


def _changed_elsewhere(found: Taxonomy) -> bool:
    """Say what others have done to the chosen groups, and return whether this is still to be confirmed.

    Leaving a text box and clicking a button can be two runs of the page, so a message of the first one alone would not
    be seen, and the second one would write over what others did.
    """
    taxonomy, said = st.session_state.get(CHANGED, ("", []))
    said = [*(said if taxonomy == found.name else []), *_news(found)]
    st.session_state[CHANGED] = found.name, said
    if not said:
        return False
    with st.container(border=True):
        st.warning(ELSEWHERE)
        for sentence in said:
            st.text(sentence)
        st.button("OK, edit it as it is now", key="tax_changed", on_click=st.session_state.pop, args=[CHANGED, None])
    return True


def _news(found: Taxonomy) -> list[str]:
    """Return what has happened to the chosen groups since this session saw them; they stay chosen, typed texts stay.

    The list of groups knows them by their names. Without this, a renamed group would no longer be chosen, and its card
    would go, with the button that was clicked and the text that was typed.
    """
    taxonomy, seen = st.session_state.get(SEEN, ("", []))
    now = {group.number: group for group in found.groups}
    said: list[str] = []
    for old in seen if taxonomy == found.name else ():
        new = now.get(old.number)
        if new is None:
            said.append(f"{old.number} {old.name} is gone: removed or merged.")
            said += [f"You typed: {typed}" for _, typed in _typed(old, old)]
        elif (new.name, new.description, new.rule) != (old.name, old.description, old.rule):
            what = f" is now called {new.name}." if new.name != old.name else ": the description or rule has changed."
            said.append(f"{old.number} {old.name}{what}")
            for box, typed in _typed(old, new):
                st.session_state[box] = typed
    if said:
        chosen = [now[old.number] for old in seen if old.number in now]
        st.session_state["tax_groups"] = [f"{group.number} {group.name}" for group in chosen]
    return said


def _typed(old: TaxonomyGroup, new: TaxonomyGroup) -> Iterator[tuple[str, str]]:
    """Yield the boxes of a group in which something was typed, by their new keys, and the texts."""
    for (stored, before), (_, after) in zip(_boxes(old), _boxes(new), strict=True):
        typed = st.session_state.get(before, stored)
        if typed != stored:
            yield after, typed


def _boxes(group: TaxonomyGroup) -> list[tuple[str, str]]:
    """Return the contents and keys of a group's text boxes: a name that was saved gives a new box, which shows it."""
    name, about = group.name, group.description
    return [(name, f"tax_name_{group.number}_{name}"), (about, f"tax_about_{group.number}_{about}")]


SAVE = "A new name and a new description are two edits: Undo reverts one at a time."
REMOVE = "Documents and the groups under them go to the group above, or to no group. You can undo it."
REJECT = "The group is removed, and its documents go to the nearest other group. You can undo it."


def _move(found: Taxonomy, groups: list[TaxonomyGroup], edit: Edit) -> None:
    own = {group.number for group in groups}
    places = {"the top level": TOP} | {group.path: group.number for group in found.groups if group.number not in own}
    to = st.selectbox("Move under", list(places), key="tax_move_to")
    if st.button("Move", type="primary", key="tax_move_do"):
        edit("Moved", "move", groups=sorted(own), to=places[to])


def _merge(groups: list[TaxonomyGroup], edit: Edit) -> None:
    """Ask which group stays, the highest in the tree if one is under another, and say what the others lose."""
    top = min(groups, key=lambda group: group.level)
    names = {f"{group.number} {group.name}": group for group in groups}
    kept = names[st.selectbox("Group to keep", list(names), groups.index(top), key=f"tax_merge_{list(names)}")]
    others = [group for group in groups if group is not kept]
    lost = [
        f"{group.number} {group.name}: its name"
        + "".join(f", its {what}" for what in ("description", "rule") if getattr(group, what))
        for group in others
    ]
    st.text(f"All documents move to {kept.number} {kept.name}. Unless you undo the merge, this is lost:")
    for line in lost:
        st.text(line)
    if st.button("Merge", type="primary", key="tax_merge_do"):
        edit("Merged", "merge", groups=[kept.number, *(group.number for group in others)])


def _one(collection: Collection, found: Taxonomy, group: TaxonomyGroup, edit: Edit) -> None:
    """Show the card of one group, and what can be edited only of one."""
    with st.container(border=True, gap="small"):
        marks = [word for word in ("locked", "proposed") if getattr(group, word)]
        chips([("", f"{group.path}"), ("documents", f"{group.total:,}"), *(("", mark) for mark in marks)])
        left, right = st.columns([1, 2])
        (stored, name_box), (described, about_box) = _boxes(group)
        name = left.text_input("Name", stored, key=name_box)
        about = right.text_input("Description", described, key=about_box)
        own = [group.number]
        changes: list[tuple[str, dict[str, Any]]] = [
            *([("rename", {"groups": own, "name": name})] if name.strip() != group.name else []),
            *([("describe", {"groups": own, "description": about})] if about.strip() != group.description else []),
        ]
        with st.container(horizontal=True):
            same = "" if changes else "Change the name or the description first."
            if submitted("Save", same if name.strip() else NO_NAME, key="tax_name_do", help=SAVE):
                (what, given), *more = changes
                edit("Saved", what, *more, **given)
            with st.popover("Split", icon=":material/call_split:"), sentences():
                _split(group, edit)
            with st.popover("Rule", icon=":material/rule:"), sentences():
                _rule(group, edit)
        for text in group.examples[:2]:
            show_text(shortened(text, 200), small=True)
        with st.expander("Documents"), sentences():
            show_documents(collection, found, group, edit)


def _split(group: TaxonomyGroup, edit: Edit) -> None:
    k = st.number_input("Number of parts", 2, 50, 2, key="tax_split_k")
    if st.button("Split", type="primary", key="tax_split_do"):
        edit("Split", "split", groups=[group.number], k=int(k))


def _rule(group: TaxonomyGroup, edit: Edit) -> None:
    st.caption("Documents that pass the filter, or are similar to an example, join this group now and at each update.")
    place = f"{group.number}_{group.rule}"  # other groups, and the rule once it is saved, begin with what is stored
    where = st.text_input("Filter", group.rule_where, key=f"tax_rule_where_{place}", placeholder="stars <= 2")
    said = "Ids of examples, separated by commas"
    ids = st.text_input(said, ", ".join(group.rule_examples), key=f"tax_rule_ids_{place}")
    least = 0.7 if group.rule_near is None else max(0.0, group.rule_near)
    near = st.slider("Minimum cosine to an example", 0.0, 1.0, least, key=f"tax_rule_near_{place}")
    examples = [id.strip() for id in ids.split(",") if id.strip()]
    missing = "" if where.strip() or examples else "Type a filter, or ids of examples."
    if submitted("Save the rule", missing, type="primary", key="tax_rule_do"):
        given = {"where": where.strip() or None, "examples": examples, "near": near}
        edit("Rule saved", "rule", groups=[group.number], **given)
    if group.rule and st.button("Remove the rule", key="tax_rule_none"):
        edit("Rule removed", "rule", groups=[group.number])
