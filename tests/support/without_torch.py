"""Run `sonde` commands, one a line of JSON on standard input, with or without the libraries of the full installation.

`python without_torch.py hide` hides them as if they were not installed. `python without_torch.py elsewhere` hides from
Sonde what only POSIX systems have, and has it replace and delete files as on Windows. After each command comes a line
with its exit code, and at the end one with the hidden libraries that were loaded all the same.
"""

import builtins
import json
import os
import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution
from typing import Any

FULL_ONLY = {
    "bertopic", "evoc", "hdbscan", "ir_measures", "joblib", "matplotlib", "numba", "onnx", "pandas", "plotly",
    "pyarrow", "scipy", "sentence_transformers", "sklearn", "streamlit", "torch", "transformers", "umap", "zstandard",
}  # fmt: skip
MODULES = {"scikit_learn": "sklearn", "umap_learn": "umap"}
"""The modules of the distributions whose names are others."""


class Hiding(MetaPathFinder):
    """A finder that does not find them."""

    def __init__(self, finder: Any) -> None:
        self._finder = finder

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] in FULL_ONLY:
            return None
        return self._finder.find_spec(fullname, path, target)

    def find_distributions(self, context: Any) -> Iterator[Distribution]:
        """Yield what is installed, without the hidden libraries."""
        for found in getattr(self._finder, "find_distributions", lambda _: ())(context):
            name = found.metadata["Name"].lower().replace("-", "_")
            if MODULES.get(name, name) not in FULL_ONLY:
                yield found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)


def hide() -> None:
    """Hide the libraries from now on."""
    sys.meta_path[:] = [Hiding(finder) for finder in sys.meta_path]


POSIX = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"}
"""Modules that Windows does not have."""
POSIX_ONLY = (
    "fchmod", "fork", "geteuid", "getpgid", "getuid", "killpg", "mkfifo", "pread", "preadv", "pwrite",
    "sched_getaffinity", "setsid", "statvfs", "sync",
)  # fmt: skip
"""Functions of `os` that Windows does not have."""


def be_elsewhere() -> None:
    """Hide from Sonde what Windows lacks; what libraries import stays."""
    real = builtins.__import__

    def imported(name: str, globals: Any = None, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] in POSIX and str((globals or {}).get("__name__")).startswith("sonde"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, globals, *rest, **more)

    from sonde.indexer import files

    builtins.__import__ = imported
    files.WINDOWS = True
    for name in POSIX_ONLY:
        if hasattr(os, name):
            delattr(os, name)


def _main() -> None:
    if sys.argv[1] == "hide":
        hide()
    elif sys.argv[1] == "elsewhere":
        be_elsewhere()
    from sonde.app.cli.main import main

    if sys.argv[2:]:  # one command, such as a service, that keeps this process
        sys.argv[:] = ["sonde", *sys.argv[2:]]
        return main()
    for line in sys.stdin.read().splitlines():
        sys.argv[:] = ["sonde", *json.loads(line)]
        code: object = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        sys.stdout.flush()
        print(f"exit code {code or 0}", flush=True)
    print("loaded:", *sorted(FULL_ONLY & set(sys.modules)))
    return None


if __name__ == "__main__":
    _main()
