"""Serves a collection in a process of its own, with the encoder without weights: python served.py FOLDER PORT."""

import sys
from pathlib import Path

import uvicorn
from fake_encoder import FakeEncoder

from sonde.app.http.hosted import Hosts
from sonde.app.http.service import create_app
from sonde.app.http.settings import ServeSettings


def main() -> None:
    settings = ServeSettings(port=int(sys.argv[2]))
    hosts = Hosts.open([Path(sys.argv[1])], settings, encoder=FakeEncoder())  # type: ignore[arg-type]
    uvicorn.run(create_app(hosts, settings), host=settings.host, port=settings.port, log_level="warning")


if __name__ == "__main__":
    main()
