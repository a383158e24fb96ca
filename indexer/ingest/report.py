"""Settings, estimate and report of an index run."""

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shlex import quote

from ..ann import AnnSettings
from ..ann.kinds import bytes_needed, choose_kind
from ..document import Document, Skipped
from ..encoder import DEFAULT_MODEL, Encoder
from ..errors import NothingToIndexError, UsageError, out_of_range, unknown_option
from ..languages import normalise
from ..non_answers import NonAnswersMet
from ..wording import counted, shown_id, size
from .chunker import Chunker
from .languages_met import LanguagesMet


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """Settings of one `index` run.

    The model's settings (`model` to `max_tokens`) belong to the collection: they are fixed when it is made, and a
    later run that names others is refused. None means: as the collection has it, or the default.

    Attributes:
        sync: Also delete the documents that the source no longer holds.
        delete_most: With `sync`, delete also where more than half of the documents go, which otherwise is refused: it
            looks like the wrong source.
        batch: Passages per commit; None adapts it so that a commit comes every few seconds.
        language: Language of the texts (ISO 639-1) where a document names none; None detects it from a sample.
        late: Also keep compressed token embeddings, so that reranking need not embed the best documents again. The
            collection remembers this.
        keep: "last" keeps the last of several rows with the same id; None refuses a source with such rows.
        rebuild: Rebuild lost shards of a sharded collection from the source.
        wait: Seconds to wait while another process writes to the collection, from 0.

    Raises:
        UsageError: The language is unknown, or `wait` is below 0.
    """

    model: str | None = None
    device: str = "auto"
    dtype: str | None = None
    truncate_dim: int | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    normalize: bool | None = None
    max_tokens: int | None = None
    language: str | None = None
    sync: bool = False
    delete_most: bool = False
    batch: int | None = None
    ann: AnnSettings = field(default_factory=AnnSettings)
    late: bool = False
    wait: float = 30.0
    keep: str | None = None
    rebuild: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.wait < float("inf"):
            raise out_of_range("wait", self.wait, "give a number of seconds, 0 or more")
        if self.keep not in (None, "last"):
            raise unknown_option("keep", self.keep, ("last",))
        if self.language is not None and normalise(self.language) is None:
            said = f"unknown language {self.language!r}: give a code such as en, de or pt-BR"
            raise UsageError(said, code="unknown-option", field="language", value=self.language)

    def model_options(self) -> dict[str, object]:
        """Return the settings of the model that were given, as arguments of `load_encoder`."""
        names = ("truncate_dim", "query_prompt", "document_prompt", "normalize", "max_tokens")
        given: dict[str, object] = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return given if self.dtype in (None, "auto") else given | {"dtype": self.dtype}

    @property
    def model_name(self) -> str:
        """The model's name, with the default filled in."""
        return DEFAULT_MODEL if self.model is None else self.model


PROBE_DOCUMENTS = 64
GLANCE_DOCUMENTS = 6
"""Enough to tell a short run, whose probe would be a good part of the work, from one that is worth probing."""
LONG_RUN_SECONDS = 60.0
START_SECONDS = 0.5
"""What any run takes: making the collection, the first commit, and trying the index."""
STORING_SECONDS = 0.00013
"""What storing a passage takes: catalog, lexical index and FAISS index. Measured with 20,000 and 500,000 short texts
and the static model on 2 idle cores; on busy ones it takes up to three times as long."""
STORED_PER_BYTE, STORED_PER_ROW = 1.4, 200
"""Bytes on the disk for a byte of text and for a passage, in the catalog and the lexical index. Measured with four
collections of 1,460 to 100,000 texts, within a twentieth."""
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
            f"about {counted(self.documents, 'document')} in {counted(self.passages, 'passage')}: "
            f"{duration(self.seconds)}, {size(self.memory)} of memory besides the model, {size(self.disk)} of disk"
        )


def estimate(
    sample: Sequence[Document], documents: int, encoder: Encoder, count: int = PROBE_DOCUMENTS, *,
    characters: int | None = None, reading: float = 0.0,
) -> Estimate:  # fmt: skip
    """Embed the first `count` documents of `sample` and extrapolate to `documents` documents.

    Args:
        sample: Documents of the source.
        documents: Number of documents in the source.
        encoder: The bi-encoder.
        count: Number of documents to embed.
        characters: Of all texts and titles of the source, if known: longer texts take longer.
        reading: Seconds that it takes to read the source.
    """
    probe = [document for document in sample[:count] if document.text.strip() or document.title.strip()]
    chunker = Chunker(encoder)
    passages, seconds = [], 0.0
    for _ in range(2):  # the first pass over the same texts is much slower
        began = time.perf_counter()
        passages = [passage for split in chunker.split(probe) for passage in split]
        encoder.encode([passage.tokens for passage in passages])
        seconds = time.perf_counter() - began
    scale = documents / max(len(probe), 1)
    probed = sum(len(document.title) + len(document.text) for document in probe)
    longer = scale if characters is None else characters / max(probed, 1)
    rows = round(len(passages) * scale)
    text = sum(len(document.text.encode()) + len(document.title.encode()) for document in probe) * longer
    vectors = rows * encoder.spec.dimension
    memory = vectors * 4 + rows * INDEX_BYTES_PER_ROW
    index = bytes_needed(choose_kind(AnnSettings(), encoder.spec.dimension, rows)[0], encoder.spec.dimension, rows)
    disk = round(text * STORED_PER_BYTE + rows * STORED_PER_ROW + vectors * 2 + index)
    return Estimate(documents, rows, START_SECONDS + seconds * longer + rows * STORING_SECONDS + reading, memory, disk)


def duration(seconds: float) -> str:
    """Return seconds in words: "40 s", "12 min", "3.5 h"."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


REASONS = 3
"""Reasons that are named where most rows cannot be used."""
NAMED = 5
"""Ids that a note names."""
SHOWN = 20
"""How many skipped rows the report itself holds; the file `skipped.jsonl` holds all of them."""


@dataclass(frozen=True, slots=True)
class BuildReport:
    """Counts of one run. Documents: added, replaced, unchanged, deleted, skipped. Passages: embedded, reused.

    `new_texts` counts the replaced documents whose text or title changed; in the others, only metadata did.
    `known_texts` counts the added documents whose texts other documents had before, under other ids.
    `duplicate_ids` counts documents whose id came more than once in the source: the last one is kept.
    `cut_tokens` counts tokens that no passage could hold, `cut_documents` the documents that lost some.
    `became_text` names the fields that were of another type, and are text now because a value did not fit.
    `left_out` counts values that did not fit the types that their columns were given, by column.
    `notes` says what the run did without asking: values that documents lost, columns that became text …
    """

    added: int
    replaced: int
    unchanged: int
    deleted: int
    duplicate_ids: int
    skipped: int
    skipped_rows: tuple[Skipped, ...]
    skipped_file: Path | None
    embedded: int
    reused: int
    tokens: int
    cut_tokens: int
    cut_documents: int
    seconds: float
    became_text: tuple[str, ...] = ()
    new_texts: int = 0
    known_texts: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether the collection differs from before the run."""
        return bool(self.added or self.replaced or self.deleted)

    @property
    def mostly_unusable(self) -> str | None:
        """If more rows were skipped than could be used, what was wrong with them and how many; otherwise None."""
        used = self.added + self.replaced + self.unchanged + self.duplicate_ids
        if self.skipped <= used or self.skipped_file is None:
            return None
        with self.skipped_file.open(encoding="utf-8") as lines:
            reasons = Counter(json.loads(line)["reason"] for line in lines)
        named = [f"{reason} ({count:,})" for reason, count in reasons.most_common(REASONS)]
        more = "; …" if len(reasons) > REASONS else ""
        of = f"{self.skipped:,} of {self.skipped + used:,} rows cannot be used: {'; '.join(named)}{more}"
        return f"{of}; the other {used:,} are stored, and {self.skipped_file} lists the skipped rows"

    def to_dict(self) -> dict[str, object]:
        """Return the report as JSON values."""
        found = asdict(self)
        found["skipped_file"] = str(self.skipped_file) if self.skipped_file else None
        return found


UNREPORTED = ("file", "shown", "languages", "non_answers", "recoded")
"""What a tally holds beside the values of the report."""


@dataclass
class Tally:
    """A report in the making; skipped rows go to a file as they come, so that memory stays flat."""

    file: Path
    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    deleted: int = 0
    duplicate_ids: int = 0
    skipped: int = 0
    embedded: int = 0
    reused: int = 0
    tokens: int = 0
    cut_tokens: int = 0
    cut_documents: int = 0
    shown: list[Skipped] = field(default_factory=list)
    became_text: tuple[str, ...] = ()
    new_texts: int = 0
    known_texts: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    languages: LanguagesMet = field(default_factory=LanguagesMet)
    non_answers: NonAnswersMet = field(default_factory=NonAnswersMet)
    recoded: list[str] = field(default_factory=list)
    """Ids of documents with corrections whose text changed."""

    def skip(self, rows: list[Skipped]) -> None:
        """Count skipped rows and append them to the file, which starts again with the run's first one."""
        if not rows:
            return
        # A file's name may hold bytes that are not UTF-8, which Python keeps as halves of surrogate pairs.
        with self.file.open("a" if self.skipped else "w", encoding="utf-8", errors="backslashreplace") as stream:
            for row in rows:
                stream.write(json.dumps({"origin": row.origin, "reason": row.reason}, ensure_ascii=False) + "\n")
        self.skipped += len(rows)
        self.shown.extend(rows[: SHOWN - len(self.shown)])

    def nothing(self) -> NothingToIndexError:
        """Return the error for a source without a usable document; a document from Python may have no origin."""
        first = (
            "; the first: " + ": ".join(filter(None, (self.shown[0].origin, self.shown[0].reason)))
            if self.shown
            else ""
        )
        return NothingToIndexError(f"there is nothing to index: no usable documents ({self.skipped:,} skipped{first})")

    def note_on_corrections(self, folder: Path) -> str | None:
        """Return a sentence if documents with corrections changed their text, with the command that shows them."""
        if not self.recoded:
            return None
        ids, more = self.recoded[:NAMED], ", …" if len(self.recoded) > NAMED else ""
        have = "has a new text but keeps its correction"
        if len(self.recoded) > 1:
            have = "have a new text but keep their corrections"
        named = ", ".join(map(shown_id, ids)) + more
        show = " ".join(map(quote, (str(folder), *ids)))
        said = f"{counted(len(self.recoded), 'corrected document')} {have}: {named}"
        return f"{said}; `sonde get {show}` shows {'it' if len(self.recoded) == 1 else 'them'}"

    def finish(self, seconds: float) -> BuildReport:
        """Return the finished report; a file left by an earlier run is removed when this one skipped nothing."""
        if not self.skipped:
            self.file.unlink(missing_ok=True)
        counts = {name: value for name, value in vars(self).items() if name not in UNREPORTED}
        file = self.file if self.skipped else None
        return BuildReport(skipped_rows=tuple(self.shown), skipped_file=file, seconds=seconds, **counts)
