"""Fixtures and settings of the whole suite.

Data that is not part of the project lies in `../shared/data` or where `SONDE_DATA` points; tests of it skip without.
"""

import gc
import os
import sys
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, settings

# Before anything imports huggingface_hub, which reads them once.
for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

IN_MEMORY = Path("/dev/shm")
"""Linux's file system in memory. Sonde flushes whatever it writes, and each flush takes a disk several milliseconds."""


def fits_in_memory() -> bool:
    """Whether the files of all tests fit there, and programs can be started there."""
    try:
        found = os.statvfs(IN_MEMORY)
    except (OSError, AttributeError):  # not on Linux
        return False
    room = min(found.f_bavail * found.f_frsize, psutil.virtual_memory().available // 2)
    return room > 4 << 30 and not found.f_flag & os.ST_NOEXEC and os.access(IN_MEMORY, os.W_OK)


if fits_in_memory():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))

from small_reviews import encoder, reviews, sonde, unchanged  # noqa: E402, F401  (fixtures)

from sonde.indexer.store.lock import Patience  # noqa: E402

CHECKOUT = Path(__file__).resolve().parent.parent

EXAMPLES = int(os.environ.get("SONDE_EXAMPLES", "25"))
"""Examples of each property; `make soak` tries many more."""
settings.register_profile("default", deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

LONG_FILES = (
    "test_ui_accessible.py", "test_ui_browser.py", "test_tutorials.py", "test_docs.py", "test_hostile_text.py",
    "test_ui_faults.py", "test_topics.py", "test_offline.py", "test_kill_runs.py", "test_client_page.py",
    "test_ui_walk.py", "test_kill_model.py", "test_verify.py", "test_any_history.py", "test_model.py",
    "test_light.py", "test_families.py", "test_evaluate_models.py", "test_levels.py", "test_ui_data.py",
    "test_ui_drawer.py", "test_packed.py", "test_train_biencoder.py", "test_late_index.py", "test_umap.py",
    "test_encoder_int8.py", "test_ui_jobs.py", "test_packaging.py", "test_power_cuts.py", "test_gpu_script.py",
)  # fmt: skip
"""Files that take twenty seconds or more, and files that may on a slow disk: the longest first."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers in the process of the tests fail at once where another one writes; a test that wants it sets patience."""
    monkeypatch.setattr("sonde.indexer.store.lock.USUAL", Patience())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave the garbage collector alone while every worker imports and collects thousands of tests: 3 s of each."""
    gc.disable()
    found = yield
    gc.freeze()
    gc.enable()
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the long files, so that one worker does not end minutes after the other."""
    order = {name: place for place, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


class SharedData:
    """The folder of development data; `shared_data / "retrieval/cacm"` is a path that exists, or the test skips."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __truediv__(self, name: str) -> Path:
        path = self.root / name
        if not path.exists():
            pytest.skip(f"no data at {path}: set SONDE_DATA to the folder that holds {name}")
        return path


@pytest.fixture(scope="session")
def shared_data() -> SharedData:
    """Development data that the project does not ship; the test skips where it is absent."""
    return SharedData(Path(os.environ.get("SONDE_DATA", CHECKOUT.parent / "shared" / "data")))


@pytest.fixture(scope="module", autouse=True)
def no_process_outlives_a_file() -> Generator[None]:
    """End the processes that killed ones are copied from: tests of other files count the children of this process."""
    yield
    if forked := sys.modules.get("forked"):
        forked.end_all()


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of the source tree."""
    return CHECKOUT
