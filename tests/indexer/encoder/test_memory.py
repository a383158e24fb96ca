"""Too little memory on a device: smaller batches, then the CPU, each reported once."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import TEXTS, save_transformer

from sonde.indexer.encoder import load_encoder
from sonde.indexer.encoder.assembly import assemble_encoder
from sonde.indexer.encoder.forward import DeviceFullError, Sparing, fitting
from sonde.indexer.encoder.loading import load_model
from sonde.indexer.encoder.models import Located
from sonde.indexer.encoder.settings import EncoderSettings

SMALLER = "cuda:1 has too little memory for batches of the usual size: using smaller ones"
ON_CPU = "cuda:1 has too little memory even for one text: using the CPU"


@pytest.mark.parametrize(
    ("room", "pieces", "said"),
    [
        (9, [["abcdefg"], ["ab"]], []),
        (3, [["ab", "cd", "ef", "g"], ["a", "b"]], [SMALLER]),
        (1, [["a", "b", "c", "d", "e", "f", "g"], ["a", "b"]], [SMALLER]),
        (0, [["ABCDEFG"], ["AB"]], [SMALLER, ON_CPU]),
    ],
)
def test_pieces_that_fit(room: int, pieces: list[list[str]], said: list[str]) -> None:
    heard: list[Any] = []

    def run(batch: str) -> str:
        if len(batch) > room:
            raise torch.OutOfMemoryError("too large")
        return batch

    sparing = Sparing("cuda:1", run, lambda: str.upper, heard.append)
    assert [sparing.run(batch) for batch in ("abcdefg", "ab")] == pieces
    assert heard == said


def test_other_errors_are_raised() -> None:
    def fail(_: str) -> str:
        raise ValueError("other")

    with pytest.raises(ValueError, match="other"):
        Sparing("cuda:1", fail, lambda: str.upper, lambda _: None).run("abc")
    with pytest.raises(ValueError, match="other"), fitting("m", "cuda:0"):
        raise ValueError("other")
    with (
        pytest.raises(DeviceFullError, match="m does not fit into the memory of cuda:0: use device cpu"),
        fitting("m", "cuda:0"),
    ):
        raise torch.OutOfMemoryError("CUDA out of memory")


@pytest.mark.parametrize("room", [2, 0])
def test_the_library_s_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    folder = save_transformer(tmp_path)
    expected = load_encoder(str(folder), device="cpu", engine="torch").encode_texts(TEXTS)
    settings, located, said = EncoderSettings.of("cpu", "bfloat16"), Located(str(folder), folder), []
    encoder = assemble_encoder(load_model(located, settings), located, "0" * 64, settings, said.append)
    replica: Any = encoder.replicas[0]
    forward = replica._forward

    def small(features: dict[str, Any]) -> torch.Tensor:
        if len(features["input_ids"]) > room and replica.model.dtype == torch.bfloat16:
            raise torch.OutOfMemoryError("too large")
        return forward(features)

    monkeypatch.setattr(replica, "_forward", small)
    found = encoder.encode_texts(TEXTS)
    assert (found * expected).sum(axis=1).min() > 0.999
    assert len(said) == (1 if room else 2)
    assert replica.model.dtype == (torch.bfloat16 if room else torch.float32)
