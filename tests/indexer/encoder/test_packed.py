"""Texts in one stream without padding: the vectors of Sentence-Transformers, in any batch, captured or not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from thinned import thinned
from tiny_models import TEXTS, WINDOW, save_transformer

from sonde.indexer.encoder import Encoder, Tokens, load_encoder
from sonde.indexer.encoder.forward import plan_batches
from sonde.indexer.encoder.packed_bert import PackedBert, Room, flash, runs_flash
from sonde.indexer.encoder.packed_replica import MOST_GRAPHS, PackedReplica
from sonde.indexer.encoder.plain import PlainModel, read_plain

OURS = ("bert", "distilbert", "roberta", "xlm_roberta")
MIXED = [
    *TEXTS,
    "",
    "word " * 90,
    *(f"Sentence {number} of some words. " * (1 + number * 7 % 5) for number in range(700)),
]


class Recorded:
    """Stands in for CUDA graphs: as with them, every replay fills the same tensor."""

    def __init__(self, error: Exception | None = None) -> None:
        self.captured = 0
        self.replayed = 0
        self.error = error

    def capture(self, work: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
        if self.error:
            raise self.error
        self.captured += 1
        found = work()

        def replay() -> torch.Tensor:
            self.replayed += 1
            return found.copy_(work())

        return replay


class Small:
    """A device with memory for a given number of tokens."""

    def __init__(self, encoder: Encoder, monkeypatch: pytest.MonkeyPatch, tokens: int) -> None:
        self.refused: list[int] = []
        replica: Any = encoder.replicas[0]
        vectors = replica._bert.vectors

        def limited(stream: torch.Tensor, room: Room) -> torch.Tensor:
            if room.tokens > tokens:
                self.refused.append(room.tokens)
                raise torch.OutOfMemoryError("too large")
            return vectors(stream, room)

        monkeypatch.setattr(replica._bert, "vectors", limited)


def plain(folder: Path) -> PlainModel:
    found = read_plain(folder)
    assert found
    return found


def packed(
    folder: Path, *, graphs: Recorded | None = None, budget: int = 1_024, notify: Callable[..., None] = lambda _: None
) -> Encoder:
    made = load_encoder(str(folder), engine="packed", device="cpu")
    tokenizer: Any = made.tokenizer
    replica = PackedReplica(plain(folder), tokenizer, "cpu", "float32", None, True, graphs, notify)
    return Encoder(made.spec, tokenizer, [replica], budget, library=made.library)


def same(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", pytest.param("cls", marks=pytest.mark.long)])
@pytest.mark.parametrize("architecture", thinned([*OURS], 2))
def test_the_vectors_of_sentence_transformers(tmp_path: Path, architecture: str, pooling: str) -> None:
    folder = save_transformer(tmp_path, architecture, pooling, normalize=pooling == "cls")
    ours = load_encoder(str(folder), engine="packed", device="cpu")
    assert (ours.engine, type(ours.replicas[0])) == ("torch", PackedReplica)
    library = SentenceTransformer(str(folder), device="cpu")
    texts = MIXED[:200]
    for name, query in (("document", False), ("query", True)):
        expected = library.encode(texts, prompt_name=name, normalize_embeddings=True)
        same(ours.encode_texts(texts, query), expected)
        same(ours.encode_texts(texts[:1], query), expected[:1])


@pytest.mark.long
def test_hundreds_of_mixed_length_in_every_budget(tmp_path: Path) -> None:
    folder = save_transformer(tmp_path)
    ours, library = (load_encoder(str(folder), engine=engine, device="cpu") for engine in ("packed", "torch"))
    expected = library.encode_texts(MIXED)
    for budget in (64, 1_000, 65_536):
        ours.batch_tokens = budget
        same(ours.encode_texts(MIXED), expected)


@pytest.mark.parametrize(
    "options", [{"truncate_dim": 8}, {"normalize": False}, {"max_tokens": 12, "query_prompt": "ask: "}]
)
def test_settings_mean_the_same(tmp_path: Path, options: dict[str, Any]) -> None:
    folder = str(save_transformer(tmp_path, normalize=True))
    ours, library = (load_encoder(folder, engine=engine, device="cpu", **options) for engine in ("packed", "torch"))
    assert ours.spec == library.spec
    same(ours.encode_texts(TEXTS, query=True), library.encode_texts(TEXTS, query=True))


def test_half_the_bits_stay_near_float32(tmp_path: Path) -> None:
    folder = str(save_transformer(tmp_path))
    half = load_encoder(folder, engine="packed", device="cpu", dtype="bfloat16")
    exact = load_encoder(folder, engine="torch", device="cpu")
    assert half.spec.dtype == "bfloat16"
    assert (half.encode_texts(MIXED[:300]) * exact.encode_texts(MIXED[:300])).sum(axis=1).min() >= 0.9995


def test_vectors_of_tokens(tmp_path: Path) -> None:
    folder = str(save_transformer(tmp_path))
    ours, library = (load_encoder(folder, engine=engine, device="cpu") for engine in ("packed", "torch"))
    pairs = zip(*(each.token_vectors(each.tokenize(TEXTS)) for each in (ours, library)), strict=True)
    for found, expected in pairs:
        assert (found.ids.tolist(), found.places.tolist()) == (expected.ids.tolist(), expected.places.tolist())
        same(found.vectors, expected.vectors)


def test_other_models_run_in_the_library(tmp_path: Path) -> None:
    replica = load_encoder(str(save_transformer(tmp_path, pooling="max")), engine="packed", device="cpu").replicas[0]
    assert not isinstance(replica, PackedReplica)


def test_features_for_the_library_s_model(tmp_path: Path) -> None:
    ours = load_encoder(str(save_transformer(tmp_path)), engine="packed", device="cpu")
    replica: Any = ours.replicas[0]
    features = replica.features(ours.tokenize(TEXTS))
    with torch.inference_mode():
        found = ours.library()(features)["sentence_embedding"]
    same(torch.nn.functional.normalize(found, dim=1).numpy(), ours.encode_texts(TEXTS))


def test_many_texts_are_tokenised_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = packed(save_transformer(tmp_path))
    expected, asked = encoder.encode_texts(MIXED[:100], query=True), []
    monkeypatch.setattr("sonde.indexer.encoder.encoder.AHEAD_TEXTS", 30)
    tokenize = encoder.tokenizer.tokenize
    monkeypatch.setattr(
        encoder.tokenizer, "tokenize", lambda texts, query: asked.append(len(texts)) or tokenize(texts, query)
    )
    same(encoder.encode_texts(MIXED[:100], query=True), expected)
    assert asked == [30, 30, 30, 10]


def text_of(*ids: int) -> Tokens:
    return Tokens(np.array(ids, np.int32), len(ids))


def test_a_stream_has_room_for_powers_of_two() -> None:
    batch = [text_of(5, 6, 7), text_of(), text_of(8, 9)]
    room = Room.of(batch)
    assert room == Room(tokens=64, texts=8, longest=32)
    ids, places, bounds = room.parts(room.pack(batch))
    assert ids[:6].tolist() == [5, 6, 7, 8, 9, 0]
    assert places[:5].tolist() == [0, 1, 2, 0, 1]
    assert bounds.tolist() == [0, 3, 3, 5, 5, 5, 5, 5, 5]
    assert Room.of([text_of(*range(65))] * 9) == Room(tokens=1_024, texts=16, longest=128)


def test_batches_are_filled_without_padding() -> None:
    tokens = [text_of(*range(length)) for length in (3, 9, 1, 5, 2, 40)]
    assert [batch.tolist() for batch in plan_batches(tokens, 10, padded=False)] == [[5], [1], [3, 0, 4], [2]]


@pytest.mark.long
def test_a_size_is_captured_the_second_time_and_then_replayed(tmp_path: Path) -> None:
    graphs = Recorded()
    encoder = packed(save_transformer(tmp_path), graphs=graphs)
    expected = load_encoder(str(tmp_path / "model"), engine="torch", device="cpu").encode_texts(MIXED)
    same(encoder.encode_texts(TEXTS[:1]), expected[:1])
    assert (graphs.captured, graphs.replayed) == (0, 0)
    same(encoder.encode_texts(TEXTS[:1]), expected[:1])
    assert (graphs.captured, graphs.replayed) == (1, 1)
    same(encoder.encode_texts(MIXED), expected)
    same(encoder.encode_texts(MIXED), expected)
    assert 1 < graphs.captured <= MOST_GRAPHS < graphs.replayed


def test_only_so_many_sizes_are_captured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sonde.indexer.encoder.packed_replica.MOST_GRAPHS", 1)
    graphs = Recorded()
    encoder = packed(save_transformer(tmp_path), graphs=graphs)
    vectors = [encoder.encode_texts(texts) for texts in [TEXTS[:1], ["word " * 90]] * 3]
    assert (graphs.captured, graphs.replayed) == (1, 2)
    same(vectors[5], vectors[1])


def test_a_device_that_cannot_capture_goes_on_without_graphs(tmp_path: Path) -> None:
    said: list[Any] = []
    graphs = Recorded(RuntimeError("operation not permitted\nwhen stream is capturing"))
    encoder = packed(save_transformer(tmp_path), graphs=graphs, notify=said.append)
    vectors = [encoder.encode_texts(TEXTS[:1]) for _ in range(4)]
    same(vectors[3], vectors[0])
    assert said == ["cpu cannot capture CUDA graphs (operation not permitted): running without them, which is slower"]


@pytest.mark.long
def test_too_little_memory_means_smaller_batches_and_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    encoder = packed(save_transformer(tmp_path), graphs=Recorded(), notify=said.append)
    expected = encoder.encode_texts(MIXED)
    small = Small(encoder, monkeypatch, 256)
    same(encoder.encode_texts(MIXED), expected)
    assert said == ["cpu has too little memory for batches of the usual size: using smaller ones"]
    refused = len(small.refused)
    same(encoder.encode_texts(MIXED), expected)
    assert len(small.refused) == refused < 4  # what was learnt stays


def test_a_text_that_does_not_fit_alone_goes_to_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    encoder = packed(save_transformer(tmp_path), graphs=Recorded(), notify=said.append)
    expected = encoder.encode_texts(TEXTS)
    Small(encoder, monkeypatch, 0)
    same(encoder.encode_texts(TEXTS), expected)
    same(encoder.encode_texts(TEXTS), expected)
    assert said == [
        "cpu has too little memory for batches of the usual size: using smaller ones",
        "cpu has too little memory even for one text: using the CPU",
    ]


def full_on_cuda(init: Callable[..., None]) -> Callable[..., None]:
    def full(self: object, *given: Any, **named: Any) -> None:
        if any(str(each).startswith("cuda") for each in (*given, *named.values())):
            raise torch.OutOfMemoryError("CUDA out of memory")
        init(self, *given, **named)

    return full


@pytest.mark.parametrize("engine", ["auto", "packed", "torch"])
def test_a_model_that_does_not_fit_is_loaded_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    folder, said = str(save_transformer(tmp_path)), []
    monkeypatch.setattr("sonde.indexer.encoder.settings.available_devices", lambda: ["cuda:0", "cpu"])
    monkeypatch.setattr("sonde.indexer.encoder.loading.runs_flash", lambda _, device, __: device != "cpu")
    for kind in (PackedBert, SentenceTransformer):
        monkeypatch.setattr(kind, "__init__", full_on_cuda(kind.__init__))
    encoder = load_encoder(folder, device="cuda", engine=engine, notify=said.append)
    assert said == [f"{folder} does not fit into the memory of cuda:0: using the CPU"]
    assert (encoder.devices, encoder.spec.dtype) == (["cpu"], "float16")
    same(encoder.encode_texts(TEXTS), load_encoder(folder, device="cpu").encode_texts(TEXTS))


def test_which_devices_run_the_flash_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = plain(save_transformer(tmp_path)).shape
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0) if device == "cuda:0" else (7, 5))
    assert runs_flash(shape, "cuda:0", "float16") and runs_flash(shape, "cuda:0", "bfloat16")
    assert not runs_flash(shape, "cuda:0", "float32")
    assert not runs_flash(shape, "cuda:1", "float16")
    assert not runs_flash(shape, "cpu", "float16")


def test_the_flash_path_fits_together_on_the_meta_device(tmp_path: Path) -> None:
    """The meta device computes shapes and types only: torch checks how its kernels are called, without a GPU."""
    bert = PackedBert(plain(save_transformer(tmp_path)), "meta", "float16", None, True)
    bert._attention = flash
    room = Room(tokens=256, texts=16, longest=WINDOW)
    found = bert.tokens(torch.empty(2 * 256 + 16 + 1, dtype=torch.int32, device="meta"), room)
    assert (tuple(found.shape), found.dtype, found.device.type) == ((256, 32), torch.float16, "meta")
