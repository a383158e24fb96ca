"""Start Streamlit with this application's settings."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from ...indexer.errors import SondeError, UsageError
from ..api.functions import address_of, lasting_file
from ..http.guard import Keys

VARIABLE = "SONDE_UI"
"""The environment variable that carries the settings to the script that Streamlit runs."""
SERVER_VARIABLE = "SONDE_UI_SERVER"
"""The environment variable that carries the server's own options to its process."""


@dataclass(frozen=True, slots=True)
class UiSettings:
    """Where collections are, and who may use them.

    Attributes:
        shelf: The folder whose collections (`*.sonde`) are shown, and where new ones are made.
        collection: The name of the one to show first.
        keys: File of API keys, as `sonde serve key` writes it; None: no key is asked for.
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

    @property
    def jobs(self) -> Path:
        """The folder of the jobs, and of the files that were sent for them."""
        return self.folder / ".sonde-jobs"


def settings_for(place: Path, keys: Path | None, device: str, *, local: bool) -> UiSettings:
    """Return the settings for a collection, or for a folder of collections.

    Raises:
        SondeError: `place` is neither, or the keys cannot be read.
    """
    if keys is not None:
        Keys.load(keys)
    kept = str(keys.absolute()) if keys else None
    whole = place.absolute()
    if address := address_of(place):
        said = f"the web UI does not open collections in an object store yet: search {address} with `sonde search`"
        raise UsageError(said, code="sharded")
    if lasting_file(whole):
        name = whole.name.removesuffix(".sonde")
        if name == whole.name:
            raise SondeError(f"{place} is a collection, but its folder's name lacks the ending .sonde: rename it")
        return UiSettings(str(whole.parent), name, kept, device, local)
    if not whole.is_dir():
        raise SondeError(f"there is no folder {place}: name a collection, or a folder to keep collections in")
    return UiSettings(str(whole), None, kept, device, local)


THREADS = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Threads of a model that wait must not spin: on two cores, beside a browser, that doubled the time of a search."""
ACCENT = {"light": "#0f6e84", "dark": "#1b7a92"}
OPTIONS = {
    "browser.gatherUsageStats": False,
    "client.showErrorDetails": "none",  # what a page does not expect is logged, not shown
    "client.toolbarMode": "viewer",
    "global.developmentMode": False,
    "logger.hideWelcomeMessage": True,  # for --host 0.0.0.0 it would ask other servers for this machine's address
    "logger.level": "warning",
    "server.enableCORS": True,  # Streamlit's word for: other sites may not
    "server.enableXsrfProtection": True,
    "server.fileWatcherType": "none",
    "server.headless": True,
    "server.maxUploadSize": 4000,  # megabytes
    "server.runOnSave": False,
    **{f"theme.{mode}.primaryColor": color for mode, color in ACCENT.items()},
}


def server_options(host: str, port: int) -> dict[str, Any]:
    """Return Streamlit's options."""
    return OPTIONS | {"server.address": host, "server.port": port}


def launch(settings: UiSettings, host: str, port: int, allow_host: Sequence[str] = ()) -> None:
    """Become the server: this process is replaced, so that Ctrl-C and signals reach it."""
    # -P: a file torch.py in the folder where it is started must not be taken for the library
    command = [sys.executable, "-P", "-m", f"{__package__}.server"]
    given = {SERVER_VARIABLE: json.dumps({"options": server_options(host, port), "allow_host": list(allow_host)})}
    os.execve(command[0], command, {**THREADS, **os.environ, **settings.variable(), **given})
