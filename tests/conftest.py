"""Fixtures and settings of the whole suite.

Data that is not part of the project lies in `../shared/data` or where `SONDE_DATA` points; tests of it skip without.
"""

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

# Before anything imports huggingface_hub, which reads them once.
for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

CHECKOUT = Path(__file__).resolve().parent.parent

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


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


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of the source tree."""
    return CHECKOUT


def _sibling(name: str) -> ModuleType:
    """A helper module beside the tests; import-mode importlib puts no test folder on `sys.path`."""
    spec = importlib.util.spec_from_file_location(f"sonde_tests_{name}", Path(__file__).parent / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"no module {name}.py beside conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
