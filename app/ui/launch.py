"""Starting Streamlit with the settings of this application."""

import os
import sys
from pathlib import Path

from .settings import UiSettings

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
