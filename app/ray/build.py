"""Build the shards of a collection on Ray: a task for each shard, on this machine or on a cluster."""

import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType

from ...indexer.encoder import Encoder, ModelSpec
from ...indexer.errors import MissingExtraError, SondeError, UsageError, arg
from ...indexer.ingest import BuildSettings
from ...indexer.ingest.index import encoder_of
from ...indexer.progress import Notify, Progress
from ...indexer.sharded.build import Runner
from ...indexer.sharded.shard import ShardDone, ShardTask, build_shard

HERE = "ray"
RETRIES = 3
"""How often a shard's task is started again if its process or its machine dies. It continues from its own commits."""
LOOPBACK = ("127.0.0.1", "::1")
OBJECT_STORE = 100_000_000
"""Bytes of shared memory for Ray started here: tasks and their answers are small."""


def on_ray(address: str) -> Runner:
    """Return what runs the tasks of shards on Ray.

    Args:
        address: "ray" starts Ray on this machine for the run, on the loopback interface only. "ray://HOST:PORT" uses a
            running cluster, whose machines must have the collection's folder under the same path.

    Raises:
        UsageError: It is neither of these.
        MissingExtraError: Ray is not installed.
    """
    if address != HERE and not re.fullmatch(r"ray://[^/:]+:\d+", address):
        said = f"{arg('on')} is {address!r}: give ray, or ray://HOST:PORT for a running cluster"
        raise UsageError(said, code="unknown-option", field="on", value=address)
    _imported(address)

    def run(tasks: Sequence[ShardTask], encoder: Encoder | None, notify: Notify) -> Iterator[ShardDone]:
        with _connected(address) as ray:
            started = ray.remote(max_retries=RETRIES, num_cpus=1)(_built)
            waiting = {started.remote(task): task for task in tasks}
            while waiting:
                [ready], _ = ray.wait(list(waiting))
                yield _answer(ray, ready, waiting.pop(ready))
                notify(Progress("shards", len(tasks) - len(waiting), len(tasks), "shards"))

    return run


def _built(task: ShardTask) -> ShardDone:
    """Build one shard in a process of Ray's, which may have built another one before."""
    needs = task.documents > 0
    return build_shard(task, _encoder(json.dumps(task.sharding.model), task.settings.device) if needs else None)


@lru_cache(maxsize=1)
def _encoder(model: str, device: str) -> Encoder:
    return encoder_of(ModelSpec.from_dict(json.loads(model)), BuildSettings(device=device))


def _answer(ray: ModuleType, ready: object, task: ShardTask) -> ShardDone:
    """Return what a task returned.

    Raises:
        SondeError: The task failed, or its process died too often.
    """
    try:
        return ray.get(ready)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, SondeError):
            raise SondeError(f"shard {task.shard}: {error.cause}") from None
        raise
    except ray.exceptions.RayError as error:
        reason = str(error).strip().partition("\n")[0]
        said = f"shard {task.shard} could not be built on Ray ({reason}): nothing was committed"
        raise SondeError(f"{said}; run the same command again to continue") from None


def _imported(address: str) -> ModuleType:
    """Import Ray, which asks for a token unless the user has decided otherwise, and sends no statistics of use.

    Ray started here gets a token of its own, which only this process and those that it starts know. The third variable
    is what keeps it on the loopback interface: Ray replaces 127.0.0.1 as the address of a node by the machine's own.
    """
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address == HERE:
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        if not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & set(os.environ):
            os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    try:
        import ray
    except ImportError:
        raise MissingExtraError("Ray", "distributed", f"{arg('on')} ray") from None
    return ray


@contextmanager
def _connected(address: str) -> Iterator[ModuleType]:
    """Start Ray on this machine, or connect to a cluster, until the context ends."""
    ray = _imported(address)
    try:
        if address == HERE:
            ray.init(
                address="local", include_dashboard=False, log_to_driver=False, logging_level="ERROR",
                object_store_memory=OBJECT_STORE,
            )  # fmt: skip
        else:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise SondeError(f"Ray does not answer at {address} ({reason}): is the cluster running?") from None
    try:
        if address == HERE and ray.util.get_node_ip_address() not in LOOPBACK:
            said = "Ray would accept connections from other machines, because it was imported before"
            raise SondeError(f"{said}: index in a process that has not imported ray")
        yield ray
    finally:
        ray.shutdown()
