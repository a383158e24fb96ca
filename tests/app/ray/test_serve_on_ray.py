"""`sonde serve --on ray`: the hits of a service without Ray, also while processes are killed; nothing stays behind."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from ray_cluster import Cluster
from two_ways import QUERIES, WAYS, rows

from sonde.app.http.hosted import Hosts
from sonde.app.http.settings import ServeSettings
from sonde.indexer.ingest import BuildSettings
from sonde.indexer.sharded.build import index_sharded

pytestmark = [pytest.mark.distributed, pytest.mark.enable_socket]

SHARDS = 2
WHOLE_AGAIN = 10.0
"""Seconds after which a killed process must answer again."""
COMMAND = "from sonde.app.cli.main import main; main()"


@dataclass
class Service:
    """A running `sonde serve --on ray`."""

    process: "subprocess.Popen[bytes]"
    http: httpx2.Client
    said: list[bytes] = field(default_factory=list)

    def search(self, **given: Any) -> dict[str, Any]:
        answer = self.http.post("/search", json={"query": "red apple"} | given)
        assert answer.status_code == 200, answer.text
        return answer.json()

    @property
    def processes(self) -> list[psutil.Process]:
        """All processes that it started."""
        return psutil.Process(self.process.pid).children(recursive=True)

    @property
    def replicas(self) -> dict[int, list[psutil.Process]]:
        """The processes that hold each shard, to judge by the files that they have open."""
        found: dict[int, list[psutil.Process]] = defaultdict(list)
        for process in self.processes:
            try:
                if "ray::ShardActor" in "".join(process.cmdline()[:1]):
                    paths = "\n".join(file.path for file in process.open_files())
                    found[int(re.findall(r"/shards/(\d+)/", paths)[0])].append(process)
            except (psutil.Error, IndexError):
                continue
        return found

    @property
    def alive(self) -> int:
        """How many replicas answer, as the metrics tell."""
        return round(sum(map(float, re.findall(r"sonde_shard_replicas\{.*?\} (\S+)", self.http.get("/metrics").text))))


def started(folder: Path, replicas: int, on: str = "ray", environment: Mapping[str, str] | None = None) -> Service:
    command = [sys.executable, "-c", COMMAND, "serve", str(folder), "--on", on, "--replicas", str(replicas)]
    process = subprocess.Popen([*command, "--port", "0"], stderr=subprocess.PIPE, env=environment)
    assert process.stderr
    said = process.stderr.readline().decode()
    url = re.search(r"http://\S+:\d+", said)
    assert url, said
    service = Service(process, httpx2.Client(base_url=url[0], timeout=40))
    threading.Thread(target=service.said.extend, args=(process.stderr,), daemon=True).start()
    deadline = time.monotonic() + 60
    while service.http.get("/ready").status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return service


def gone(processes: list[psutil.Process], seconds: float = 60) -> list[psutil.Process]:
    """The processes that still run after some seconds."""
    return psutil.wait_procs(processes, timeout=seconds)[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("served") / "c.sonde"
    index_sharded(rows(1_200), made, SHARDS, settings=BuildSettings(model="static"))
    return made


def service_with(folder: Path, replicas: int, *on: Any) -> Iterator[Service]:
    service = started(folder, replicas, *on)
    processes = service.processes
    yield service
    service.http.close()
    service.process.kill()
    service.process.wait()
    for process in gone(processes):
        process.kill()


@pytest.fixture(scope="module")
def doubled(folder: Path) -> Iterator[Service]:
    yield from service_with(folder, 2)


@pytest.fixture(scope="module")
def single(folder: Path) -> Iterator[Service]:
    yield from service_with(folder, 1)


def test_hits_are_those_of_a_service_without_ray(folder: Path, doubled: Service):
    from fastapi.testclient import TestClient

    from sonde.app.http.service import create_app

    settings = ServeSettings()
    with TestClient(create_app(Hosts.open([folder], settings), settings), "http://127.0.0.1:8080") as here:
        for query in QUERIES:
            for way in WAYS:
                asked = {"query": query} | way
                mine, theirs = here.post("/search", json=asked).json(), doubled.search(**asked)
                told = [{key: each[key] for key in ("hits", "partial", "fusion")} for each in (mine, theirs)]
                for hit in [hit for each in told for hit in each["hits"]]:
                    hit.get("reranker", {}).pop("seconds", None)
                assert told[0] == told[1], asked
        for asked in ({"id": "d7"}, {"text": "a late parcel", "where": "stars >= 4"}):
            answers = [each.post("/similar", json=asked).json()["hits"] for each in (here, doubled.http)]
            assert answers[0] == answers[1]


def test_nothing_listens_beyond_this_machine_and_ray_asks_for_its_token(doubled: Service):
    addresses, names = set(), set()
    for process in doubled.processes:
        names.add(process.name())
        sockets = [each for each in process.net_connections("inet") if each.status == psutil.CONN_LISTEN]
        addresses |= {each.laddr.ip for each in sockets}
        if process.name() in ("raylet", "gcs_server"):
            assert process.environ()["RAY_AUTH_MODE"] == "token"
            assert len(process.environ()["RAY_AUTH_TOKEN"]) == 64
    assert {"gcs_server", "raylet"} <= names
    assert addresses <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


def test_one_of_two_replicas_of_each_shard_is_killed_under_load(doubled: Service):
    wrong: list[str] = []
    counted: list[int] = []
    ended = threading.Event()

    def ask(place: int) -> None:
        with httpx2.Client(base_url=doubled.http.base_url, timeout=40) as mine:
            while not ended.is_set():
                way = ({}, {"mode": "dense"}, {"where": "stars <= 3"}, {"k": 50})[len(counted) % 4]
                try:
                    answer = mine.post("/search", json={"query": QUERIES[place]} | way)
                    counted.append(answer.status_code)
                    if answer.status_code != 200 or answer.json()["partial"]:
                        wrong.append(answer.text[:300])
                except httpx2.HTTPError as error:
                    wrong.append(repr(error))

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    killed = [processes[0] for processes in doubled.replicas.values()]
    assert len(killed) == SHARDS
    for process in killed:
        os.kill(process.pid, signal.SIGKILL)
    before = len(counted)
    deadline = time.monotonic() + 60
    time.sleep(2)
    while (alive := doubled.alive) < 2 * SHARDS and time.monotonic() < deadline:
        time.sleep(0.2)
    ended.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert alive == 2 * SHARDS
    assert len(counted) > before > 0
    assert not {each.pid for each in killed} & {each.pid for some in doubled.replicas.values() for each in some}


def test_without_a_replica_answers_are_partial_and_soon_whole_again(single: Service):
    whole = single.search(mode="dense", k=100)
    assert not whole["partial"]
    os.kill(single.replicas[1][0].pid, signal.SIGKILL)
    killed = time.monotonic()
    found = [single.search(mode="dense", k=100)]
    while found[-1]["partial"] and time.monotonic() < killed + 60:
        time.sleep(0.1)
        found.append(single.search(mode="dense", k=100))
    assert time.monotonic() - killed < WHOLE_AGAIN
    assert len(found) > 1
    assert all(each["missing_shards"] == [1] for each in found[:-1])
    assert any("this result is partial: shard 01 did not answer" in note for note in found[0]["notes"])
    assert found[-1]["hits"] == whole["hits"]


def lost_and_made_again(service: Service, whole: dict[str, Any]) -> list[bool]:
    """Search until the connection was lost and made again; return which results were partial."""
    deadline, partial = time.monotonic() + 200, []
    while not any(b"connected to Ray again" in line for line in service.said):
        partial.append(service.search(k=100)["partial"])
        assert time.monotonic() < deadline, service.said
        time.sleep(0.1)
    while (found := service.search(k=100))["partial"] and time.monotonic() < deadline:
        time.sleep(0.1)  # on a busy machine, a process that has just started may be late with its first answer
    assert found["hits"] == whole["hits"]
    [lost] = [place for place, line in enumerate(service.said) if b"is lost: results are partial" in line]
    since = [line.split()[2] for line in service.said[lost + 1 :] if b"does not answer" not in line]
    assert since == [b"connected"], "nothing else was said meanwhile"
    return partial


def test_if_ray_on_this_machine_dies_it_is_started_again(single: Service):
    whole = single.search(k=100)
    for process in [each for each in single.processes if each.name() in ("gcs_server", "raylet")]:
        process.kill()
    assert any(lost_and_made_again(single, whole))


def test_a_cluster_that_is_gone_and_comes_back(folder: Path):
    place = Path(tempfile.mkdtemp(prefix="ray"))  # a short path, since Ray has sockets in it
    cluster = Cluster(place, {}, nodes=1)
    try:
        for service in service_with(folder, 1, cluster.address, cluster.environment):
            whole = service.search(k=100)
            cluster.stop()
            cluster.start()
            assert any(lost_and_made_again(service, whole))
    finally:
        cluster.stop()
        shutil.rmtree(place, ignore_errors=True)


def test_asked_to_stop_it_ends_all_its_processes(doubled: Service):
    processes = doubled.processes
    doubled.process.send_signal(signal.SIGTERM)
    assert doubled.process.wait(40) == 0
    assert gone(processes) == []


def test_killed_it_leaves_no_processes(single: Service):
    processes = single.processes
    assert len(processes) > SHARDS
    single.process.kill()
    left = gone([each for each in processes if not each.name().endswith("Agent")])
    assert left == []
    assert gone(processes, 150) == [], "Ray's two agents wait a minute for the rest of Ray"
