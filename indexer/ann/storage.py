"""An index on disk: `info.json` names a generation, a folder with the FAISS file and the rows behind it."""

import json
import os
import shutil
import tempfile
from dataclasses import replace
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SondeError
from .library import faiss
from .nodes import Nodes
from .settings import AnnInfo

INFO, INDEX, ROWS = "info.json", "index.faiss", "rows.npy"


def write(index: Any, nodes: Nodes, info: AnnInfo, folder: Path) -> AnnInfo:
    """Write a FAISS index with its nodes so that a reader finds either the old one whole or the new one whole.

    Returns:
        The description with its digest and true size.

    Raises:
        SondeError: The folder cannot be written, or the disk is full; the index that was there is untouched.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder, ignore_cleanup_errors=True) as name:
            return _publish(index, nodes, info, folder, Path(name))
    except (OSError, RuntimeError) as error:
        raise SondeError(f"the index cannot be written to {folder}: {error}") from error


def read(folder: Path, *, mmap: bool = False) -> tuple[Any, Nodes, AnnInfo]:
    """The index that was saved in `folder`, checked against its digest.

    Args:
        folder: Where `write` put it.
        mmap: Leave the codes on disk and let the system page them in.

    Raises:
        SondeError: It is missing, damaged, or of an unknown form; it can be rebuilt from the vectors.
    """
    try:
        info = _info(folder)
        try:
            return _read(folder, info, mmap)
        except (SondeError, OSError):
            # A writer may have replaced the generation between the two reads.
            newer = _info(folder)
            if newer.digest == info.digest:
                raise
            return _read(folder, newer, mmap)
    except (SondeError, OSError, RuntimeError, ValueError, TypeError) as error:
        raise SondeError(
            f"the vector index in {folder} cannot be used ({error}); rebuild it from the vectors"
        ) from error


def _info(folder: Path) -> AnnInfo:
    return AnnInfo.from_dict(json.loads((folder / INFO).read_text("utf-8")))


def _read(folder: Path, info: AnnInfo, mmap: bool) -> tuple[Any, Nodes, AnnInfo]:
    generation = folder / info.digest[:16]
    if _digest(generation) != info.digest:
        raise SondeError("its content does not match its digest")
    node, rows = np.load(generation / ROWS, allow_pickle=False)
    flags = faiss().IO_FLAG_MMAP_IFC if mmap else 0
    return faiss().read_index(str(generation / INDEX), flags), Nodes(node, rows), info


def _publish(index: Any, nodes: Nodes, info: AnnInfo, folder: Path, new: Path) -> AnnInfo:
    """Sync the new files, give them their name, point `info.json` at it, and only then sweep what it replaces."""
    faiss().write_index(index, str(new / INDEX))
    np.save(new / ROWS, np.stack([nodes.node, nodes.rows]))
    size = sum((new / name).stat().st_size for name in (INDEX, ROWS))
    info = replace(info, digest=_digest(new), bytes=size)
    (new / INFO).write_text(json.dumps(info.to_dict(), indent=1), "utf-8")
    for path in (*new.iterdir(), new):
        _sync(path)
    generation = folder / info.digest[:16]
    (new / INFO).rename(folder / f"{INFO}.new")
    if generation.exists():
        shutil.rmtree(generation)
    new.rename(generation)
    (folder / f"{INFO}.new").replace(folder / INFO)
    _sync(folder)
    for other in folder.iterdir():
        if other.is_dir() and other != generation:
            shutil.rmtree(other, ignore_errors=True)
    return info


def _digest(generation: Path) -> str:
    """SHA-256 over the SHA-256 of each file."""
    whole = sha256()
    for name in (INDEX, ROWS):
        with (generation / name).open("rb") as file:
            whole.update(file_digest(file, "sha256").digest())
    return whole.hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
