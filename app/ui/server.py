"""The process of `sonde ui`: Streamlit's server, which answers only under its own names and to its own pages."""

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from ..http.origin import Names, OwnPages
from ..stopped import terminable
from .desk import routes
from .jobs import Jobs
from .launch import SERVER_VARIABLE, UiSettings
from .workspace import warm_up

SCRIPT = Path(__file__).with_name("script.py")


def main() -> None:
    """Serve until Ctrl-C or SIGTERM."""
    given = json.loads(os.environ[SERVER_VARIABLE])
    names = Names(given["options"]["server.address"], tuple(given["allow_host"]))
    settings = UiSettings.load()

    @asynccontextmanager
    async def announced(_: st.App) -> AsyncIterator[None]:
        address = f"http://{given['options']['server.address']}:{given['options']['server.port']}"
        _say(f"the collections in {settings.shelf} are at {address}, stop with Ctrl-C")
        yield

    app = st.App(SCRIPT, lifespan=announced, routes=routes(), middleware=[Middleware(OwnPages, names=names)])
    import_module("pandas")  # whole: Plotly takes a pandas that another thread is still importing for a finished one
    warm_up(settings)
    with terminable(), suppress(KeyboardInterrupt):
        app.run(config=given["options"])
    running = any(job.state == "running" for job in Jobs(settings.jobs).all())
    _say("sonde: stopped" + ("; running jobs continue" if running else ""))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
