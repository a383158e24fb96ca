"""Start Streamlit with this application's settings."""

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from ...indexer.errors import SondeError
from ..http.guard import Keys

VARIABLE = "SONDE_UI"
"""The environment variable that carries the settings to the script that Streamlit runs."""


@dataclass(frozen=True, slots=True)
class UiSettings:
    """Where collections are, and who may use them.

    Attributes:
        shelf: The folder whose collections (`*.sonde`) are shown, and where new ones are made.
        collection: The name of the one to show first.
        keys: File of API keys, as `sonde key` writes it; None: no key is asked for.
        device: Where models run: "auto", "cpu", "cuda" …
        local: Whether only this machine's user reaches the server, and may name files on it.
    """

    shelf: str = "."
    collection: str | None = None
    keys: str | None = None
    device: str = "auto"
    local: bool = True

    @classmethod
    def load(cls) -> Self:
        """Read the settings from the environment, defaults if there are none."""
        return cls(**json.loads(os.environ.get(VARIABLE, "{}")))

    def variable(self) -> dict[str, str]:
        """Return the environment variable that carries them."""
        return {VARIABLE: json.dumps(asdict(self))}

    @property
    def folder(self) -> Path:
        """The shelf's folder."""
        return Path(self.shelf).absolute()


def settings_for(place: Path, keys: Path | None, device: str, *, local: bool) -> UiSettings:
    """Return the settings for a collection, or for a folder of collections.

    Raises:
        SondeError: `place` is neither, or the keys cannot be read.
    """
    if keys is not None:
        Keys.load(keys)
    kept = str(keys.absolute()) if keys else None
    whole = place.absolute()
    if (whole / "catalog.db").is_file():
        name = whole.name.removesuffix(".sonde")
        if name == whole.name:
            raise SondeError(f"{place} is a collection, but its folder's name lacks the ending .sonde: rename it")
        return UiSettings(str(whole.parent), name, kept, device, local)
    if not whole.is_dir():
        raise SondeError(f"there is no folder {place}: name a collection, or a folder to keep collections in")
    return UiSettings(str(whole), None, kept, device, local)


THREADS = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Threads of a model that wait must not spin: on two cores, beside a browser, that doubled the time of a search."""
SCRIPT = Path(__file__).with_name("script.py")
ACCENT = {"light": "#0f6e84", "dark": "#1f88a2"}
OPTIONS = {
    "browser.gatherUsageStats": "false",
    "client.showErrorDetails": "none",  # what a page does not expect is logged, not shown
    "client.toolbarMode": "viewer",
    "global.developmentMode": "false",
    "logger.level": "warning",
    "server.enableCORS": "true",  # Streamlit's word for: other sites may not
    "server.enableXsrfProtection": "true",
    "server.fileWatcherType": "none",
    "server.headless": "true",
    "server.maxUploadSize": "4000",  # megabytes
    "server.runOnSave": "false",
    **{f"theme.{mode}.primaryColor": color for mode, color in ACCENT.items()},
}


def command(host: str, port: int) -> list[str]:
    """Return the command line that runs the server."""
    listening = {"server.address": host, "server.port": str(port)}
    flags = [f"--{name}={value}" for name, value in (OPTIONS | listening).items()]
    # -P: a file torch.py in the folder where it is started must not be taken for the library
    return [sys.executable, "-P", "-m", "streamlit", "run", str(SCRIPT), *flags]


def launch(settings: UiSettings, host: str, port: int) -> None:
    """Become the server: this process is replaced, so that Ctrl-C and signals reach it."""
    arguments = command(host, port)
    os.execve(arguments[0], arguments, {**THREADS, **os.environ, **settings.variable()})
