"""`sonde model`: change the model of a collection without starting over."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...indexer.errors import UsageError
from ...indexer.wording import counted, per_second, shown_p, size
from .output import (
    BiencoderDtype,
    CollectionPath,
    Device,
    DocumentPrompt,
    Json,
    QueryPrompt,
    TruncateDim,
    print_json,
    progress,
    say,
    say_notes,
)
from .upkeep import other_model_line

if TYPE_CHECKING:
    from ...indexer.store.models import OtherModel
    from ...pipelines.tune.change import ModelChange
    from ...pipelines.tune.models import ModelComparison
    from ..api import Collection


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("model")(model)


def model(
    collection: CollectionPath,
    to: Annotated[
        str | None, typer.Option("--to", metavar="M", help="The new bi-encoder: a name, a folder, or `static`.")
    ] = None,
    dry: Annotated[bool, typer.Option("--dry-run", help="With --to: embed and compare, but do not switch.")] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="With --to: switch even if searches are, or may be, worse.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Switch back to the previous model.")] = False,
    discard: Annotated[
        bool, typer.Option("--discard", help="Remove embeddings of models that were not switched to.")
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Remove the previous model's embeddings; --undo is then not possible.")
    ] = False,
    dtype: BiencoderDtype = None,
    truncate_dim: TruncateDim = None,
    query_prompt: QueryPrompt = None,
    document_prompt: DocumentPrompt = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Change a collection's model: embed all documents again, compare both models, and switch in one commit.

    You can search and change the collection meanwhile. If the command is stopped, run it again to continue. Both
    models are compared on the collection's judgements or, if there are fewer than 10 judged queries, on queries made
    from its texts. Sonde switches only if the 95 % interval of the difference in nDCG@10, hybrid and dense, rules out a
    loss of more than 0.02. Otherwise it keeps the model, and the exit code is 1; --anyway switches. Documents,
    metadata, tags, judgements, corrections and runs are kept. Without options, it shows the models.

    \b
    Examples:
      sonde model papers.sonde --to static --dry-run
      sonde model papers.sonde --to intfloat/multilingual-e5-small
      sonde model papers.sonde --undo
    """
    from ..api import open as open_collection

    chosen = [name for name, given in _given(to, undo, discard, forget).items() if given]
    if len(chosen) > 1:
        raise UsageError(f"{chosen[0]} cannot be combined with {chosen[1]}")
    settings = {
        "dtype": dtype, "truncate_dim": truncate_dim, "query_prompt": query_prompt, "document_prompt": document_prompt,
    }  # fmt: skip
    if to is None and (dry or anyway or any(value is not None for value in settings.values())):
        raise UsageError("--dry-run, --anyway and model settings need --to: name the new model")
    if dry and anyway:
        raise UsageError("--dry-run cannot be combined with --anyway: one never switches, the other always does")
    opened = open_collection(collection, device=device)
    if discard or forget:
        _print_removed(opened.discard_model() if discard else opened.forget_model(), json)
    elif not chosen:
        _show(opened, json)
    else:
        with progress(quiet=json) as notify:
            if undo:
                found = opened.undo_model(progress=notify)
            else:
                found = opened.change_model(to, dry_run=dry, anyway=anyway, progress=notify, **settings)  # type: ignore[arg-type]
        print_json(found.to_dict()) if json else _print(found, opened, collection)
        if not found.switched and not dry:
            raise typer.Exit(1)


def _given(to: str | None, undo: bool, discard: bool, forget: bool) -> dict[str, bool]:
    return {"--to": to is not None, "--undo": undo, "--discard": discard, "--forget": forget}


def _show(opened: "Collection", json: bool) -> None:
    """Show the model of a collection and the other models whose embeddings it keeps."""
    found = opened.info()
    if json:
        print_json({"model": found.model_settings, "other_models": list(found.other_models)})
        return
    print(f"model: {found.model}, {found.dimension} dimensions, {found.model_settings['dtype']}")
    for other in found.other_models:
        print(other_model_line(other, found.documents))


def _print_removed(removed: "list[OtherModel]", json: bool) -> None:
    for other in removed:
        if json:
            print_json({"removed": other.to_dict()})
        else:
            print(f"removed the embeddings of {other.spec.name}: {size(other.bytes)}")
    if not removed:
        say("nothing to remove")


def _print(found: "ModelChange", opened: "Collection", named: Path) -> None:
    if found.embedded:
        print(f"embedded {counted(found.embedded, 'passage')} with {found.after} in {found.seconds:,.1f} s")
    if found.comparison:
        _print_comparison(found.comparison)
    say_notes(found.notes)
    if found.switched:
        print(f"{named} now uses {found.after} instead of {found.before}")
        if found.kept:
            print(
                f"the embeddings of {found.before} are kept ({size(found.kept.bytes)}): "
                f"`sonde model {named} --undo` switches back, --forget removes them"
            )
    elif found.comparison and found.comparison.refusal:
        print(f"{named} keeps {found.before}: {found.comparison.refusal}; --anyway switches{_removes(opened)}")
    else:
        print(f"{named} keeps {found.before}: leave out --dry-run to switch{_removes(opened)}")


def _removes(opened: "Collection") -> str:
    """Return how to remove what was embedded; nothing if --undo needs it."""
    others = opened.info().other_models
    return "" if all(other["previous"] for other in others) else ", --discard removes the new embeddings"


def _print_comparison(found: "ModelComparison") -> None:
    before, after = found.before, found.after
    print(f"compared on {found.source}")
    rows = [("", before.model[-24:], after.model[-24:], "difference", "95 % interval", "p")]
    rows += [
        (f"{gain.mode} {gain.measure}", f"{gain.before:.3f}", f"{gain.after:.3f}", f"{gain.difference:+.3f}",
         f"{gain.low:+.3f} to {gain.high:+.3f}", shown_p(gain.p))
        for gain in found.gains
    ]  # fmt: skip
    rows.append(("passages", f"{before.passages:,}", f"{after.passages:,}", "", "", ""))
    rows.append(("dimensions", str(before.dimension), str(after.dimension), "", "", ""))
    rows.append(("size of embeddings", size(before.bytes), size(after.bytes), "", "", ""))
    rows.append(("passages a second", per_second(before.per_second), per_second(after.per_second), "", "", ""))
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        print("  ".join(cells).rstrip())
