"""What the tests of training share: one thread, and a tiny model to start from."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_models
import torch


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny matrices gain nothing from a second thread, and equal sums need the same number of them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny random BERT."""
    return tiny_models.save_transformer(tmp_path_factory.mktemp("base"))
