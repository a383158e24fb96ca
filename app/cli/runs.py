"""`sonde runs`: the results that a collection stores, and what can be done with one."""

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from ...indexer.errors import UsageError
from ...indexer.store.kinds import CLUSTER, CORRECTION, KINDS, LABEL, MAP, TAXONOMY, TOPIC, TOPIC_KINDS
from ...indexer.wording import counted
from .asking import Yes, ask, is_asked
from .commands import DefaultGroup, NegativeNumbers, group_numbers
from .feedback import correct
from .output import CollectionPath, Device, Json, print_json, progress, quoted, say
from .show_run import Kind, Name, draw, print_breakdown, print_details, show

if TYPE_CHECKING:
    from ...indexer.store.runs import Run
    from ..api import Collection


def register(app: typer.Typer) -> None:
    """Add the group, and the old name of `sonde runs correct`."""
    group = typer.Typer(cls=DefaultGroup, no_args_is_help=True, rich_markup_mode=None)
    group.callback()(_keep_group)
    group.command("list", short_help="List the runs; `list` may be left out.")(list_)
    group.command("show", cls=NegativeNumbers, short_help="Show a run, or one of its groups or labels.")(show)
    group.command("draw", short_help="Draw a map, the tree of topics, or groups over time.")(draw)
    group.command("name", short_help="Rename a run, or one of its groups or labels.")(name)
    group.command("merge", short_help="Merge clusters, or topics.")(merge)
    group.command("split", short_help="Split a merged topic.")(split)
    group.command("update", short_help="Add new documents to clusters, topics, a map or a taxonomy.")(update)
    group.command("correct", short_help="Correct labels, or show the least certain ones.")(correct)
    group.command("delete", short_help="Delete a run.")(delete)
    app.add_typer(group, name="runs")
    app.command("correct", hidden=True)(correct)


def _keep_group() -> None:
    """Show and change the results that a collection stores."""


def list_(
    collection: CollectionPath,
    run: Annotated[
        str | None, typer.Argument(metavar="RUN", help="Show how this run was made, and what it found.")
    ] = None,
    kind: Kind = None,
    rename: Annotated[str | None, typer.Option("--rename", hidden=True)] = None,
    item: Annotated[int | None, typer.Option("--item", hidden=True)] = None,
    by: Annotated[str | None, typer.Option("--by", hidden=True)] = None,
    merge: Annotated[str | None, typer.Option("--merge", hidden=True)] = None,
    delete: Annotated[bool, typer.Option("--delete", hidden=True)] = False,
    json: Json = False,
) -> None:
    """List the runs of a collection: clusters, topics, maps, labels, tags, checks, taxonomies and others.

    `list` may be left out. Runs that were made with a model other than the collection's current one are marked.
    A group is a cluster, a topic or a part of a taxonomy. `sonde runs show` prints the numbers of groups and labels.

    \b
    Examples:
      sonde runs themes.sonde
      sonde runs themes.sonde --kind cluster
      sonde runs show themes.sonde kmeans
      sonde runs show themes.sonde kmeans 0
      sonde runs name themes.sonde kmeans 0 "late deliveries"
      sonde runs merge themes.sonde kmeans 0 2
      sonde runs draw news.sonde topics --to tree.html
      sonde runs delete themes.sonde other
    """
    from ..api import open as open_collection

    if run is None and (rename is not None or item is not None or delete or by is not None):
        raise UsageError("say which run: sonde runs C.sonde RUN")
    if delete and (rename is not None or item is not None):
        raise UsageError("--delete cannot be combined with --rename or --item")
    if by is not None and (delete or rename is not None):
        raise UsageError("--by cannot be combined with --rename or --delete")
    if merge is not None and (run is None or delete or rename is not None or by is not None):
        raise UsageError("--merge needs a RUN, and cannot be combined with --rename, --delete or --by")
    if item is not None and rename is None:
        raise UsageError("--item needs --rename: the new name")
    opened = open_collection(collection)
    if run is None:
        _list(opened.runs(kind), json)
    elif delete:
        _delete(opened, run, kind)
    elif rename is not None:
        _rename(opened, run, rename, kind, item)
    elif merge is not None:
        _merge(opened, run, group_numbers([merge], "--merge"), kind)
    elif by is not None:
        print_breakdown(opened.breakdown(run, by, kind), json)
    else:
        print_details(opened.run(run, kind), json)


def _list(found: "list[Run]", json: bool) -> None:
    for run in found:
        if json:
            print_json(run.to_dict())
        else:
            state = "" if run.complete else "  incomplete"
            state += f"  made with {run.model}" if run.other_model else ""
            documents = counted(run.documents, "document")
            print(f"{run.kind:<8} {run.name:<24} {documents:>20}  {run.created[:16]}{state}")
    if not found:
        say("no runs: make one with `sonde cluster`")


def name(
    collection: CollectionPath,
    run: Name,
    words: Annotated[
        list[str],
        typer.Argument(metavar="[NUMBER] NAME", help="The new name; with a number, that of a group or label."),
    ],
    kind: Kind = None,
) -> None:
    """Rename a run, or one of its clusters, topics or labels.

    \b
    Examples:
      sonde runs name themes.sonde kmeans themes
      sonde runs name themes.sonde kmeans 0 "late deliveries"
    """
    from ..api import open as open_collection

    if len(words) > 2 or (len(words) == 2 and not words[0].isdecimal()):
        raise UsageError(f"{' '.join(words)!r} is not a name: put a name with spaces in quotes")
    if len(words) == 1 and words[0].isdecimal():
        said = f"sonde runs name {quoted(collection)} {quote(run)} {words[0]}"
        raise UsageError(f"give a name for group {words[0]}, as in: {said} NAME")
    item = int(words[0]) if len(words) == 2 else None
    _rename(open_collection(collection), run, words[-1], kind, item)


def _rename(opened: "Collection", run: str, to: str, kind: str | None, item: int | None) -> None:
    opened.rename_run(run, to, kind=kind, item=item)
    say(f"renamed {'the run' if item is None else f'number {item} of'} {run!r} to {to!r}")


def merge(
    collection: CollectionPath,
    run: Name,
    numbers: Annotated[
        list[str] | None,
        typer.Argument(metavar="NUMBER...", help="Groups to merge; the result keeps the first number."),
    ] = None,
    reduce_to: Annotated[
        int | None, typer.Option("--reduce-to", metavar="N", help="Topics: merge similar ones until N are left.")
    ] = None,
    kind: Kind = None,
) -> None:
    """Merge clusters or topics of a run.

    Merged topics can be split again. Merged clusters cannot: to edit with an undo, make a taxonomy of the run with
    `sonde taxonomy C.sonde --from RUN`.

    \b
    Examples:
      sonde runs merge themes.sonde kmeans 0 2
      sonde runs merge news.sonde topics --reduce-to 3
    """
    from ..api import open as open_collection

    if bool(numbers) == (reduce_to is not None):
        raise UsageError("give two or more numbers, or --reduce-to N")
    opened = open_collection(collection)
    if reduce_to is None:
        _merge(opened, run, group_numbers(numbers or [], "NUMBER"), kind)
        return
    _check_topics(opened, run, kind, "--reduce-to")
    with progress() as notify:
        left = opened.topic_run(run, progress=notify).reduce(reduce_to)
    say(f"{run}: {counted(len(left), 'topic')} left")


def _merge(opened: "Collection", name: str, numbers: list[int], kind: str | None) -> None:
    """Merge clusters or topics of a run."""
    details = opened.run(name, kind)
    run = details.run
    if not run.kind.groups:
        known = " and ".join(kind.items for kind in KINDS if kind.groups and not kind.part and not kind.logged)
        raise UsageError(f"{name!r} is a {run.kind} run: {known} can be merged")
    if run.kind.logged:
        said = f"the {run.kind} {name!r} has a log of its edits: merge its groups with `sonde {run.kind} merge`"
        raise UsageError(said)
    if len(set(numbers)) < 2:
        said = f"sonde runs merge {quote(str(opened.path))} {quote(name)} 3 7"
        raise UsageError(f"merging needs two numbers or more, as in: {said}", code="too-few", field="merge")
    if run.kind in TOPIC_KINDS:
        opened.topic_run(run.kind.column(run.name) if run.kind.part else run.name).merge(numbers)
        say(f"merged topics {','.join(map(str, numbers))} of {name!r}")
    else:
        item = opened.merge_clusters(numbers, name)
        moved = sum(each.data["size"] for each in details.items if each.number in {*numbers} - {numbers[0]})
        into = f"cluster {item.number} ({item.name}), which has {counted(item.data['size'], 'document')} now"
        say(f"{counted(moved, 'document')} moved to {into}")


def split(
    collection: CollectionPath,
    run: Name,
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="The topic to split.")],
    kind: Kind = None,
) -> None:
    """Split a merged topic into the topics that it was merged from, or any other topic in two.

    \b
    Examples:
      sonde runs split news.sonde topics 0
    """
    from ..api import open as open_collection

    opened = open_collection(collection)
    _check_topics(opened, run, kind, "split", number)
    found = opened.topic_run(run).split(number)
    say(f"split topic {number} of {run!r}: {counted(len(found), 'topic')} now")


def _check_topics(opened: "Collection", name: str, kind: str | None, what: str, split: int | None = None) -> None:
    run = opened.run(name, kind).run
    if run.kind is not TOPIC:
        said = f"{name!r} is a {run.kind} run: {what} is for topic runs"
        path = quote(str(opened.path))
        if split is not None and run.kind.logged:
            said += f"; split its groups with `sonde {run.kind} split {path} {split} -k 2`"
        elif split is not None and run.kind.groups:
            said += f"; `sonde taxonomy {path} --from {quote(name)}` makes a taxonomy of it, "
            said += f"and `sonde taxonomy split {path} {split} -k 2` splits a group"
        raise UsageError(said)


def update(collection: CollectionPath, run: Name, kind: Kind = None, device: Device = "auto") -> None:
    """Add new documents to a cluster, topic, map or taxonomy run. The documents already in it stay.

    \b
    Examples:
      sonde runs update themes.sonde kmeans
      sonde runs update news.sonde topics
    """
    from ..api import open as open_collection

    with progress() as notify:
        opened = open_collection(collection, device=device)
        chosen = opened.run(run, kind).run
        found = TOPIC if chosen.kind in TOPIC_KINDS else chosen.kind
        if found is CLUSTER:
            updated = opened.update_clusters(run, progress=notify)
            added = f"{counted(updated.added, 'document')} added, {counted(updated.outliers, 'outlier')} among them"
        elif found is TOPIC:
            topics = opened.topic_run(chosen.name, progress=notify)
            added = f"{counted(topics.newer, 'document')} got a topic"
            if topics.newer:
                topics.update()
        elif found is MAP:
            added = f"{counted(opened.update_map(run, progress=notify), 'document')} placed"
        elif found is TAXONOMY:
            added = opened.update_taxonomy(chosen.name, progress=notify).said
        else:
            said = f"{run!r} is a {found} run: only cluster, topic, map and taxonomy runs can be updated"
            advice = f"; for new documents, run `sonde label` again with the same labels, --name {run} and --replace"
            raise UsageError(said + (advice if found is LABEL else ""))
    print(f"{run}: {added}")


def delete(collection: CollectionPath, run: Name, kind: Kind = None, yes: Yes = False) -> None:
    """Delete a run. The documents stay.

    On a terminal, Sonde asks for confirmation if a person made the run: a tag, corrections or an edited taxonomy.

    \b
    Examples:
      sonde runs delete themes.sonde other
    """
    from ..api import open as open_collection

    _delete(open_collection(collection), run, kind, yes)


def _delete(opened: "Collection", name: str, kind: str | None, yes: bool = False) -> None:
    if is_asked(yes):
        run = opened.run(name, kind).run
        if _by_hand(opened, run):
            ask(f"the {run.kind} {run.name!r} was made by hand and cannot be computed again. Delete it?")
    labels = {run.name for run in opened.uncounted_runs(LABEL)}
    opened.delete_run(name, kind=kind)
    say(f"deleted the run {name!r}")
    if name in labels - {run.name for run in opened.uncounted_runs(LABEL)}:
        _say_kept(opened, name)


def _say_kept(opened: "Collection", name: str) -> None:
    """Say that the corrections of a label run that was deleted stay, if there are any."""
    kept = next((run.documents for run in opened.runs(CORRECTION) if run.name == name), 0)
    if kept:
        stay, them = ("is", "it") if kept == 1 else ("are", "them")
        forget = f"sonde runs delete {quote(str(opened.path))} {quote(name)} --kind {CORRECTION}"
        said = f"{counted(kept, 'correction')} of {name!r} {stay} kept for the next labelling with this name"
        say(f"{said}; to delete {them}: {forget}")


def _by_hand(opened: "Collection", run: "Run") -> bool:
    if run.kind.logged:
        return opened.taxonomy_log(run.name, 1)[0].number > 1
    return not run.kind.embedded
