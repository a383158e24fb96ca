"""Training on a tiny model: it learns, it goes on where it was stopped, and it says what is wrong with the data."""
# ruff: noqa: F811  (fixtures that are imported)

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import Command, command
from tiny_training import base, one_thread  # noqa: F401  (fixtures)

from sonde.indexer.errors import SondeError, UsageError
from sonde.pipelines.pairs import load_pair_model
from sonde.pipelines.train import TrainSettings, train_nli
from sonde.pipelines.train.loop import Checkpoint, load_checkpoint, plan_epoch, rate_at, save_checkpoint, train
from sonde.pipelines.train.nli import PairLearner, new_classifier, split
from sonde.pipelines.train.pairs import LABELS, Premise, read_pairs
from sonde.pipelines.train.precision import MasterWeights

NOUNS = ("battery", "fan", "parcel", "tomatoes", "password", "profits")
FAST = TrainSettings(epochs=10, rate=5e-3, batch_tokens=128, max_tokens=32, dtype="float32", seed=3)


def premises() -> list[Premise]:
    """A rule that a tiny model can learn: "died" follows, "not" contradicts, "how" is open."""
    found = []
    for noun in NOUNS:
        pairs = ((f"{noun} died", "entailment"), (f"not {noun}", "contradiction"), (f"how {noun}", "neutral"))
        found += [Premise(f"the {noun} {word}", pairs) for word in ("died", "like", "from", "how")]
    return found


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    rows = [
        {"premise": premise.text, "hypothesis": hypothesis, "label": label}
        for premise in premises()
        for hypothesis, label in premise.pairs
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def learner(base: Path) -> PairLearner:
    model, tokenizer = new_classifier(str(base), seed=3)
    return PairLearner(model, tokenizer, premises(), 32, compare=0.5)


def weights(model: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: tensor.float().numpy().copy() for name, tensor in model.state_dict().items()}


def test_training_lowers_the_loss_and_leaves_word_embeddings_alone(base: Path) -> None:
    taught = learner(base)
    before = weights(taught.model)
    losses: list[float] = []
    train(taught, FAST, on_step=lambda step, steps, loss: losses.append(loss))
    after = weights(taught.model)
    assert np.mean(losses[-5:]) < 0.5 * np.mean(losses[:5])
    words = "bert.embeddings.word_embeddings.weight"
    assert np.array_equal(before[words], after[words])
    assert not np.array_equal(before["classifier.weight"], after["classifier.weight"])


def test_the_same_seed_makes_the_same_weights_and_another_seed_others(base: Path) -> None:
    found = []
    for seed in (3, 3, 4):
        taught = learner(base)
        train(taught, replace(FAST, epochs=1, seed=seed))
        found.append(weights(taught.model)["classifier.weight"])
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


class KilledError(Exception):
    pass


def test_a_killed_run_ends_with_the_weights_of_an_uninterrupted_one(base: Path, tmp_path: Path) -> None:
    whole, torn = learner(base), learner(base)
    settings = replace(FAST, epochs=3, save_every=0)
    report = train(whole, settings)

    def kill(step: int, steps: int, loss: float) -> None:
        if step == 4:
            raise KilledError("step 4")

    with pytest.raises(KilledError, match=r"^step 4$"):
        train(torn, settings, tmp_path, "run", kill)
    torn = learner(base)
    resumed = train(torn, settings, tmp_path, "run")
    assert (resumed.resumed, resumed.steps) == (3, report.steps)
    kept = weights(torn.model)
    assert [name for name, value in weights(whole.model).items() if not np.array_equal(value, kept[name])] == []


def test_a_checkpoint_of_other_data_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, Checkpoint(3, 0.5, {"weight.a": torch.ones(2)}), "one")
    found = load_checkpoint(tmp_path, "one")
    assert found is not None
    assert (found.step, found.loss, found.state["weight.a"].tolist()) == (3, 0.5, [1.0, 1.0])
    with pytest.raises(SondeError, match="other data or settings"):
        load_checkpoint(tmp_path, "two")
    (tmp_path / "checkpoint.safetensors").write_bytes(b"nonsense")
    with pytest.raises(SondeError, match="damaged"):
        load_checkpoint(tmp_path, "one")


def test_bfloat16_keeps_steps_too_small_for_it() -> None:
    layer = torch.nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        layer.weight.fill_(1.0)
    masters = MasterWeights(layer, "bfloat16", decay=0.0)
    for _ in range(10):  # one step of 0.0005 is lost when 1 is rounded to bfloat16; ten of them are not
        layer.weight.grad = torch.ones_like(layer.weight)
        masters.step(0.0005, clip=1.0)
    assert masters.weights["weight"].item() == pytest.approx(0.995, abs=1e-4)
    assert (layer.weight.item() < 1.0, layer.weight.dtype) == (True, torch.bfloat16)
    masters.finish()
    assert torch.equal(layer.weight, masters.weights["weight"])


def test_each_group_is_in_one_batch_of_an_epoch_within_the_budget() -> None:
    chance = np.random.default_rng(0)
    lengths = [chance.integers(5, 40, size=chance.integers(1, 4)) for _ in range(500)]
    batches = plan_epoch(lengths, 256, seed=7, epoch=0)
    assert sorted(np.concatenate(batches).tolist()) == list(range(500))
    sizes = [sum(len(lengths[g]) for g in batch) * max(lengths[g].max() for g in batch) for batch in batches]
    assert max(sizes) <= 256
    again, other = plan_epoch(lengths, 256, seed=7, epoch=0), plan_epoch(lengths, 256, seed=7, epoch=1)
    assert [batch.tolist() for batch in again] == [batch.tolist() for batch in batches]
    assert [batch.tolist() for batch in other] != [batch.tolist() for batch in batches]


def test_the_rate_rises_and_falls() -> None:
    settings = TrainSettings(rate=1.0, warmup=0.1)
    rates = [rate_at(step, 100, settings) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[9] == pytest.approx(1.0)
    assert rates == sorted(rates[:10]) + sorted(rates[10:], reverse=True)
    assert rates[-1] < 0.001


def test_the_comparison_is_among_the_hypotheses_of_one_premise(base: Path) -> None:
    model, tokenizer = new_classifier(str(base), seed=3)
    data = [premises()[0], Premise("the fan", (("fan died", "entailment"),)), premises()[5]]
    both, alone = (PairLearner(model, tokenizer, data, 32, compare=weight) for weight in (1.0, 0.0))
    groups = np.arange(3)
    with torch.no_grad():
        rows = [row for group in groups for row in both._rows[group]]
        logits = torch.cat([model(**_one(tokenizer, row)).logits for row in rows])[:, LABELS.index("entailment")]
        extra = (both.loss(groups) - alone.loss(groups)).item()
    expected = [torch.logsumexp(logits[a:b], 0) - logits[a] for a, b in ((0, 3), (4, 7))]
    assert extra == pytest.approx(sum(value.item() for value in expected) / 3, abs=1e-4)


def _one(tokenizer: object, row: tuple[np.ndarray, np.ndarray]) -> dict[str, torch.Tensor]:
    ids, kinds = (torch.from_numpy(part)[None] for part in row)
    return {"input_ids": ids, "token_type_ids": kinds, "attention_mask": torch.ones_like(ids)}


def test_a_trained_folder_is_a_pair_model_that_knows_its_labels(base: Path, pairs: Path, tmp_path: Path) -> None:
    made = train_nli(pairs, tmp_path / "mine", base=str(base), settings=FAST, share=0.2, device="cpu")
    assert (made.after.majority, made.after.pairs) == (pytest.approx(1 / 3), 15)
    assert made.after.accuracy > 0.6  # not always 1: the tiny tokenizer's training breaks ties by chance
    model = load_pair_model(str(tmp_path / "mine"))
    assert [model.id2label[place] for place in range(3)] == list(LABELS)
    _, held = split(read_pairs(pairs), 0.2, FAST.seed)
    asked = [(premise.text, hypothesis) for premise in held for hypothesis, _ in premise.pairs]
    truth = [label for premise in held for _, label in premise.pairs]
    given = [model.id2label[int(place)] for place in model.logits(asked).argmax(1)]
    assert np.mean([a == b for a, b in zip(given, truth, strict=True)]) == pytest.approx(made.after.accuracy)
    card = json.loads((tmp_path / "mine" / "training.json").read_text())
    assert (card["settings"]["seed"], card["pairs"]) == (3, "pairs.jsonl")
    assert not (tmp_path / "mine.training").exists()


def test_a_premise_is_on_one_side_of_the_split_only() -> None:
    again = [*premises(), *premises()]
    taught, kept = split(again, 0.25, seed=1)
    assert len(taught) + len(kept) == len(again)
    assert {premise.text for premise in taught} & {premise.text for premise in kept} == set()
    with pytest.raises(SondeError, match="the same premise"):
        split([Premise("a", (("b", "neutral"),))] * 3, 0.25, seed=1)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "holds no pairs"),
        ('{"premise": "a", "hypothesis": "b", "label": "maybe"}\n', "line 1: the label is 'maybe'"),
        ('{"premise": "a", "hypothesis": "b", "label": "neutral"}\n{"premise": "a"}\n', "line 2: 'hypothesis' must be"),
        ("nonsense\n", "line 1 is no JSON"),
        ("[1]\n", "line 1 is no JSON object"),
    ],
)
def test_data_that_cannot_be_used_is_one_line(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "bad.jsonl").write_text(content)
    with pytest.raises(SondeError, match=says):
        read_pairs(tmp_path / "bad.jsonl")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"epochs": 0}, "epochs must be above 0"),
        ({"rate": 2}, "learning rate must be above 0"),
        ({"max_tokens": 4}, "at least 16 tokens"),
        ({"dtype": "int8"}, "not 'int8'"),
    ],
)
def test_settings_out_of_range_are_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        replace(TrainSettings(), **change).check()  # type: ignore[arg-type]


def test_the_command_trains_and_refuses_a_folder_that_is_taken(
    base: Path, pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sonde: Command = command(capsys, monkeypatch)
    to = str(tmp_path / "mine")
    options = ("--base", str(base), "--epochs", "1", "--share", "0.2", "--max-tokens", "32", "--device", "cpu")
    ran = sonde("train", "nli", str(pairs), "--to", to, *options, "--json")
    said = json.loads(ran.out)
    assert (ran.code, said["folder"], said["pairs"], said["resumed"]) == (0, to, 15, 0)
    sonde("train", "nli", str(pairs), "--to", to, *options).refused("already exists", code=2)
    sonde("train", "nli", "none.jsonl", "--to", to + "2").refused("there is no file none.jsonl", code=2)
    sonde("train", "nli", str(pairs), "--to", to + "2", "--base", "static").refused("no layers to train", code=2)
    sonde("train", "nli", str(pairs), "--to", to + "2", "--share", "0.9").refused("at most 0.5", code=2)
