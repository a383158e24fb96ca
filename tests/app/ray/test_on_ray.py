"""Shards built on Ray: the same collection as without it, also after kills; nothing listens beyond this machine."""

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from two_ways import rows, told

from sonde.app.api import Collection, index
from sonde.app.ray import build, connect
from sonde.app.ray.build import on_ray
from sonde.indexer.errors import SondeError
from sonde.indexer.ingest import BuildSettings
from sonde.indexer.sharded.build import index_sharded
from sonde.indexer.sharded.generations import newest_generation
from sonde.indexer.sharded.layout import work_folder
from sonde.indexer.sharded.objects import LocalTruth
from sonde.indexer.store.lock import being_written

pytestmark = [pytest.mark.distributed, pytest.mark.enable_socket]

COUNT, QUERIES = 1_200, ("red apple", "the battery of a phone", "late parcel")
STATIC = BuildSettings(model="static")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same collection built without Ray."""
    folder = tmp_path_factory.mktemp("undisturbed") / "c.sonde"
    index_sharded(rows(COUNT), folder, 4, settings=STATIC)
    return folder


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """Wait until the processes of a Ray that was killed are gone."""
    yield
    for process in _of_ray():
        process.terminate()
    psutil.wait_procs(_of_ray(), timeout=30)


def _of_ray() -> list[psutil.Process]:
    """The processes that this test run started for Ray."""
    mine = psutil.Process().children(recursive=True)
    return [each for each in mine if each.is_running() and _is_ray(each)]


def _is_ray(process: psutil.Process) -> bool:
    try:
        return any("ray" in part for part in process.cmdline()[:2])
    except psutil.Error:
        return False


def same(first: Path, second: Path) -> None:
    one, other = Collection.open(first), Collection.open(second)
    assert other.verify() == []
    for query in QUERIES:
        for mode in ("hybrid", "dense", "lexical"):
            assert told(one.search(query, mode=mode)) == told(other.search(query, mode=mode))


def test_the_collection_is_the_same_and_nothing_listens_beyond_this_machine(tmp_path: Path, undisturbed: Path):
    seen: dict[str, set[str]] = {"names": set(), "addresses": set()}

    def watched(tasks, encoder, notify):
        for done in on_ray("ray")(tasks, encoder, notify):
            for process in _of_ray():
                seen["names"].add(process.name())
                sockets = [each for each in process.net_connections("inet") if each.status == psutil.CONN_LISTEN]
                seen["addresses"] |= {each.laddr.ip for each in sockets}
            yield done

    report = index_sharded(rows(COUNT), tmp_path / "c.sonde", 4, settings=STATIC, runner=watched)
    assert report.added == COUNT
    assert {"gcs_server", "raylet"} <= seen["names"]
    assert seen["addresses"] <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    assert os.environ["RAY_AUTH_MODE"] == "token"
    same(undisturbed, tmp_path / "c.sonde")
    index(rows(1), tmp_path / "c.sonde", on="ray")
    assert newest_generation(LocalTruth(tmp_path / "c.sonde"), tmp_path).number == 1  # type: ignore[union-attr]


def test_tasks_take_a_share_of_the_gpus(tmp_path: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch):
    """Ray believes what it is told: no GPU is needed for it to plan with one."""
    ray = importlib.import_module("ray")  # the type checker runs without it
    begun, given, shares = ray.init, ray.remote, []

    def noted(**options: object) -> object:
        shares.append(options["num_gpus"])
        return given(**options)

    monkeypatch.setattr(ray, "init", lambda **options: begun(**options, num_gpus=2))
    monkeypatch.setattr(ray, "remote", noted)
    index_sharded(rows(COUNT), tmp_path / "c.sonde", 4, settings=STATIC, runner=on_ray("ray"))
    assert shares == [0.5]
    same(undisturbed, tmp_path / "c.sonde")


def test_a_killed_worker_is_started_again(tmp_path: Path, undisturbed: Path):
    folder, killed = tmp_path / "c.sonde", []

    def disturbed(tasks, encoder, notify):
        for done in on_ray("ray")(tasks, encoder, notify):
            if not killed:
                killed.extend(process.pid for process in _of_ray() if "ray::_built" in process.cmdline()[0])
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)
            yield done

    index_sharded(rows(COUNT), folder, 4, settings=STATIC, runner=disturbed)
    assert killed
    same(undisturbed, folder)


def test_a_killed_driver_is_continued_by_the_same_command(tmp_path: Path, undisturbed: Path):
    folder = tmp_path / "c.sonde"
    script = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2] / 'support')!r})\n"
        "from two_ways import rows\nfrom sonde.app.api import index\n"
        f"index(rows({COUNT}), {str(folder)!r}, shards=4, on='ray', model='static')"
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline and not list(work_folder(folder).glob("0?/*")):
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert newest_generation(LocalTruth(folder), folder) is None
    while any(being_written(note.parent) for note in work_folder(folder).glob("0?/*/writer.json")):
        time.sleep(0.2)  # Ray's workers end when they notice
    index(rows(COUNT), folder, on="ray", model="static")
    same(undisturbed, folder)


def test_an_error_in_a_shard_is_one_line(tmp_path: Path):
    folder = tmp_path / "c.sonde"

    def spoiled(tasks, encoder, notify):
        other = replace(tasks[0].sharding, model=tasks[0].sharding.model | {"name": "no/such-model"})
        gone = [replace(task, sharding=other) for task in tasks]
        yield from on_ray("ray")(gone, encoder, notify)

    with pytest.raises(SondeError, match=r"shard 0[01]: .*no/such-model"):
        index_sharded(rows(50), folder, 2, settings=STATIC, runner=spoiled)
    assert newest_generation(LocalTruth(folder), folder) is None


def test_a_cluster_that_does_not_answer(tmp_path: Path):
    with pytest.raises(SondeError, match=r"Ray does not answer at ray://127.0.0.1:1 \(.*\): is the cluster running"):
        index(rows(5), tmp_path / "c.sonde", shards=2, on="ray://127.0.0.1:1", model="static")
    assert not (tmp_path / "c.sonde").exists()


class _Lost:
    """Ray as it is when the connection has been lost."""

    def cluster_resources(self) -> None:
        raise ConnectionError("Client is shutting down.")


def test_a_lost_connection_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(build, "connected", lambda address: nullcontext(_Lost()))
    monkeypatch.setattr(build, "reach", lambda address: None)
    said = r"connection to Ray at ray://h:1 is lost \(Client is shutting down\): nothing was committed; run the same"
    with pytest.raises(SondeError, match=said):
        index_sharded(rows(5), tmp_path / "c.sonde", 2, settings=STATIC, runner=on_ray("ray://h:1"))


@pytest.mark.parametrize(("failures", "tried"), [(0, 1), (2, 3), (3, 3)])
def test_a_connection_that_the_cluster_does_not_complete_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, failures: int, tried: int
):
    attempts = []

    def begun(*_: object) -> None:
        attempts.append(1)
        if len(attempts) <= failures:
            raise ConnectionAbortedError("Initialization failure from server:")

    monkeypatch.setattr(connect, "_init", begun)
    monkeypatch.setattr(connect, "reach", lambda address: None)
    with (
        pytest.raises(SondeError, match="Ray does not answer") if failures == connect.ATTEMPTS else nullcontext(),
        connect.connected("ray://h:1"),
    ):
        pass
    assert len(attempts) == tried
