"""What a run will take, from a short probe of its first documents."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ..chunker import Chunker
from ..document import Document
from ..encoder import Encoder

PROBE_DOCUMENTS = 64
GLANCE_DOCUMENTS = 6
"""Enough to tell a short run, whose probe would be a good part of the work, from one that is worth probing."""
LONG_RUN_SECONDS = 60.0
INDEX_BYTES_PER_ROW = 300
"""Links of the graph and postings of the lexical index, beside the vectors and the texts."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Wall-clock seconds, peak memory beyond the model and disk, both in bytes, for `documents` documents."""

    documents: int
    passages: int
    seconds: float
    memory: int
    disk: int

    @property
    def long(self) -> bool:
        """Whether the run is long enough to say so before it starts."""
        return self.seconds > LONG_RUN_SECONDS

    def to_dict(self) -> dict[str, float]:
        """Return the estimate as JSON values."""
        return asdict(self)

    def describe(self) -> str:
        """Return the estimate as one line."""
        return (
            f"about {self.documents:,} documents in {self.passages:,} passages: {duration(self.seconds)}, "
            f"{size(self.memory)} of memory beside the model, {size(self.disk)} of disk"
        )


def estimate(sample: Sequence[Document], documents: int, encoder: Encoder, count: int = PROBE_DOCUMENTS) -> Estimate:
    """Embed the first `count` documents of `sample` and extrapolate to `documents` documents."""
    probe = [document for document in sample[:count] if document.text.strip() or document.title.strip()]
    passages = [passage for split in Chunker(encoder).split(probe) for passage in split]
    encoder.encode([passage.tokens for passage in passages[:2]])  # the first pass is slower than those after it
    began = time.perf_counter()
    encoder.encode([passage.tokens for passage in passages])
    seconds = time.perf_counter() - began
    scale = documents / max(len(probe), 1)
    rows = round(len(passages) * scale)
    text = sum(len(document.text.encode()) + len(document.title.encode()) for document in probe) * scale
    vectors = rows * encoder.spec.dimension
    memory = vectors * 4 + rows * INDEX_BYTES_PER_ROW
    disk = round(text * 2 + vectors * 2 + memory)
    return Estimate(documents, rows, seconds * scale, memory, disk)


def duration(seconds: float) -> str:
    """Return seconds in words: "40 s", "12 min", "3.5 h"."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


def size(count: float) -> str:
    """Return bytes in words: "3.2 MB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1_000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1_000
    return f"{count:.1f} TB"
