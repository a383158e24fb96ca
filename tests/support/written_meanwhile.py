"""A writer beside readers: run by tests/indexer/store/test_beside_writer.py in a process of its own.

usage: written_meanwhile.py FOLDER
Documents come in pairs that share a word: `pairs` of them in a batch, each pair in one commit. The collection is
extended, changed, thinned out and compacted, and every committed state holds whole pairs only.
"""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fake_encoder import FakeEncoder

from sonde.indexer.document import Document
from sonde.indexer.ingest import BuildSettings, index_documents
from sonde.indexer.upkeep.delete import compact
from sonde.pipelines.analysis.selections import delete

BATCH, PAIRS = 20, 120


def pairs(version: int, start: int = 0, end: int = PAIRS) -> Iterator[Document]:
    """Two documents for each number, the same version of both."""
    for number in range(start, end):
        for half in ("left", "right"):
            text = f"pair{number} version{version} common words about apples " + "and more " * (number % 50)
            yield Document(text, key=f"{number}-{half}", metadata={"number": number, "version": version})


def main(folder: Path) -> None:
    """Write for as long as it takes."""
    from sonde.indexer.store.collection import StoredCollection

    encoder = FakeEncoder(seconds=0.0005)
    chance = random.Random(1)

    def index(documents: Iterator[Document], *, sync: bool = False) -> None:
        index_documents(documents, folder, settings=BuildSettings(batch=BATCH, sync=sync), encoder=encoder)  # type: ignore[arg-type]

    for version in range(1, 3):
        index(pairs(version))
        index(pairs(version, 0, PAIRS - 20 * version), sync=True)
        gone = chance.randrange(PAIRS - 20 * version)
        delete(StoredCollection.open(folder, encoder=encoder), where=f"number = {gone}")  # type: ignore[arg-type]
        compact(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
