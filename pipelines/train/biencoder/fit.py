"""The training itself: Sentence-Transformers' trainer with checkpoints, and LoRA (Hu et al., ICLR 2022)."""

import importlib.util
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....indexer.errors import MissingExtraError, SondeError, UsageError, arg
from ....indexer.files import sync_folder
from ....indexer.progress import Notify, Progress, silent
from ..precision import training_dtype
from ..settings import BiencoderSettings
from .batches import columns_of, loss_of, prompts_of
from .examples import Examples

if TYPE_CHECKING:
    from ..precision import MasterAdamW


def add(model: Any, rank: int, seed: int) -> None:
    """Put adapters of some rank beside every linear layer of a bi-encoder's transformer, and train nothing else."""
    import torch
    from peft import LoraConfig, inject_adapter_in_model

    torch.manual_seed(seed)
    config = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear", bias="none")
    for weight in model.parameters():
        weight.requires_grad_(False)
    inject_adapter_in_model(config, model.transformers_model)


def merge(model: Any) -> None:
    """Add the adapters' products to the matrices that they belong to, and take the adapters away."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    for name, module in list(model.named_modules()):
        if isinstance(module, BaseTunerLayer):
            module.merge()
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, module.get_base_layer())


MARK = "complete.json"
"""Written last into a checkpoint: one without it was being written when the run was killed."""
WEIGHTS = "weights.safetensors"


@dataclass(frozen=True, slots=True)
class Fit:
    """How a run went: all its steps, the one that it went on from (0: a fresh one), mean losses by step, seconds."""

    steps: int
    resumed: int
    losses: tuple[tuple[int, float], ...]
    seconds: float


def load_base(folder: str, device: str) -> Any:
    """Return a local bi-encoder in float32, ready to be trained: no dropout, so that a step does not depend on chance.

    Raises:
        UsageError: It has no transformer, as a static model.
        SondeError: It is damaged, or not a bi-encoder.
    """
    import torch

    from ....indexer.encoder.loading import load_model
    from ....indexer.encoder.models import DEFAULT_MODEL, Located
    from ....indexer.encoder.settings import EncoderSettings

    settings = EncoderSettings.of(device, "float32")
    model = load_model(Located(folder, Path(folder)), settings)
    if getattr(model, "transformers_model", None) is None:
        raise UsageError(f"{folder} has no transformer to tune: begin with {DEFAULT_MODEL} or another transformer")
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


def fit_biencoder(
    model: Any, examples: Examples, settings: BiencoderSettings, folder: Path, run: str = "", *,
    logs: Path | None = None, notify: Notify = silent,
) -> Fit:  # fmt: skip
    """Train a bi-encoder in place; the newest complete checkpoint of the same run in the folder is gone on from.

    Args:
        model: What `load_base` returned.
        examples: What to learn.
        settings: How.
        folder: Where checkpoints go.
        run: A digest of data and settings.
        logs: Where TensorBoard's events go; None for none.
        notify: Receives progress.

    Raises:
        SondeError: A checkpoint of another run lies in the folder.
    """
    import torch

    from ....indexer.encoder.loading import quiet

    trainer_class, arguments = _library()
    from ..precision import MasterAdamW

    began = time.monotonic()
    last = newest_checkpoint(folder, run)
    done = json.loads((last / MARK).read_text("utf-8"))["step"] if last else 0
    window, model.max_seq_length = model.max_seq_length, min(settings.max_tokens, model.max_seq_length)
    _freeze(model, settings)
    device = str(model.device)
    dtype = training_dtype(settings.dtype, device)
    still = {name: weight.detach().clone() for name, weight in model.named_parameters() if not weight.requires_grad}
    optimizer = MasterAdamW(model, settings.highest_rate, settings.decay)
    model.to(getattr(torch, dtype))
    columns = columns_of(examples, settings)
    with quiet():
        from datasets import Dataset

        data = Dataset.from_dict(columns)
        options = _arguments(settings, folder, device, prompts_of(list(columns), model.prompts), examples.kind)
        steps = -(-len(data) // settings.batch)
        schedule = _schedule(optimizer, max(1, round(steps * settings.epochs)), settings.warmup)
        watcher = _watcher(settings, run, notify)
        trainer = trainer_class(
            model=model, args=arguments(**options), train_dataset=data, loss=loss_of(examples, model, settings),
            optimizers=(optimizer, schedule), callbacks=[watcher, *_tensorboard(logs)],
        )  # fmt: skip
        trainer.remove_callback(_printer())
        trainer.train(resume_from_checkpoint=str(last) if last else None)
    _finish(model, optimizer, still, settings)
    model.max_seq_length = window
    losses = tuple((row["step"], row["loss"]) for row in trainer.state.log_history if "loss" in row)
    return Fit(trainer.state.global_step, done, losses, time.monotonic() - began)


def check_libraries(settings: BiencoderSettings, logs: Path | None = None) -> None:
    """Look for the libraries that a run will need, before anything is computed.

    Raises:
        MissingExtraError: One is not installed.
    """
    needed = {"accelerate": "training a bi-encoder", "datasets": "training a bi-encoder"}
    needed |= {"peft": "training with LoRA"} if settings.lora else {}
    needed |= {"tensorboard": arg("logs")} if logs else {}
    for name, purpose in needed.items():
        if importlib.util.find_spec(name) is None:
            raise MissingExtraError(name, "train", purpose)


def newest_checkpoint(folder: Path, run: str) -> Path | None:
    """Return the newest checkpoint of a run that was written to its end; halves of others are removed.

    Raises:
        SondeError: One belongs to another run.
    """
    import shutil

    found: list[tuple[int, Path]] = []
    for path in folder.glob("checkpoint-*"):
        if not (path / MARK).is_file():
            shutil.rmtree(path)
            continue
        mark = json.loads((path / MARK).read_text("utf-8"))
        if mark["run"] != run:
            raise SondeError(
                f"{path} is of a run with other data or settings: give the same ones to go on, or remove {folder}"
            )
        found.append((mark["step"], path))
    return max(found)[1] if found else None


def _library() -> tuple[Any, Any]:
    """Return the trainer, with checkpoints of what is trained only, and its arguments."""
    from safetensors.torch import load_file, save_file
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments

    class Trainer(SentenceTransformerTrainer):
        """Keeps the float32 weights that are trained, not the model, and makes no card: Sonde writes its own."""

        def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
            folder = Path(output_dir or str(self.args.output_dir))
            folder.mkdir(parents=True, exist_ok=True)
            save_file(_masters(self).masters, folder / WEIGHTS)

        def _load_from_checkpoint(self, checkpoint_path: str) -> None:
            _masters(self).restore(load_file(Path(checkpoint_path) / WEIGHTS))

        def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
            """Add none."""

    return Trainer, SentenceTransformerTrainingArguments


def _masters(trainer: Any) -> "MasterAdamW":
    return getattr(trainer.optimizer, "optimizer", trainer.optimizer)  # accelerate wraps it


def _arguments(
    settings: BiencoderSettings, folder: Path, device: str, prompts: dict[str, str], kind: str
) -> dict[str, Any]:
    return {
        "output_dir": str(folder),
        "num_train_epochs": settings.epochs,
        "per_device_train_batch_size": settings.batch,
        "batch_sampler": "no_duplicates" if kind == "pairs" else "batch_sampler",
        "prompts": prompts or None,
        "seed": settings.seed,
        "data_seed": settings.seed,
        "use_cpu": device == "cpu",
        "report_to": "none",
        "save_strategy": "no",  # by time, see `_watcher`
        "save_total_limit": 2,
        "logging_strategy": "steps",
        "logging_steps": 10,
        "disable_tqdm": True,
        "dataloader_pin_memory": device != "cpu",
        "max_grad_norm": 1.0,
    }


def _schedule(optimizer: Any, steps: int, warmup: float) -> Any:
    from transformers import get_linear_schedule_with_warmup

    return get_linear_schedule_with_warmup(optimizer, round(steps * warmup), steps)


def _printer() -> Any:
    from transformers.trainer_callback import PrinterCallback

    return PrinterCallback


def _tensorboard(logs: Path | None) -> list[Any]:
    if logs is None:
        return []
    from torch.utils.tensorboard import SummaryWriter
    from transformers.integrations.integration_utils import TensorBoardCallback

    return [TensorBoardCallback(SummaryWriter(log_dir=str(logs)))]


def _watcher(settings: BiencoderSettings, run: str, notify: Notify) -> Any:
    """Return a callback that tells how far it is, and saves now and then."""
    from transformers import TrainerCallback

    class Watcher(TrainerCallback):
        """Progress, and checkpoints by time."""

        saved = time.monotonic()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            notify(Progress("train", state.global_step, state.max_steps, "steps"))
            if time.monotonic() - self.saved >= settings.save_every or state.global_step == state.max_steps:
                control.should_save = True
            return control

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            mark = folder / f".{MARK}"
            mark.write_text(json.dumps({"run": run, "step": state.global_step}), "utf-8")
            mark.rename(folder / MARK)
            sync_folder(folder)
            self.saved = time.monotonic()

    return Watcher()


def _freeze(model: Any, settings: BiencoderSettings) -> None:
    """Hold word embeddings still: what few pairs teach about a word would be lost on all others."""
    if settings.lora:
        add(model, settings.lora, settings.seed)
        return
    model.transformers_model.get_input_embeddings().weight.requires_grad_(False)


def _finish(model: Any, optimizer: "MasterAdamW", still: dict[str, Any], settings: BiencoderSettings) -> None:
    """Bring the model back to float32, with nothing rounded that was trained or held still."""
    import torch

    model.float().eval()
    optimizer.write()
    named = dict(model.named_parameters())
    with torch.no_grad():
        for name, weight in still.items():
            named[name].copy_(weight)
    if settings.lora:
        merge(model)
    for weight in model.parameters():
        weight.requires_grad_(False)
