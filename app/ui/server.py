"""The process of `sonde ui`: Streamlit's server, which answers only under its own names and to its own pages."""

import json
import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from ..http.origin import Names, OwnPages
from ..stopped import terminable
from .desk import routes
from .launch import SERVER_VARIABLE, UiSettings
from .warm import warm_up

SCRIPT = Path(__file__).with_name("script.py")


def main() -> None:
    """Serve until Ctrl-C or SIGTERM."""
    given = json.loads(os.environ[SERVER_VARIABLE])
    names = Names(given["options"]["server.address"], tuple(given["allow_host"]))
    app = st.App(SCRIPT, routes=routes(), middleware=[Middleware(OwnPages, names=names)])
    import_module("pandas")  # whole: Plotly takes a pandas that another thread is still importing for a finished one
    warm_up(UiSettings.load())
    with terminable(), suppress(KeyboardInterrupt):
        app.run(config=given["options"])
    print("sonde: stopped; running jobs continue", file=sys.stderr)


if __name__ == "__main__":
    main()
