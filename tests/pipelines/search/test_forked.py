"""A process that was forked after a search, as multiprocessing does on Linux, searches with threads of its own."""
# ruff: noqa: F811  (a fixture that is imported)

import os
import signal

import pytest
from searched import collection  # noqa: F401  (fixture)

from sonde.app.api import Collection

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
SECONDS = 60


def test_a_forked_process_searches(collection: Collection) -> None:
    ids = [hit.id for hit in collection.search("apple river", k=5)]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        try:
            os.write(writing, " ".join(hit.id for hit in collection.search("apple river", k=5)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        assert answer.read().split() == ids
    assert os.waitpid(child, 0)[1] == 0
