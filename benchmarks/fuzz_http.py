"""Mutated requests and filters: nothing but documented refusals may come back, and soon.

    python benchmarks/fuzz_http.py [--number 10000] [--seed 1] [--what requests methods filters]

`sonde serve` runs over a small collection as a process of its own. Requests are made from the bodies that the OpenAPI
document describes and then changed at random: values, fields, bytes, headers, paths, query strings, sizes. Calls of
methods by name have arguments of these methods, some of which fit. Filters go straight to the compiler. A find is a
500, a wait above 5 s (60 s for topics and the like), a connection that closes without an answer, a traceback in the
log; for a filter, an error that is not a SondeError of one line, or a second of work.
"""

import argparse
import collections
import inspect
import json
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PORT = 8194
PATIENCE, FILTER_PATIENCE, LONG = 5.0, 1.0, 60.0
ROWS = [{"id": str(n), "text": f"letter {n} about apples", "stars": n % 5, "tags": ["a", "b"]} for n in range(50)]
VALUES: list[Any] = [
    None, True, 0, -1, 1, 10**6, 10**400, 2**63, 1.5, 1e308, "", " ", "a", "\x00", "\ud800", "'", '"', "%", "../..",
    "a" * 9_999, "a" * 150_000, [], [[]], {}, {"$result": "Hit"}, {"$array": [1], "dtype": "int64"}, {"$set": 1},
    {"$pairs": [[[], 1]]}, {"$date": "x"}, {"$kind": "x"}, {"$tuple": {}}, {"$float": "nan"}, ["a"] * 1_001,
    {"id": "1", "text": "a"}, [{"id": "1", "text": "a"}], {"label": "a"}, "stars > 1", "1=1", "2024-13-01", "late",
]  # fmt: skip
HEADERS = [
    "Content-Length: -1", "Content-Length: 99999999999999999999", "Transfer-Encoding: gzip",
    "Host: x", "Host:", "Origin: null", "Origin: http://[", "Authorization: Bearer \xff", "Expect: 100-continue",
    "Connection: Upgrade", "Upgrade: websocket", "Content-Encoding: gzip", "Content-Type: application/json; charset=x",
    "X-A: " + "b" * 70_000, "Accept: \x01", "Range: bytes=0-", "Cookie: " + "a=b; " * 500, "Content-Type: text/plain",
]  # fmt: skip
TERMS = [
    "stars", "tags", '"id"', "title", "length", "language", "'a'", "1", "-1", "1e999", "NULL", "TRUE", "(", ")", "AND",
    "OR", "NOT", "IN", "(1, 2)", "('a')", "BETWEEN", "LIKE", "ILIKE", "'%'", "ESCAPE", "IS", "=", "!=", "<", ">=", ",",
    "LOWER(", "LENGTH(", "CONTAINS(", "CAST(", "AS DATE", "DATE '2024'", ";", "--", "/*", "*/", "'", '"', "`", "[", "]",
    "{", "::", ":", "?", "$1", "@a", "||", "->", "~", "CASE WHEN", "THEN", "END", "SELECT", "FROM", "EXISTS", "\x00",
    "\ud800", "😀", "0x1F", "9" * 400, "a" * 9_000, "a.b.c", "*", "%", "INTERVAL", "ARRAY[1]", "x'00'", "OVER ()",
    "FILTER", "AT",
]  # fmt: skip


def main() -> None:
    """Try both and print the finds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    kinds = ("requests", "methods", "filters")
    parser.add_argument("--what", nargs="*", choices=kinds, default=list(kinds))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    finds = 0
    if "filters" in arguments.what:
        finds += report("filters", arguments.number, list(filter_finds(arguments.number, arguments.seed)))
    for what in ("requests", "methods"):
        if what in arguments.what:
            finds += report(what, arguments.number, requests(what, arguments.number, arguments.seed))
    sys.exit(bool(finds))


def report(what: str, number: int, finds: list[str]) -> int:
    """Print the finds and return their number."""
    print(f"{what}: {number:,} tried, {len(finds)} failed")
    for find in finds[:20]:
        print("  ", find[:400])
    return len(finds)


def filter_finds(number: int, seed: int, patience: float = FILTER_PATIENCE) -> Any:
    """Yield a description of every filter that is not refused as it should be."""
    from sonde.indexer.errors import SondeError
    from sonde.indexer.store.fields import Field
    from sonde.pipelines.search.filters.compile import compile_filter

    kinds = {"stars": "integer", "price": "real", "tags": "list", "kind": "text", "day": "date", "ok": "boolean"}
    fields = {name: Field(name, f"c{place}", kind) for place, (name, kind) in enumerate(kinds.items())}
    chance = random.Random(seed)
    for _ in range(number):
        where = some_filter(chance)
        began, said = time.process_time(), ""  # work, not waiting for a busy machine
        try:
            compile_filter(where, fields)
        except SondeError as error:
            said = "" if "\n" not in str(error) and len(str(error)) < 1_000 else f"long message {error}"
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        took = time.process_time() - began
        if said or took > patience:
            yield f"{where[:150]!r} {said} {took:.1f} s"


def some_filter(chance: random.Random) -> str:
    """Return a filter: terms at random, a good one with changes, or one repeated."""
    good = ["stars >= 3 AND kind = 'a'", "tags = 'x' OR NOT ok", "day BETWEEN '2024' AND '2025-03'",
            "kind IN ('a', 'b')", "LENGTH(kind) > 3 AND (price < 1.5 OR price IS NULL)",
            "LOWER(kind) LIKE '%a_b%' ESCAPE '!'"]  # fmt: skip
    way = chance.random()
    if way < 0.4:
        return " ".join(chance.choices(TERMS, k=chance.randint(1, 12)))
    words = chance.choice(good).split(" ")
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(words))
        words[place : place + chance.randint(0, 2)] = chance.choices(TERMS, k=chance.randint(0, 2))
        words = words or ["a"]
    text = " ".join(words)
    if way < 0.5:
        return chance.choice(["(", "NOT ", "- ", "a.", "LOWER("]) * chance.randint(1, 2_000) + text
    return chance.choice([" AND ", " OR ", ", "]).join([text] * chance.randint(1, 400)) if way < 0.6 else text


def requests(what: str, number: int, seed: int) -> list[str]:
    """Send requests, or only calls of methods by name, to a service and return the finds."""
    import sonde

    folder = Path(tempfile.mkdtemp())
    opened = sonde.index(ROWS, folder / "letters.sonde", id="id", settings=sonde.BuildSettings(model="static"))
    with opened:
        make_runs(opened)
    run = "from sonde.app.cli.main import main; main()"
    command = [sys.executable, "-c", run, "serve", str(folder / "letters.sonde"), "--port", str(PORT)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stderr=log)
        try:
            described = wait()
            finds = sent(what, number, random.Random(seed), described)
        finally:
            process.terminate()
            process.wait()
    said = (folder / "log").read_text()
    return [*finds, *(["a traceback in the log: " + said[-2_000:]] if "Traceback" in said else [])]


def wait() -> dict[str, Any]:
    """Wait for the service and return its OpenAPI document."""
    for _ in range(300):
        time.sleep(0.2)
        if answer(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")[9:12] == b"200":
            found = answer(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return json.loads(found.partition(b"\r\n\r\n")[2])
    raise SystemExit("the service does not start")


def answer(request: bytes, patience: float = PATIENCE) -> bytes:
    """Send a request on a connection of its own and return the answer, empty if there is none."""
    try:
        with socket.create_connection(("127.0.0.1", PORT), patience) as connection:
            connection.sendall(request)
            received = b""
            while not complete(received) and (part := connection.recv(1 << 16)):
                received += part
            return received.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    except ConnectionError:
        return b""


def complete(received: bytes) -> bool:
    """Return whether all of an answer has arrived."""
    head, found, body = received.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").partition(b"\r\n\r\n")
    lengths = [line.partition(b":")[2] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(found) and (len(body) >= int(lengths[0]) if lengths else body.endswith(b"0\r\n\r\n"))


def sent(what: str, number: int, chance: random.Random, described: dict[str, Any]) -> list[str]:
    """Send requests and return what went wrong."""
    methods = known_methods() if what == "methods" else []
    routes = [
        (method.upper(), path, about) for path, ways in described["paths"].items() for method, about in ways.items()
    ]
    finds, statuses = list[str](), collections.Counter[str]()
    for _ in range(number):
        patience = PATIENCE
        if methods:
            path, body = some_call(chance, methods)
            patience = LONG if path.rpartition("/")[2] in SLOW else PATIENCE
            content = json.dumps(body).encode()
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            request = f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content
        else:
            request = some_request(chance, chance.choice(routes), described["components"]["schemas"])
        began = time.perf_counter()
        try:
            status = answer(request, patience)[9:12].decode("ascii", "replace")
        except TimeoutError:
            status = "none"
        statuses[status] += 1
        took = time.perf_counter() - began
        if status in ("none", "500", "") or took > patience:
            finds.append(f"{status or 'closed'} after {took:.1f} s: {request[:300]!r}")
    print("statuses:", dict(statuses.most_common()))
    return finds


Method = tuple[str, str, tuple[str, ...]]
"""The path of a method, the run that it opens first, and the names of its arguments."""
FITTING: dict[str, list[Any]] = {
    "run": ["kmeans", "topics", "map", "mine", "tree"], "name": ["kmeans", "topics", "tree", "new"],
    "kind": ["cluster", "topic", "tag", "taxonomy", "map"], "id": ["1", "2", "x"], "ids": [["1", "2"], "3", ["x"]],
    "where": ["stars > 2", "tags = 'a'"], "column": ["stars", "tags"], "by": ["stars", "tags"],
    "query": ["apples", "letter 7"], "queries": [["apples", "letters"]], "text": ["letter 3"],
    "texts": [["letter 3", "apples"], "a"], "labels": [["a", "b"], {"a": "about a", "b": ""}],
    "item": [0, 1, 2], "number": [0, 1, 2], "numbers": [[0, 1], [1, 2]], "k": [1, 5], "count": [1, 3], "offset": [0, 2],
    "documents": [[{"id": "new", "text": "a new letter"}], [{"id": "1", "text": "again", "stars": 9}]],
    "action": ["add", "rename", "move", "merge", "split", "delete"], "truth": ["stars", {"1": "a"}], "like": [["1"]],
    "to": ["new", "other"], "period": ["month", "year"], "to_parent": ["0"], "group": ["0", "1"],
}  # fmt: skip
"""Values that arguments of these names can have."""
SLOW = ("cluster", "topics", "map", "label", "check", "watch", "refit_taxonomy", "verify", "repair", "compact", "late")
"""Methods that are called more seldom."""


def make_runs(collection: Any) -> None:
    """Store a run of each kind that methods can be called on."""
    collection.cluster(k=3, refits=0)
    collection.topics()
    collection.map()
    collection.tag("mine", ids=["1", "2"])
    collection.make_taxonomy("kmeans", "tree")


def known_methods() -> list[Method]:
    """Return the methods that a service calls by name."""
    from sonde.app.api import Collection
    from sonde.app.http.remote import OF_RUNS, READING, WRITING
    from sonde.pipelines.map import Map
    from sonde.pipelines.topics import Topics

    whole = {"read": (*READING, "rows"), "write": (*WRITING, "put", "topics", "map")}
    found = [(f"/{way}/{name}", "", _arguments(Collection, name)) for way, names in whole.items() for name in names]
    for opened, cls in (("topic_run", Topics), ("map_run", Map)):
        for way, names in zip(("read", "write"), OF_RUNS[opened], strict=True):
            found += [(f"/{way}/{opened}/{name}", opened, _arguments(cls, name)) for name in names]
    return found


def _arguments(cls: type, name: str) -> tuple[str, ...]:
    method = getattr(cls, name, None)
    return tuple(inspect.signature(method).parameters)[1:] if callable(method) else ()


def some_call(chance: random.Random, methods: list[Method]) -> tuple[str, dict[str, Any]]:
    """Return the path and the body of a call of a method, with some arguments that fit and some that do not."""
    path, opened, names = chance.choice(methods)
    while path.rpartition("/")[2] in SLOW and chance.random() < 0.7:
        path, opened, names = chance.choice(methods)
    any_of = [value for values in FITTING.values() for value in values]
    options = {}
    for name in names:
        if chance.random() < 0.6:
            way = chance.random()
            values = FITTING.get(name, any_of) if way < 0.5 else any_of if way < 0.8 else VALUES
            options[name] = chance.choice(values)
    run = {"run": chance.choice(["topics", "map", "kmeans", None])} if opened else {}
    return path, {"options": options, **run}


def some_request(chance: random.Random, route: tuple[str, str, Any], schemas: dict[str, Any]) -> bytes:
    """Return the bytes of a request that was changed at random, with an honest length unless a header is added."""
    method, path, about = route
    names = ["1", "search", "info", "duplicates", "topic_run", "facets", "rows", "put", "%00", "%2F", "..", "a" * 3_000]
    for part in ("{id}", "{method}", "{opened}"):
        path = path.replace(part, chance.choice(names))
    if chance.random() < 0.3:
        query = "&".join(f"{chance.choice(['id', 'limit', 'run', 'collection'])}={chance.choice(names)}" for _ in "ab")
        path += "?" + query
    content = b""
    if "requestBody" in about:
        kind = about["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        content = some_body(chance, schemas[kind])
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    lines += [f"Content-Length: {len(content)}"] if content else []
    if chance.random() < 0.1:
        lines.insert(chance.randint(1, len(lines)), chance.choice(HEADERS))
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + content


def some_body(chance: random.Random, schema: dict[str, Any]) -> bytes:
    """Return a body with the fields of a schema, some of them with odd values, and odd bytes now and then."""
    wanted = [name for name in schema["properties"] if chance.random() < 0.6 or name in schema.get("required", ())]
    examples = {name: schema["properties"][name].get("examples") for name in wanted}
    body = {
        name: chance.choice(known or [schema["properties"][name].get("default")]) for name, known in examples.items()
    }
    for _ in range(chance.randint(0, 2)):
        body[chance.choice([*schema["properties"], "x"])] = chance.choice(VALUES)
    if isinstance(body.get("options"), dict):
        options = [
            "query",
            "k",
            "where",
            "texts",
            "by",
            "ids",
            "name",
            "documents",
            "settings",
            "model",
            "count",
            "field",
        ]
        body["options"] = {chance.choice(options): chance.choice(VALUES) for _ in range(chance.randint(0, 4))}
    content = bytearray(json.dumps(body).encode())
    for _ in range(chance.randint(1, 5) if chance.random() < 0.2 else 0):
        content[chance.randrange(len(content))] = chance.randrange(256)
    return bytes(content)


if __name__ == "__main__":
    main()
