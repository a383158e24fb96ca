"""How long commands take from the shell to the answer, in turn with another installation, and what a service holds.

    python benchmarks/start.py COLLECTION STATIC_COLLECTION --sonde .venv/bin/sonde --other /other/bin/sonde

`--other` may be left out. The commands of all installations alternate, five times each; the table has medians.
Processor seconds say more than elapsed ones where other programs use the cores too.
"""

import argparse
import json
import re
import resource
import shlex
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from statistics import median

import psutil

ROUNDS = 5
QUERY = "remove white space from both ends"


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", type=Path)
    parser.add_argument("static", type=Path)
    parser.add_argument("--sonde", default="sonde", help="the command to measure")
    parser.add_argument("--other", help="the command to compare with")
    given = parser.parse_args()
    commands = [shlex.split(each) for each in (given.sonde, given.other) if each]
    model, static = str(given.collection), str(given.static)
    rows: dict[str, Callable[[list[str]], tuple[float, float]]] = {
        "`sonde --help`": lambda sonde: _once([*sonde, "--help"]),
        "`sonde info`": lambda sonde: _once([*sonde, "info", model]),
        "`sonde search`": lambda sonde: _once([*sonde, "search", model, QUERY]),
        "`sonde search`, static model": lambda sonde: _once([*sonde, "search", static, QUERY]),
        "`sonde serve` until a search is answered": lambda sonde: _served([*sonde, "serve", model, "--port", "0"]),
        "`sonde mcp` until a search is answered": lambda sonde: _told([*sonde, "mcp", model]),
    }
    print(
        "| | " + " | ".join(f"{words}, {name}" for name in ("here", "other")[: len(commands)] for words in WORDS) + " |"
    )
    print("|---|" + "---|" * len(WORDS) * len(commands))
    for name, measure in rows.items():
        rounds = [[measure(command) for command in commands] for _ in range(ROUNDS)]
        cells = [f"{median(each[n][part] for each in rounds):.2f}" for n in range(len(commands)) for part in (0, 1)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


WORDS = ("elapsed s", "processor s or MB")


def _once(command: list[str]) -> tuple[float, float]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _served(command: list[str]) -> tuple[float, float]:
    began = time.perf_counter()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        found = next(found for line in process.stderr if (found := re.search(r"http://[\d.]+:\d+", line)))
        content = json.dumps({"query": QUERY}).encode()
        asked = urllib.request.Request(f"{found[0]}/search", content, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert json.load(answer)["hits"]
        return _stopped(process, time.perf_counter() - began)


def _told(command: list[str]) -> tuple[float, float]:
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "start", "version": "1"}}
    calls = (
        {"id": 1, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "search", "arguments": {"query": QUERY}}},
    )
    began = time.perf_counter()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdin and process.stdout
        for call in calls:
            process.stdin.write(json.dumps({"jsonrpc": "2.0"} | call) + "\n")
        process.stdin.flush()
        while json.loads(process.stdout.readline()).get("id") != 2:
            pass
        return _stopped(process, time.perf_counter() - began)


def _stopped(process: "subprocess.Popen[str]", took: float) -> tuple[float, float]:
    """Return the seconds and the megabytes that the process holds, and end it."""
    held = psutil.Process(process.pid).memory_info().rss / 1e6
    process.terminate()
    return took, held


if __name__ == "__main__":
    main()
