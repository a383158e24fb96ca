"""Sharded collections damaged in every way that bytes and JSON allow, also by a stranger who makes digests again."""

import json
import random
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from damaged import add_runs, any_of, bytes_changed, documents, json_changed, opened
from fake_encoder import FakeEncoder
from other_encoder import OtherEncoder
from resealed import resealed

from sonde.indexer.document import Document
from sonde.indexer.files import sha256
from sonde.indexer.ingest import BuildSettings
from sonde.indexer.sharded.build import index_sharded
from sonde.pipelines.search.settings import SearchDefaults, store_defaults

WHOLE = ("collection.json", "generations/*.json")
KEPT = tuple(f"models/*/{name}" for name in (*WHOLE, "tuned.json", "shards/*/*/order.npy", "shards/*/*/catalog.db"))


def sound_shards(folder: Path, count: int = 30) -> Path:
    """Make a collection in three shards with runs, judgements, tombstones, tuned settings and a previous model."""
    encoder, settings = FakeEncoder(), BuildSettings(batch=8)
    index_sharded(documents(count), folder, 3, settings=settings, encoder=encoder)  # type: ignore[arg-type]
    add_runs(folder)
    with closing(opened(folder)) as collection:
        collection.delete(["apple0", "river1"])
        collection.judge("apple", ["apple6", "river7"])
        store_defaults(collection.stored, SearchDefaults(threshold=0.25))
        collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    index_sharded([Document("another text", key="cloud2")], folder, encoder=OtherEncoder())  # type: ignore[arg-type]
    return folder


def foreign(folder: Path, chance: random.Random) -> str:
    """Put a file that Sonde did not write somewhere, or copy or remove one of its own."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = chance.choice(files)
    how = chance.choice(["notes.txt", f"Copy of {path.name}", "zz.json", "gone", f"{path.name}~"])
    if how == "gone":
        path.unlink()
        return f"{path.relative_to(folder)} is gone"
    path.with_name(how).write_bytes(path.read_bytes() if chance.random() < 0.7 else b"mine")
    return f"{how} beside {path.relative_to(folder)}"


def stranger(folder: Path, chance: random.Random) -> str:
    """Change a value of a JSON file or bytes of another, and make all digests again."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in (".json", ".npy"))
    path = chance.choice(files)
    said = json_changed(path, chance) if path.suffix == ".json" else bytes_changed(path, chance)
    with suppress(ValueError, TypeError, AttributeError):
        resealed(path)
    _trusted(folder)
    return f"{said} ({path.relative_to(folder)}), with all digests"


def _trusted(folder: Path) -> None:
    """Let each manifest list what its files hold now, and the newest generation name the manifests."""
    newest = sorted(folder.glob("generations/*.json"))[-1]
    with suppress(ValueError, TypeError, KeyError, AttributeError, IndexError):
        shards = json.loads(newest.read_bytes())["shards"]
        for manifest in folder.glob("shards/*/*/shard.json"):
            listed = json.loads(manifest.read_bytes())
            for name in listed["files"]:
                if (manifest.parent / name).is_file():
                    listed["files"][name] = sha256(manifest.parent / name)
            manifest.write_text(json.dumps(listed))
            state = shards[int(manifest.parent.parent.name)]
            if state["version"] == manifest.parent.name:
                state["sha256"] = sha256(manifest)
        resealed(newest, shards=shards)


SHARD_MUTATIONS: dict[str, Callable[[Path, random.Random], str]] = {
    "shards": any_of(*WHOLE, "shards/*/*/order.npy", "shards/*/*/shard.json", "runs/*/*"),
    "shards-kept": any_of(*KEPT),
    "shards-files": any_of("**/*"),
    "shards-foreign": foreign,
    "shards-stranger": stranger,
}
"""Ways of damaging a sharded collection by name; what the last one does need not be noticed."""
