"""`sonde serve`, `sonde serve key`, `sonde mcp` and `sonde ui`."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ...indexer.errors import MissingExtraError, UsageError
from .commands import DefaultGroup
from .output import Device, collections_in, option, say

if TYPE_CHECKING:
    from ..http.guard import Rights

HOST, MCP_PORT = "127.0.0.1", 8081
AllowHost = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="Another host name of the server, e.g. a proxy's."),
]


def register(app: typer.Typer) -> None:
    """Add the commands, and the old name of `sonde serve key`."""
    group = typer.Typer(cls=DefaultGroup, no_args_is_help=True, rich_markup_mode=None)
    group.callback()(_keep_group)
    group.command("collections", short_help="Serve collections; `collections` may be left out.")(serve)
    group.command("key", short_help="Add, list or remove API keys of a file.")(key)
    app.add_typer(group, name="serve")
    app.command("key", hidden=True)(key)
    app.command("mcp")(mcp)
    app.command("ui")(ui)


def _keep_group() -> None:
    """Serve collections over HTTP, or manage API keys."""


def serve(
    collections: Annotated[
        list[Path], typer.Argument(metavar="C.sonde...", help="Collections to serve.", autocompletion=collections_in)
    ],
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to listen on.")] = 8080,
    keys: Annotated[Path | None, typer.Option("--keys", metavar="FILE", help="File of API keys.")] = None,
    rate: Annotated[float | None, typer.Option("--rate", help="Maximum requests per second for each client.")] = None,
    queue: Annotated[int, typer.Option("--queue", help="Maximum number of waiting searches; others get 503.")] = 256,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="Maximum time for an answer.")] = 30.0,
    allow_host: AllowHost = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option("--allow-origin", metavar="ORIGIN", help="Let web pages of this origin use it; needs --keys."),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="ray[://…]",
            help="Search shards on Ray: ray (starts it on this machine) or ray://HOST:PORT (a running cluster).",
        ),
    ] = None,
    replicas: Annotated[
        int | None, typer.Option("--replicas", help="With --on: processes for each shard.", show_default="2")
    ] = None,
    device: Device = "auto",
) -> None:
    """Serve collections over HTTP: search, similar, documents, runs, metrics; OpenAPI at /openapi.json.

    Listens on this machine only; another --host needs --keys. Answers only under the address that it listens on,
    localhost and the names of --allow-host. Documents that another process adds or deletes are visible from the next
    request on.

    With --on, processes on Ray hold the FAISS indexes of sharded collections. If one dies, another replica answers. If
    there is no other, results are marked as partial.

    \b
    Examples:
      sonde serve reviews.sonde
      sonde serve large.sonde --on ray --replicas 2
      sonde serve reviews.sonde papers.sonde --host 0.0.0.0 --keys keys.json
    """
    from ..api.opened import check_device
    from ..api.served import check_elsewhere

    try:
        import fastapi
        import prometheus_client
        import uvicorn
    except ImportError as error:
        raise MissingExtraError(str(error.name), "all", "`sonde serve`") from None
    del fastapi, prometheus_client, uvicorn
    from ..http.hosted import Hosts
    from ..http.server import Server, end_at_once, timed_log
    from ..http.service import create_app
    from ..http.settings import ServeSettings, listening

    check_device(device)
    check_elsewhere(on, replicas)
    settings = ServeSettings(
        host, port, keys, device, queue=queue, timeout=timeout, rate=rate, allow_host=tuple(allow_host or ()),
        allow_origin=tuple(allow_origin or ()),
    )  # fmt: skip
    settings.check_exposure()
    shown = f"[{host}]" if ":" in host else host
    with timed_log():
        hosts = Hosts.open(collections, settings)
        server, bound = Server(create_app(hosts, settings), settings), listening(host, port)
        with bound, hosts.searched(on, replicas, settings):
            say(f"serving {', '.join(hosts.hosted)} at http://{shown}:{bound.getsockname()[1]}, stop with Ctrl-C")
            with suppress(KeyboardInterrupt):
                server.run([bound])
    say(f"sonde: {server.ending}")
    if not hosts.ended:
        end_at_once()


def key(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File of API keys; created if it does not exist.")],
    name: Annotated[str | None, typer.Option("--name", help="Add a key with this name.")] = None,
    rights: Annotated[
        str | None, typer.Option("--rights", help="read, or write, which includes reading.", show_default="read")
    ] = None,
    remove: Annotated[str | None, typer.Option("--remove", metavar="NAME", help="Remove the key of this name.")] = None,
) -> None:
    """Add an API key for `sonde serve` and print it: only its digest is kept, so it cannot be shown again.

    Without --name and --remove, lists the names and rights of the keys. A running service uses the changed file from
    the next request on.

    \b
    Examples:
      sonde serve key keys.json --name reader
      sonde serve key keys.json --name importer --rights write
      sonde serve key keys.json
      sonde serve key keys.json --remove reader
    """
    from ..http.guard import Keys, add_key, remove_key

    if remove is not None and name is not None:
        raise UsageError("give --name to add a key, or --remove to remove one")
    if rights is not None and name is None:
        raise UsageError("--rights needs --name: a key's rights are given when it is added")
    if remove is not None:
        remove_key(file, remove)
        say(f"{file} no longer contains the key {remove!r}")
    elif name is not None:
        print(add_key(file, name, cast("Rights", rights or "read")))
        say(f"{file} now contains the key {name!r}; store the line above safely, because it is not shown again")
    else:
        for each in Keys.load(file).keys:
            print(f"{each.rights:<6} {each.name}")


def mcp(
    collections: Annotated[
        list[Path], typer.Argument(metavar="C.sonde...", help="Collections to offer.", autocompletion=collections_in)
    ],
    http: Annotated[bool, typer.Option("--http", help="Listen over streamable HTTP instead of stdin.")] = False,
    host: Annotated[str, typer.Option("--host", help="Address to listen on, with --http.")] = HOST,
    port: Annotated[int, typer.Option("--port", help="Port to listen on, with --http.")] = MCP_PORT,
    keys: Annotated[Path | None, typer.Option("--keys", metavar="FILE", help="File of API keys, with --http.")] = None,
    allow_host: AllowHost = None,
    edit: Annotated[
        bool, typer.Option("--edit", help="Let the assistant edit taxonomies; each edit can be undone.")
    ] = False,
    device: Device = "auto",
) -> None:
    """Let an assistant use collections: an MCP server on standard input and output, or over HTTP.

    Its tools search, answer, count, compare, list topics and clusters with their trends, read documents, and label
    texts; they change nothing. With --edit, two more tools edit taxonomies, and keys need write rights. Put the command
    into the assistant's settings or, with --http, the server's address.

    \b
    Examples:
      sonde mcp reviews.sonde
      sonde mcp reviews.sonde papers.sonde --http
      sonde mcp reviews.sonde --edit
    """
    from ..api.opened import check_device
    from ..api.served import Opening
    from ..mcp import server_of

    check_device(device)
    if not http:
        _check_stdin_only(host=host != HOST, port=port != MCP_PORT, keys=bool(keys), allow_host=bool(allow_host))
    server = server_of(*(Opening.at(each, device) for each in collections), edit=edit)
    if not http:
        server.run("stdio")
        return
    from ..http.server import Server, timed_log
    from ..http.settings import ServeSettings, listening
    from ..mcp.http import PATH, http_app

    settings = ServeSettings(host, port, keys, device, allow_host=tuple(allow_host or ()))
    settings.check_exposure()
    runner, bound = Server(http_app(server, settings, "write" if edit else "read"), settings), listening(host, port)
    shown = f"[{host}]" if ":" in host else host
    say(f"MCP at http://{shown}:{bound.getsockname()[1]}{PATH}, stop with Ctrl-C")
    with timed_log(), bound, suppress(KeyboardInterrupt):
        runner.run([bound])
    say(f"sonde: {runner.ending}")


def _check_stdin_only(**given: bool) -> None:
    """Refuse options that would be ignored without --http: someone who gives keys expects them to be asked for."""
    if ignored := [option(name) for name, is_given in given.items() if is_given]:
        raise UsageError(f"{' and '.join(ignored)} {'needs' if len(ignored) == 1 else 'need'} --http")


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

    Shows every collection of the folder. Listens only on this machine. Another --host needs --keys: visitors are then
    asked for a key, and a key with read rights cannot change anything. Answers only under its address, localhost and
    the names of --allow-host.

    \b
    Examples:
      sonde ui
      sonde ui reviews.sonde
      sonde ui . --host 0.0.0.0 --keys keys.json
    """
    from ..api.opened import check_device

    try:
        import streamlit
    except ImportError as error:
        raise MissingExtraError(str(error.name), "ui", "`sonde ui`") from None
    del streamlit
    from ..http.settings import ServeSettings, is_loopback, listening
    from ..ui.launch import launch, settings_for

    names = tuple(allow_host or ())
    check_device(device)
    ServeSettings(host, port, keys, device, allow_host=names).check_exposure()
    settings = settings_for(place, keys, device, local=is_loopback(host) and keys is None)
    if port:
        listening(host, port).close()  # before the address is announced: the port may be taken
    launch(settings, host, port, names)
