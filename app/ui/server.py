"""The process of `sonde ui`: Streamlit's server, which answers only under its own names and to its own pages."""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from ..http.origin import Names, OwnPages
from ..stopped import terminable
from .launch import SERVER_VARIABLE

SCRIPT = Path(__file__).with_name("script.py")


def main() -> None:
    """Serve until Ctrl-C or SIGTERM."""
    given = json.loads(os.environ[SERVER_VARIABLE])
    names = Names(given["options"]["server.address"], tuple(given["allow_host"]))
    app = st.App(SCRIPT, middleware=[Middleware(OwnPages, names=names)])
    with terminable(), suppress(KeyboardInterrupt):
        app.run(config=given["options"])
    print("sonde: stopped; running jobs continue", file=sys.stderr)


if __name__ == "__main__":
    main()
