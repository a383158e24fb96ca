"""The built wheel, and clean environments outside the checkout in which it is installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path


def run(*command: str, cwd: Path | None = None, limit: float = 300) -> str:
    """Run a program that knows nothing of this environment; return what it printed."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", cwd=cwd, env=environment, timeout=limit, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build_wheel(checkout: Path, scratch: Path) -> Path:
    """Build the wheel from a copy of the tree, so that no leftover of an earlier build gets in."""
    source, out = scratch / "source", scratch / "dist"
    source.mkdir()
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        shutil.copy(checkout / name, source)
    for name in ("src", "app", "indexer", "pipelines"):
        shutil.copytree(checkout / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation")
    run(*pip, "--wheel-dir", str(out), str(source))
    (built,) = out.glob("sonde-*.whl")
    return built


def environment(folder: Path) -> Path:
    """Make an empty environment; return its Python."""
    run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    return program(folder, "python")


def program(folder: Path, name: str) -> Path:
    """Return a program of an environment."""
    return folder / ("Scripts" if os.name == "nt" else "bin") / (f"{name}.exe" if os.name == "nt" else name)
