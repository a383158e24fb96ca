"""The address of the Explore page: the selection and how it is shown; addresses of the Map page still open the same."""

import json
from collections.abc import Mapping

from ....indexer.errors import UsageError
from ...api.functions import read_outlines

LIT = 100
"""Hits of the query of an old address."""
SELECTION = "s"
STATE = (SELECTION, "color", "names", "view", "sort")
"""What the client keeps in the address."""


def state_of(address: Mapping[str, str], map: str) -> tuple[dict[str, str], str]:
    """Return what an address means, and what of it cannot be read, as a sentence.

    Old addresses have a query in `q`, outlines in `area`, "nothing" for no colour, and a level of names in `names`.
    """
    state = {name: address[name] for name in STATE if address.get(name)}
    wrong = ""
    if SELECTION not in state:
        parts: list[object] = []
        try:
            outlines = read_outlines(address.get("area", ""))
            if outlines:
                parts.append({"kind": "area", "map": map, "outlines": outlines})
        except UsageError as error:
            wrong = str(error)
        if address.get("q", "").strip():
            parts.append({"kind": "query", "query": address["q"].strip(), "k": LIT})
        if parts:
            state[SELECTION] = json.dumps({"mode": "all", "parts": parts}, ensure_ascii=False)
    if state.get("color") == "nothing":
        state["color"] = "-"
    if state.get("names") in ("large", "small"):
        del state["names"]
    return state, wrong
