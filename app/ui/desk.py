"""What the workbench of the Explore page asks the server for, beside Streamlit: the table, texts, hits, parts.

Streamlit would draw the page again for each of these, and send the whole table with it. These are plain requests
instead. A page that was drawn for a session that may read the collection has an address with a random token in it; the
token stands for one table of one collection, so a row means the same document for as long as the token is valid.
"""

import json
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ...indexer.errors import SondeError, UsageError
from ..api import Collection
from ..api.workbench import best_rows, documents_in, rows_of_part
from .page import said_by_pages

if TYPE_CHECKING:
    from ...pipelines.facets import Facets

SERVER = secrets.token_hex(8)
"""This process: a page that gets another answer was drawn by a server that no longer runs."""
MOST_TABLES = 12
"""Tables that pages may ask about; the one that was used longest ago is given up first."""
MOST_ROWS = 500
LONGEST = 1_000
"""Characters of a text in a list; the drawer shows all of it."""
MOST_HITS, DIGITS = 1_000, 9


@dataclass(frozen=True)
class Seat:
    """One table, and the collection that it was made of."""

    collection: Collection
    table: "Facets"


class Desk:
    """The tables that pages show, by their tokens."""

    def __init__(self) -> None:
        """Begin with none."""
        self._seats: OrderedDict[str, Seat] = OrderedDict()
        self._tokens: dict[tuple[object, ...], str] = {}
        self._lock = Lock()

    def seat(self, collection: Collection, table: "Facets") -> str:
        """Return the token of a table; the same one for as long as the table stays the same."""
        key = (str(collection.path), table.stamp)
        with self._lock:
            token = self._tokens.get(key)
            if token not in self._seats:
                token = self._tokens[key] = secrets.token_urlsafe(18)
                self._seats[token] = Seat(collection, table)
            assert token is not None
            self._seats.move_to_end(token)
            while len(self._seats) > MOST_TABLES:
                self._seats.popitem(last=False)
            self._tokens = {known: name for known, name in self._tokens.items() if name in self._seats}
        return token

    def find(self, token: str) -> Seat | None:
        """Return what a token stands for; None if it is not, or no longer, known."""
        with self._lock:
            if token in self._seats:
                self._seats.move_to_end(token)
            return self._seats.get(token)


DESK = Desk()


def routes() -> list[Route]:
    """Return the addresses that the workbench uses."""
    answers = {"table": _table, "rows": _rows, "search": _search, "resolve": _resolve}
    tables = [
        Route(f"/workbench/{{token}}/{name}", _route(answer), methods=["GET"]) for name, answer in answers.items()
    ]
    return [Route("/workbench/server", _server, methods=["GET"]), *tables]


def _server(request: Request) -> Response:
    del request
    return JSONResponse({"id": SERVER}, headers={"Cache-Control": "no-store"})


def _route(answer: Callable[[Seat, Request], Response]) -> Callable[[Request], Response]:
    def respond(request: Request) -> Response:
        seat = DESK.find(request.path_params["token"])
        if seat is None:
            return _refusal("This page is out of date. Reload it.", 404)
        try:
            return answer(seat, request)
        except SondeError as error:
            return _refusal(said_by_pages(error), 400)

    return respond


def _refusal(said: str, status: int) -> Response:
    return JSONResponse({"message": said[:1].upper() + said[1:]}, status)


def _table(seat: Seat, request: Request) -> Response:
    del request
    headers = {"Cache-Control": "private, max-age=86400, immutable", "X-Content-Type-Options": "nosniff"}
    return Response(seat.table.pack(), media_type="application/octet-stream", headers=headers)


def _rows(seat: Seat, request: Request) -> Response:
    try:
        rows = [int(row) for row in request.query_params.get("rows", "").split(",") if row][:MOST_ROWS]
    except ValueError:
        raise UsageError("the rows are not whole numbers") from None
    return JSONResponse(documents_in(seat.collection, seat.table, rows, LONGEST))


def _search(seat: Seat, request: Request) -> Response:
    query, k = request.query_params.get("q", ""), request.query_params.get("k", "100")
    if not k.isdecimal() or len(k) > DIGITS or not int(k):
        raise UsageError("the number of hits is not a whole number from 1")
    return JSONResponse(best_rows(seat.collection, seat.table, query, min(int(k), MOST_HITS)))


def _resolve(seat: Seat, request: Request) -> Response:
    try:
        part: Any = json.loads(request.query_params.get("part", ""))
    except (ValueError, RecursionError):
        raise UsageError("this part of the selection is not valid: remove it") from None
    return JSONResponse(rows_of_part(seat.collection, seat.table, part))
