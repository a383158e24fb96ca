"""What a job's JSON says, in sentences."""

from collections.abc import Callable, Mapping
from typing import Any

from .....indexer.build.estimate import size
from .....indexer.wording import counted
from ...jobs import Job

Report = Mapping[str, Any]


def told(job: Job) -> list[str]:
    """Return what a job that is done has to say; nothing where its output is not known."""
    values: list[Report] = [value for value in job.output if isinstance(value, dict)]
    tell = _TOLD.get(job.command[0] if job.command else "")
    if tell is None:
        return ["Done."]
    try:
        return tell(values)
    except (KeyError, TypeError, ValueError, IndexError):
        return ["Done."]


def skipped_rows(job: Job) -> tuple[int, list[dict[str, str]]]:
    """Return how many rows an index run skipped, and the first of them with the reasons."""
    report = next((value for value in job.output if isinstance(value, dict) and "skipped_rows" in value), None)
    if report is None:
        return 0, []
    rows = [{"Where": str(row["origin"]), "Why": str(row["reason"])} for row in report["skipped_rows"]]
    return int(report["skipped"]), rows


def findings(job: Job) -> list[str]:
    """Return what `sonde verify` found, a sentence each."""
    return [
        f"{value['part']}: {value['problem']}"
        for value in job.output
        if isinstance(value, dict) and {"part", "problem"} <= value.keys()
    ]


def _index(values: list[Report]) -> list[str]:
    report = values[-1]
    counts = [
        f"{counted(report[name], 'document')} {name}"
        for name in ("added", "replaced", "unchanged", "deleted")
        if report[name]
    ]
    sentences = [(", ".join(counts) or "Nothing to do") + "."]
    if report["duplicate_ids"]:
        sentences.append(f"{counted(report['duplicate_ids'], 'id')} came again: the last one was kept.")
    if report["cut_tokens"]:
        sentences.append(f"{counted(report['cut_tokens'], 'token')} of {report['cut_documents']:,} documents cut off.")
    return sentences


def _verify(values: list[Report]) -> list[str]:
    del values
    return ["Everything is sound: every digest, every count, and both indexes."]


def _repair(values: list[Report]) -> list[str]:
    return [f"{value['done']}" for value in values] or ["There was nothing to repair."]


def _compact(values: list[Report]) -> list[str]:
    report = values[-1]
    return [
        f"{counted(report['removed'], 'tombstone')} removed, {counted(report['segments_before'], 'segment')} became "
        f"{report['segments']:,}, vectors {size(report['bytes_before'])} became {size(report['bytes'])}."
    ]


def _delete(values: list[Report]) -> list[str]:
    return [f"{counted(values[-1]['deleted'], 'document')} deleted."]


_TOLD: dict[str, Callable[[list[Report]], list[str]]] = {
    "index": _index,
    "verify": _verify,
    "repair": _repair,
    "compact": _compact,
    "delete": _delete,
}
