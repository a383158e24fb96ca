"""Build the shards of a collection on Ray: a task for each shard, on this machine or on a cluster."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from types import ModuleType

from ...indexer.encoder import Encoder, ModelSpec
from ...indexer.errors import SondeError
from ...indexer.ingest import BuildSettings
from ...indexer.ingest.index import encoder_of
from ...indexer.progress import Notify, Progress
from ...indexer.sharded.build import Runner
from ...indexer.sharded.shard import ShardDone, ShardTask, build_shard
from .connect import check_address, connected, named, reach, reason

RETRIES = 3
"""How often a shard's task is started again if its process or its machine dies. It continues from its own commits."""
TASKS_ON_A_GPU = 8
"""A core reads, tokenises and stores fewer passages than a GPU embeds, but each task loads a copy of the model."""


def on_ray(address: str) -> Runner:
    """Return what runs the tasks of shards on Ray.

    Args:
        address: "ray" starts Ray on this machine for the run, on the loopback interface only. "ray://HOST:PORT" uses a
            running cluster, whose machines must have the collection's folder under the same path.

    Raises:
        UsageError: It is neither of these.
        MissingExtraError: Ray is not installed.
        SondeError: Nothing listens there.
    """
    check_address(address)
    reach(address)

    def run(tasks: Sequence[ShardTask], encoder: Encoder | None, notify: Notify) -> Iterator[ShardDone]:
        with connected(address) as ray:
            try:
                yield from _done(ray, tasks, notify)
            except ConnectionError as error:
                said = f"the connection to {named(address)} is lost ({reason(error)}): nothing was committed"
                raise SondeError(f"{said}; run the same command again to continue") from None

    return run


def _done(ray: ModuleType, tasks: Sequence[ShardTask], notify: Notify) -> Iterator[ShardDone]:
    """Run the tasks, and yield what each did, the first that has ended first."""
    share = gpu_share(ray.cluster_resources().get("GPU", 0), tasks)
    started = ray.remote(max_retries=RETRIES, num_cpus=1, num_gpus=share)(_built)
    waiting = {started.remote(task): task for task in tasks}
    while waiting:
        [ready], _ = ray.wait(list(waiting))
        yield _answer(ray, ready, waiting.pop(ready))
        notify(Progress("shards", len(tasks) - len(waiting), len(tasks), "shards"))


def gpu_share(gpus: float, tasks: Sequence[ShardTask]) -> float:
    """Return the part of a GPU that Ray sets aside for each task, so that the tasks are spread over all GPUs.

    Args:
        gpus: How many the cluster has.
        tasks: Of one run; a run with the device "cpu" leaves the GPUs alone.
    """
    if not gpus or not tasks or tasks[0].settings.device == "cpu":
        return 0
    on_one = min(TASKS_ON_A_GPU, max(1, math.ceil(len(tasks) / gpus)))
    return math.floor(10_000 / on_one) / 10_000  # Ray takes four decimal places


def _built(task: ShardTask) -> ShardDone:
    """Build one shard in a process of Ray's, which may have built another one before."""
    needs = task.documents > 0 or task.action in ("late", "embed beside")
    # Ray shows a task only the GPU that it has a share of, whatever its number on the machine.
    device = task.settings.device.partition(":")[0]
    task = replace(task, settings=replace(task.settings, device=device))
    return build_shard(task, _encoder(json.dumps(task.sharding.model), device) if needs else None)


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
            raise SondeError(f"shard {task.shard:02d}: {error.cause}") from None
        raise
    except ray.exceptions.RayError as error:
        said = f"shard {task.shard:02d} could not be built on Ray ({reason(error)}): nothing was committed"
        raise SondeError(f"{said}; run the same command again to continue") from None
