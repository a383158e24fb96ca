"""`sonde serve`, `sonde serve key`, `sonde mcp` and `sonde ui`."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from .groups import DefaultGroup
from .output import Device, collections_in, say

if TYPE_CHECKING:
    from ..http.guard import Rights


AllowHost = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="Another name of this server, as of a proxy; repeatable."),
]


def register(app: typer.Typer) -> None:
    """Add the commands, and the old name of `sonde serve key`."""
    group = typer.Typer(cls=DefaultGroup, no_args_is_help=True, rich_markup_mode=None)
    group.callback()(_keep_group)
    group.command("collections", short_help="Serve collections; `collections` may be left out.")(serve)
    group.command("key", short_help="Add an API key to a file and print it.")(key)
    app.add_typer(group, name="serve")
    app.command("key", hidden=True)(key)
    app.command("mcp")(mcp)


def _keep_group() -> None:
    """Serve collections over HTTP, or add an API key."""


def serve(
    collections: Annotated[
        list[Path], typer.Argument(metavar="C.sonde...", help="Collections to serve.", autocompletion=collections_in)
    ],
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to listen on.")] = 8080,
    keys: Annotated[Path | None, typer.Option("--keys", metavar="FILE", help="File of API keys.")] = None,
    rate: Annotated[float | None, typer.Option("--rate", help="Requests a second for each client.")] = None,
    queue: Annotated[int, typer.Option("--queue", help="Searches that may wait; beyond it, 503.")] = 256,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="Longest time to an answer.")] = 30.0,
    allow_host: AllowHost = None,
    device: Device = "auto",
) -> None:
    """Serve collections over HTTP: search, similar, documents, runs, metrics; OpenAPI at /openapi.json.

    Listens on this machine only; another --host needs --keys. Answers only under the address that it listens on,
    localhost and the names of --allow-host. Documents that another process adds or deletes are visible from the next
    request on.

    \b
    Examples:
      sonde serve reviews.sonde
      sonde serve reviews.sonde papers.sonde --host 0.0.0.0 --keys keys.json
    """
    from ...indexer.errors import MissingExtraError
    from ..api.opened import check_device

    try:
        import fastapi
        import prometheus_client
        import uvicorn
    except ImportError as error:
        raise MissingExtraError(str(error.name), "all", "`sonde serve`") from None
    del fastapi, prometheus_client, uvicorn
    from ..http.hosted import Hosts
    from ..http.server import Server
    from ..http.service import create_app
    from ..http.settings import ServeSettings, listening

    names = tuple(allow_host or ())
    check_device(device)
    settings = ServeSettings(host, port, keys, device, queue=queue, timeout=timeout, rate=rate, allow_host=names)
    settings.check_exposure()
    service = create_app(Hosts.open(collections, settings), settings)
    bound = listening(host, port)
    shown = f"[{host}]" if ":" in host else host
    served = ", ".join(service.state.context.hosts.hosted)
    say(f"serving {served} at http://{shown}:{bound.getsockname()[1]}, stop with Ctrl-C")
    server = Server(service, settings)
    with bound, suppress(KeyboardInterrupt):
        server.run([bound])
    say(f"sonde: {server.ending}")


def key(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File of API keys; made if it is absent.")],
    name: Annotated[str, typer.Option("--name", help="What to call the key.")],
    rights: Annotated[str, typer.Option("--rights", help="read, or write, which includes reading.")] = "read",
) -> None:
    """Add an API key for `sonde serve` and print it: only its digest is kept, so it cannot be shown again.

    \b
    Examples:
      sonde serve key keys.json --name reader
      sonde serve key keys.json --name importer --rights write
    """
    from ..http.guard import add_key

    print(add_key(file, name, cast("Rights", rights)))
    say(f"{file} knows the key {name!r}; store the line above safely, because it is not shown again")


def mcp(
    collections: Annotated[
        list[Path], typer.Argument(metavar="C.sonde...", help="Collections to offer.", autocompletion=collections_in)
    ],
    http: Annotated[bool, typer.Option("--http", help="Listen over streamable HTTP instead of stdin.")] = False,
    host: Annotated[str, typer.Option("--host", help="Address to listen on, with --http.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to listen on, with --http.")] = 8081,
    keys: Annotated[Path | None, typer.Option("--keys", metavar="FILE", help="File of API keys, with --http.")] = None,
    allow_host: AllowHost = None,
    device: Device = "auto",
) -> None:
    """Let an assistant use collections: an MCP server on standard input and output, or over HTTP.

    Its tools search, answer, count, compare, list topics and clusters with their trends, read documents, and label
    texts; none of them writes. Name the command in the assistant's settings, or with --http its address.

    \b
    Examples:
      sonde mcp reviews.sonde
      sonde mcp reviews.sonde papers.sonde --http
    """
    from ..api import open as open_collection
    from ..mcp import server_of

    server = server_of(*(open_collection(each, device=device) for each in collections))
    if not http:
        server.run("stdio")
        return
    from ..http.server import Server
    from ..http.settings import ServeSettings, listening
    from ..mcp.http import PATH, http_app

    settings = ServeSettings(host, port, keys, device, allow_host=tuple(allow_host or ()))
    settings.check_exposure()
    runner, bound = Server(http_app(server, settings), settings), listening(host, port)
    shown = f"[{host}]" if ":" in host else host
    say(f"MCP at http://{shown}:{bound.getsockname()[1]}{PATH}, stop with Ctrl-C")
    with bound, suppress(KeyboardInterrupt):
        runner.run([bound])
    say(f"sonde: {runner.ending}")


def register_ui(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ui")(ui)


def ui(
    place: Annotated[
        Path,
        typer.Argument(metavar="[C.sonde]", help="A collection, or a folder of them.", autocompletion=collections_in),
    ] = Path(),
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to listen on.")] = 8501,
    keys: Annotated[Path | None, typer.Option("--keys", metavar="FILE", help="File of API keys.")] = None,
    allow_host: AllowHost = None,
    device: Device = "auto",
) -> None:
    """Explore collections in a browser: search, map, clusters, topics, labels; make new ones from files.

    Shows every collection of the folder. Listens on this machine alone unless --host says otherwise, which needs
    --keys: each visitor is then asked for a key, and one of rights "read" changes nothing. Answers only under that
    address, localhost and the names of --allow-host.

    \b
    Examples:
      sonde ui
      sonde ui reviews.sonde
      sonde ui /srv/collections --host 0.0.0.0 --keys keys.json
    """
    from ...indexer.errors import MissingExtraError
    from ..api.opened import check_device

    try:
        import streamlit
    except ImportError as error:
        raise MissingExtraError(str(error.name), "ui", "`sonde ui`") from None
    del streamlit
    from ..http.settings import ServeSettings, is_loopback
    from ..ui.launch import launch, settings_for

    names = tuple(allow_host or ())
    check_device(device)
    ServeSettings(host, port, keys, device, allow_host=names).check_exposure()
    settings = settings_for(place, keys, device, local=is_loopback(host) and keys is None)
    say(f"the collections in {settings.shelf} are at http://{host}:{port}, stop with Ctrl-C")
    launch(settings, host, port, names)
