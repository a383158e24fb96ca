"""Checking the checksums that Tantivy writes at the end of its files but does not read by itself."""

import json
import struct
import zlib
from pathlib import Path

MAGIC = 1337
TAIL = struct.Struct("<II")  # length of the JSON footer, magic number
CHUNK = 1 << 20


def check_files(folder: Path) -> list[str]:
    """Return one line for every damaged or missing file of the index's last commit."""
    meta = json.loads((folder / "meta.json").read_bytes())
    problems = []
    for segment in meta["segments"]:
        name = segment["segment_id"].replace("-", "")
        files = sorted(folder.glob(f"{name}.*"))
        problems += [problem for file in files if (problem := _problem(file))]
        problems += [] if files else [f"{folder}: segment {name} is missing"]
    return problems


def _problem(path: Path) -> str | None:
    size = path.stat().st_size
    with path.open("rb") as stream:
        stream.seek(max(0, size - TAIL.size))
        tail = stream.read()
        length, magic = TAIL.unpack(tail) if len(tail) == TAIL.size else (0, 0)
        body = size - TAIL.size - length
        if magic != MAGIC or body < 0:
            return f"{path}: cut off"
        stream.seek(body)
        try:
            expected = json.loads(stream.read(length))["crc"]
        except (ValueError, KeyError, TypeError):
            return f"{path}: its footer is unreadable"
        stream.seek(0)
        checksum = 0
        while body > 0 and (chunk := stream.read(min(CHUNK, body))):
            checksum = zlib.crc32(chunk, checksum)
            body -= len(chunk)
    return None if checksum == expected else f"{path}: checksum {checksum:08x} instead of {expected:08x}"
