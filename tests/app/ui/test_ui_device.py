"""Jobs of the web UI compute on the device that `sonde ui --device` named."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sonde.app.ui.jobs import panel


@pytest.mark.parametrize(
    ("device", "command", "expected"),
    [
        ("auto", ("cluster", "-k", "3"), ("cluster", "a.sonde", "-k", "3")),
        ("cuda:1", ("cluster", "-k", "3"), ("cluster", "a.sonde", "-k", "3", "--device", "cuda:1")),
        ("cpu", ("topics",), ("topics", "a.sonde", "--device", "cpu")),
        ("cuda", ("taxonomy update",), ("taxonomy", "update", "a.sonde", "--device", "cuda")),
        ("cuda", ("label", "--device", "cpu"), ("label", "a.sonde", "--device", "cpu")),
        ("cuda", ("export", "--to", "x"), ("export", "a.sonde", "--to", "x")),
    ],
)
def test_a_job_gets_the_device(
    device: str, command: tuple[str, ...], expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, ...]] = []

    def start(title: str, collection: str, words: tuple[str, ...]) -> Any:
        started.append(words)
        return SimpleNamespace(id="1")

    shelf = SimpleNamespace(settings=SimpleNamespace(device=device), jobs=SimpleNamespace(start=start))
    collection = SimpleNamespace(path=Path("a.sonde"))
    monkeypatch.setattr(panel, "st", SimpleNamespace(session_state={}, rerun=lambda: None))
    panel.start(cast(Any, shelf), cast(Any, collection), "Title", command[0], *command[1:])
    assert started == [expected]
