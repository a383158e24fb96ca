"""Tuning a bi-encoder on a few texts of each label, all of which are trained on."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from ....indexer.encoder.devices import resolve_devices
from ....indexer.encoder.loading import quiet
from ....indexer.encoder.weights import weights_digest
from ....indexer.progress import Notify, silent
from ..folder import finish, work_folder
from ..nli import base_folder
from ..pairs import digest_of
from .examples import Examples, groups_of
from .fit import Fit, check_libraries, fit, load_base
from .settings import BiencoderSettings

BATCH = 16
"""Few examples make few steps: small batches make more of them."""


def tune_on_labels(
    texts: Sequence[str], labels: Sequence[str], to: Path, *, base: str, seed: int = 7, device: str = "auto",
    settings: BiencoderSettings | None = None, notify: Notify = silent,
) -> Fit:  # fmt: skip
    """Bring texts of one label together and those of different ones apart; a killed run goes on when called again.

    Nothing is held out: what it is worth is measured on texts that are not given, by `sonde evaluate labels`.

    Raises:
        UsageError: The folder is taken.
        SondeError: The model cannot be had.
        MissingExtraError: A library of the extra `train` is not installed.
    """
    settings = settings or BiencoderSettings(seed=seed, batch=BATCH)
    settings.check()
    work = work_folder(to)
    examples = Examples("labels", tuple(texts), labels=tuple(labels), groups=groups_of(texts))
    folder, place = base_folder(base, notify), resolve_devices(device)[0]
    check_libraries(settings)
    run = digest_of(replace(settings, save_every=0.0), examples.first, examples.labels, weights_digest(folder))
    model = load_base(str(folder), place)
    report = fit(model, examples, settings, work, run, notify=notify)
    facts = {"base": base, "labels": len(set(labels)), "examples": len(texts), "settings": asdict(settings), "run": run}

    def save(path: Path) -> None:
        with quiet():
            model.save(str(path), create_model_card=False)
        card = f"# A bi-encoder tuned from {base} on {len(texts)} texts of {len(set(labels))} labels\n\n"
        (path / "README.md").write_text(card + "Made by `sonde label --examples … --fine-tune`.\n", "utf-8")

    finish(to, save, facts)
    return report
