"""Change the model of a collection: embed all documents again, compare both models, switch or undo."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ...indexer.encoder import Encoder, ModelSpec
from ...indexer.errors import SondeError
from ...indexer.progress import Notify, silent
from ...indexer.sharded import open_stored
from ...indexer.store.collection import StoredCollection
from ...indexer.store.late import is_wanted
from ...indexer.store.models import OtherModel, other_models
from ...indexer.store.runs import list_runs
from ...indexer.upkeep.model import Beside, Load, changing
from ...indexer.wording import counted
from ..evaluate.search import check_measures
from ..search.settings import SearchDefaults, stored_defaults
from .models import ModelComparison, compare_models


@dataclass(frozen=True, slots=True)
class ModelChange:
    """What a change of model did.

    Attributes:
        before: Name of the model that the collection had.
        after: Name of the other one.
        embedded: How many passages were embedded.
        seconds: How long that took.
        comparison: Both models compared; None if that was not possible, or was not asked for.
        switched: Whether the collection now has the other model.
        kept: The previous model's embeddings, after a switch.
        notes: Notes for the user.
    """

    before: str
    after: str
    embedded: int
    seconds: float
    comparison: ModelComparison | None
    switched: bool
    kept: OtherModel | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, under the stable names of `--json`."""
        return {
            "before": self.before, "after": self.after, "embedded": self.embedded, "seconds": round(self.seconds, 3),
            "comparison": self.comparison.to_dict() if self.comparison else None, "switched": self.switched,
            "kept": self.kept.to_dict() if self.kept else None, "notes": list(self.notes),
        }  # fmt: skip


def change_model(
    collection: StoredCollection, encoder: Encoder, *, dry_run: bool = False, anyway: bool = False, seed: int = 0,
    notify: Notify = silent,
) -> ModelChange:  # fmt: skip
    """Embed a collection again with another model, compare both models, and switch by one commit.

    If it is killed, the collection has one model or the other, and the same call continues.

    Args:
        collection: The collection, which others may read and write meanwhile.
        encoder: The other model.
        dry_run: Embed and compare, but do not switch.
        anyway: Switch even if searches are, or may be, worse with the other model, or if the queries compare nothing.
        seed: Decides which queries are made, if there are too few judgements.
        notify: Receives progress and sentences.

    Raises:
        UsageError: The collection has this model already.
        SondeError: It holds no documents, another process is writing, or the disk is full.
        MissingExtraError: The models are only to be compared, and ir-measures is not installed.
    """
    if dry_run:
        check_measures()
    before = collection.spec
    with changing(collection.path):
        beside = _work(collection).embed_beside(collection, encoder, notify)
        comparison, notes = _compared(collection, beside, encoder, seed, notify)
        wanted = not dry_run and (anyway or comparison is None or not comparison.refusal)
        if comparison and comparison.doubt and (wanted or not comparison.refusal):  # else the refusal says it
            notes.insert(0, f"{comparison.doubt}{_advice(comparison, wanted)}")
        if not wanted:
            return ModelChange(
                before.name, encoder.spec.name, beside.embedded, beside.seconds, comparison, False, None, tuple(notes)
            )
        kept, more = _switched(collection, beside.folder, lambda: encoder, notify)
        collection.use(encoder)
    notes += [*_settings(before, encoder.spec), *more]
    return ModelChange(
        before.name, encoder.spec.name, beside.embedded, beside.seconds, comparison, True, kept, tuple(notes)
    )


def undo_model(collection: StoredCollection, notify: Notify = silent) -> ModelChange:
    """Switch back to the previous model by one commit; documents that changed since are embedded with it first.

    A second call returns to the newer model.

    Raises:
        SondeError: There is none, another process is writing, or the model is needed and not available.
    """
    before = collection.spec
    with changing(collection.path):
        other, spec = _work(collection).previous_beside(collection)
        load = cache(lambda: collection.encoder_of(spec, notify))
        _work(collection).bring_up_to_date(collection, other, load, notify)
        kept, notes = _switched(collection, other, load, notify)
    return ModelChange(before.name, spec.name, 0, 0.0, None, True, kept, tuple(notes))


def discard_model(collection: StoredCollection) -> list[OtherModel]:
    """Remove embeddings of models that were not switched to; return what was removed.

    Raises:
        SondeError: Another process is writing, or changes the model.
    """
    with changing(collection.path):
        return _work(collection).discard(collection, previous=False)


def forget_model(collection: StoredCollection) -> list[OtherModel]:
    """Remove the previous model's embeddings, after which `undo_model` is not possible; return what was removed.

    Raises:
        SondeError: Another process is writing, or changes the model.
    """
    with changing(collection.path):
        return _work(collection).discard(collection, previous=True)


def _work(collection: StoredCollection) -> Any:
    """Return the module that changes the model of a collection, or that of a sharded one; both have these functions."""
    if collection.sharded:
        from ...indexer.sharded import model as work
    else:
        from ...indexer.upkeep import model as work
    return work


def _compared(
    collection: StoredCollection, beside: Beside, encoder: Encoder, seed: int, notify: Notify
) -> tuple[ModelComparison | None, list[str]]:
    """Return the comparison, or a note on why there is none: the old model may be gone, or the texts too short."""
    try:
        with closing(open_stored(beside.folder, encoder=encoder, device=collection.device)) as other:
            found = compare_models(collection, other, seed, notify)
    except SondeError as error:
        return None, [f"the models were not compared: {error}"]
    return found, list(found.notes)


def _advice(comparison: ModelComparison, switched: bool) -> str:
    """Return what to do about a model that is not shown to be better."""
    undo = "switch back with `sonde model --undo`"
    if comparison.blind:
        return f"; {undo}" if switched else ""
    return f": unless you need its languages, size or speed, {undo if switched else 'keep the current model'}"


def _switched(
    collection: StoredCollection, other: Path, load: Load, notify: Notify
) -> tuple[OtherModel | None, list[str]]:
    """Switch; return what is kept of the previous model, and notes on what no longer applies."""
    before, tuned = collection.spec, stored_defaults(collection)
    kept = _work(collection).switch(collection, other, load, notify)
    with collection.view() as view:
        others = {each.folder: each for each in other_models(collection.path, view.catalog)}
        runs = [run for run in list_runs(view.catalog, count=False) if run.other_model]
        now = SearchDefaults.of(view.catalog.get("search_defaults"))
        lacking = any(is_wanted(each) for each in view.catalog.each) and view.late is None
    notes = list(_consequences(before, tuned, now, len(runs)))
    if lacking:
        notes.append(f"the late index stays with {before.name}: `sonde late` builds one for the new model")
    return others.get(kept), notes


def _consequences(before: ModelSpec, tuned: SearchDefaults, now: SearchDefaults, runs: int) -> Iterator[str]:
    if not now.empty:
        yield f"the settings that were tuned with this model apply again: {now}"
    elif not tuned.empty:
        yield (
            f"the tuned settings ({tuned}) were found with {before.name} and no longer apply: tune again with "
            "`sonde tune`"
        )
    if runs:
        made = "was made" if runs == 1 else "were made"
        yield (
            f"{counted(runs, 'run')} {made} with another model: documents keep their groups and positions, but such a "
            "run cannot be updated until you make it again (`sonde runs` marks it)"
        )


def _settings(before: ModelSpec, after: ModelSpec) -> Iterator[str]:
    """Yield a note on settings that the user gave the previous model and that the other one does not have."""
    lost = [
        f"{name} {value}"
        for name, usual in (("dtype", "float32"), ("truncate_dim", None), ("normalize", True))
        if (value := asdict(before)[name]) != usual and value != asdict(after)[name]
    ]
    if lost:
        yield f"{', '.join(lost)} applied only to {before.name}: {after.name} has dtype {after.dtype}"
