"""`sonde train biencoder`: from examples to a tuned model's folder, with what it gained; resumable."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ....indexer.encoder import Encoder, load_encoder
from ....indexer.encoder.loading import quiet
from ....indexer.encoder.model_folder import weights_digest
from ....indexer.encoder.models import DEFAULT_MODEL
from ....indexer.encoder.settings import resolve_devices
from ....indexer.errors import Message, SondeError, UsageError, arg
from ....indexer.files import write_durably
from ....indexer.progress import Notify, silent
from ....indexer.sharded import lasting_file, open_stored
from ...evaluate.search import Gain
from ..loop import finish, work_folder
from ..nli import base_folder
from ..pairs import digest_of
from ..precision import training_dtype
from ..settings import BiencoderSettings, check_share
from .batches import SOURCES, mined, pairs_of_collection
from .examples import Examples, HeldOut, divided, read_examples, without
from .fit import Fit, check_libraries, fit_biencoder, load_base
from .measure import CORPUS, Outcome, gains, model_card, outcome

RUN = "run.json"
FEW = 30
"""Fewer measured queries or examples than this call for a note."""


def begin_work(folder: Path, run: str) -> None:
    """Make the folder of a run, or check that it is this run's.

    Raises:
        SondeError: It belongs to a run with other data or settings.
    """
    folder.mkdir(exist_ok=True)
    if kept(folder / RUN, lambda: run) != run:
        raise SondeError(
            f"{folder} is of a run with other data or settings: give the same ones to go on, or remove the folder"
        )


def kept(path: Path, make: Callable[[], Any]) -> Any:
    """Return what a file holds, as JSON; what `make` returns is written where there is none."""
    if path.is_file():
        return json.loads(path.read_text("utf-8"))
    made = make()
    write_durably(path, lambda stream: stream.write(json.dumps(made, ensure_ascii=False).encode()))
    return made


def kept_outcome(folder: Path, make: Callable[[], Outcome]) -> Outcome:
    """Return a measurement, from its file if it was made before; the collection made for it is removed."""
    path = folder.with_suffix(".json")
    found = kept(path, lambda: {name: values.tolist() for name, values in make().items()})
    shutil.rmtree(folder, ignore_errors=True)
    return {name: np.array(values, np.float64) for name, values in found.items()}


@dataclass(frozen=True, slots=True)
class TunedBiencoder:
    """What a run made.

    Attributes:
        folder: The model's folder; `--model` takes it.
        kind: Of the examples: "pairs", "scores" or "labels".
        trained: Examples trained on.
        measured_on: What was held out, and how much of it was trained on too.
        gains: Each measure before and after.
        fit: Steps, losses, seconds.
    """

    folder: Path
    kind: str
    trained: int
    measured_on: HeldOut
    gains: tuple[Gain, ...]
    fit: Fit

    @property
    def held(self) -> int:
        """Examples measured on."""
        return self.measured_on.examples

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before trusting the figures."""
        first, found = self.gains[0], list[str]()
        if not first.sure:
            found.append(f"the interval of {first.measure} reaches 0 or below: the gain may be chance")
        if first.examples < FEW:
            found.append(f"measured on {self.measured_on} only: the figures say little about others")
        if self.measured_on.trained_on:
            overlap = self.measured_on.overlap
            said = f"{overlap}, so the figures may be too good: give other examples with {arg('held_out')}"
            found.append(Message(said))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {
            "folder": str(self.folder),
            "kind": self.kind,
            "trained": self.trained,
            **self.measured_on.to_dict(),
            "gains": {each.measure: each.to_dict() for each in self.gains},
            "steps": self.fit.steps,
            "resumed": self.fit.resumed,
            "seconds": round(self.fit.seconds, 1),
            "notes": list(self.notes),
        }


def train_biencoder(
    data: Path | Examples, to: Path, *, base: str = DEFAULT_MODEL, settings: BiencoderSettings | None = None,
    kind: str | None = None, columns: str | None = None, made_of: str = "both", held_out: Path | Examples | None = None,
    share: float = 0.1, corpus: int = CORPUS, logs: Path | None = None, device: str = "auto", notify: Notify = silent,
) -> TunedBiencoder:  # fmt: skip
    """Tune a bi-encoder; a killed run goes on when called again.

    Args:
        data: A file of examples, a collection whose titles and neighbouring passages make pairs, or examples.
        to: The new model's folder.
        base: The bi-encoder to begin with, which also finds wrong passages.
        settings: How to train.
        kind: "pairs", "scores" or "labels" where the names of the file's columns leave it open.
        columns: The file's columns by name.
        made_of: Which pairs are made of a collection: "titles", "neighbours" or "both".
        held_out: Examples to measure on; None keeps some of `data` back.
        share: Of the examples kept back, above 0 and at most 0.5.
        corpus: Passages among which the held-out queries are searched.
        logs: A folder for TensorBoard.
        device: One device: "auto", "cpu", "cuda" …
        notify: Receives progress and sentences.

    Raises:
        UsageError: An argument is not valid.
        SondeError: The data cannot be used, or the model is not available.
        MissingExtraError: A library of the extra `train` is not installed.
    """
    settings = settings or BiencoderSettings()
    settings.check()
    check_share(share)
    if made_of not in SOURCES:
        said = f"pairs are made of {', '.join(SOURCES)}, not of {made_of!r}"
        raise UsageError(said, code="unknown-option", field="made_of", value=made_of, alternatives=SOURCES)
    work = work_folder(to)
    examples = data if isinstance(data, Examples) else _read(data, kind, columns, made_of, settings.seed)
    taught, held = _split(examples, held_out, kind, columns, share, settings.seed)
    folder, place = base_folder(base, notify), resolve_devices(device)[0]
    check_libraries(settings, logs)
    run = digest_of(replace(settings, save_every=0.0), corpus, _digest(taught), _digest(held), weights_digest(folder))
    dtype = training_dtype(settings.dtype, place)
    begin_work(work, run)
    encoder = load_encoder(base, device=place, dtype=dtype, notify=notify)
    before = kept_outcome(work / "before", lambda: outcome(held, taught, encoder, corpus, work / "before", notify))
    if taught.kind == "pairs" and settings.negatives:
        window = min(settings.max_tokens, encoder.spec.max_tokens)
        plain = taught
        wrong = kept(work / "wrong.json", lambda: _wrong(plain, base, place, dtype, window, settings, notify))
        taught = replace(taught, wrong=tuple(tuple(texts) for texts in wrong))
    model = load_base(str(folder), place)
    report = fit_biencoder(model, taught, settings, work, run, logs=logs, notify=notify)
    made = work / "tuned"
    with quiet():
        model.save(str(made), create_model_card=False)
    digest = weights_digest(made)
    if kept(work / "tuned.json", lambda: digest) != digest:  # trained again from an earlier checkpoint, elsewhere
        raise SondeError(f"{work} holds measurements of other weights: remove the folder to start again")
    tuned = _tuned(made, encoder, place, dtype)
    after = kept_outcome(work / "after", lambda: outcome(held, taught, tuned, corpus, work / "after", notify))
    found = gains(before, after)
    tried = HeldOut.of(held, taught)
    facts = _facts(base, data, settings, taught, tried, found, report, run)
    finish(to, lambda path: _save(model, path, facts, tried, found), facts)
    return TunedBiencoder(to, taught.kind, len(taught), tried, found, report)


def _wrong(
    taught: Examples, base: str, device: str, dtype: str, window: int, settings: BiencoderSettings, notify: Notify
) -> list[list[str]]:
    encoder = load_encoder(base, device=device, dtype=dtype, max_tokens=window)
    return [list(texts) for texts in mined(taught, encoder, settings.negatives, notify).wrong]


def _read(path: Path, kind: str | None, columns: str | None, made_of: str, seed: int) -> Examples:
    if lasting_file(path) is None:
        return read_examples(path, kind, columns)
    if kind not in (None, "pairs") or columns:
        both = f"{arg('kind')} and {arg('columns')}"
        said = f"{both} are for files: a collection gives pairs of its own titles and passages"
        raise UsageError(said, code="conflict", field="columns" if columns else "kind", value=columns or kind)
    return pairs_of_collection(open_stored(path), made_of, seed)


def _split(
    examples: Examples, held_out: Path | Examples | None, kind: str | None, columns: str | None, share: float, seed: int
) -> tuple[Examples, Examples]:
    if held_out is None:
        return divided(examples, share, seed)
    held = held_out if isinstance(held_out, Examples) else read_examples(held_out, kind, columns)
    if held.kind != examples.kind:
        raise UsageError(f"the held-out examples are {held.kind}, the others {examples.kind}: give the same kind")
    taught = without(examples, held)
    if len(taught) < len(examples) / 10:
        raise SondeError(
            f"{len(examples) - len(taught):,} of {len(examples):,} examples are held out as well: too many"
        )
    return taught, held


def _digest(examples: Examples) -> str:
    return digest_of(examples.first, examples.second, examples.wrong, examples.scores, examples.labels)


def _tuned(folder: Path, like: Encoder, device: str, dtype: str) -> Encoder:
    return load_encoder(
        str(folder),
        device=device,
        dtype=dtype,
        query_prompt=like.spec.query_prompt,
        document_prompt=like.spec.document_prompt,
    )


def _facts(
    base: str, data: Path | Examples, settings: BiencoderSettings, taught: Examples, held: HeldOut,
    found: tuple[Gain, ...], report: Fit, run: str,
) -> dict[str, Any]:  # fmt: skip
    return {
        "base": base,
        "data": data.name if isinstance(data, Path) else "examples given in Python",
        "kind": taught.kind,
        "trained": len(taught),
        **held.to_dict(),
        "with_wrong_passages": sum(bool(texts) for texts in taught.wrong),
        "settings": asdict(settings) | {"rate": settings.highest_rate},
        "steps": report.steps,
        "losses": report.losses,
        "gains": [each.to_dict() for each in found],
        "run": run,
    }


def _save(model: Any, folder: Path, facts: dict[str, Any], held: HeldOut, found: tuple[Gain, ...]) -> None:
    with quiet():
        model.save(str(folder), create_model_card=False)
    (folder / "README.md").write_text(model_card(facts, held, found), "utf-8")
