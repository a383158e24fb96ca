"""`sonde ui`."""

from pathlib import Path
from typing import Annotated

import typer

from .options import Device
from .output import say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ui")(ui)


def ui(
    place: Annotated[Path, typer.Argument(metavar="[C.sonde]", help="A collection, or a folder of them.")] = Path(),
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to listen on.")] = 8501,
    keys: Annotated[Path | None, typer.Option("--keys", metavar="FILE", help="File of API keys.")] = None,
    device: Device = "auto",
) -> None:
    """Explore collections in a browser: search, map, clusters, topics, labels; make new ones from files.

    Shows every collection of the folder. Listens on this machine alone unless --host says otherwise, which needs
    --keys: each visitor is then asked for a key, and one of rights "read" changes nothing.

    \b
    Examples:
      sonde ui …
      sonde ui reviews.sonde …
      sonde ui /srv/collections --host 0.0.0.0 --keys keys.json …
    """
    from ...indexer.errors import MissingExtraError
    from ..http.settings import ServeSettings, is_loopback

    try:
        import streamlit
    except ImportError as error:
        raise MissingExtraError(str(error.name), "ui", "`sonde ui`") from None
    del streamlit
    from ..ui.launch import launch
    from ..ui.settings import settings_for

    ServeSettings(host, port, keys, device).check_exposure()
    settings = settings_for(place, keys, device, local=is_loopback(host) and keys is None)
    say(f"the collections in {settings.shelf} are at http://{host}:{port}, stop with Ctrl-C")
    launch(settings, host, port)
