"""Settings and report of an index run, with a note if the model was not trained on the languages of the texts."""

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shlex import quote

from ..ann import AnnSettings
from ..document import Document, Skipped
from ..encoder import DEFAULT_MODEL, ModelSpec
from ..encoder.models import known_languages
from ..errors import Message, NothingToIndexError, UsageError, arg, out_of_range, unknown_option
from ..languages import detect, english_name, normalise
from ..non_answers import NonAnswersMet
from ..progress import Notify
from ..store.catalog import Catalog
from ..store.kinds import TAG
from ..store.members import marked_by_hand
from ..wording import counted, either, shown_id


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """Settings of one `index` run.

    The model's settings (`model` to `max_tokens`) belong to the collection: they are fixed when it is made, and a
    later run that names others is refused. None means: as the collection has it, or the default.

    Attributes:
        sync: Also delete the documents that the source no longer holds.
        delete_most: With `sync`, also delete most documents or those of another source, which otherwise is refused: it
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
    `unread_files` counts the files of folders that were left out, by kind: a suffix, `without a suffix`, `hidden` …
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
    unread_files: dict[str, int] = field(default_factory=dict)
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
        found["skipped_rows"] = [{"origin": row.origin, "reason": row.reason} for row in self.skipped_rows]
        found["skipped_file"] = str(self.skipped_file) if self.skipped_file else None
        return found


FEWEST = 20
"""Documents without a language of their own below which it is not detected: a small update must stay quick."""
SAMPLE, CHARACTERS = 100, 500
"""Texts whose language is detected, and how much of each is read."""
SURE = 10
"""Texts whose language is sure, below which the language of the collection counts for all."""
SHARE = 0.1
"""Least share of a run's documents in languages unknown to the model for which a note is shown."""
MULTILINGUAL = "intfloat/multilingual-e5-small"
"""The model that the note names, and docs/crosslingual.md."""
_LANGUAGES_NAMED = 3
"""Languages that a sentence names, at most."""


class LanguagesMet:
    """Counts documents by language, and keeps a random sample of the texts without a stated language.

    Every text has the same chance to be in the sample (Vitter, "Random Sampling with a Reservoir", 1985). Every tenth
    text would not do: sources may alternate between languages.
    """

    def __init__(self) -> None:
        self.named: Counter[str] = Counter()
        self.unnamed = 0
        self.sample: list[str] = []
        self._chance = random.Random(0)

    def see(self, document: Document) -> None:
        """Count a document that is new or has changed."""
        if document.language:
            self.named[document.language] += 1
            return
        self.unnamed += 1
        place = len(self.sample) if len(self.sample) < SAMPLE else self._chance.randrange(self.unnamed)
        if place < SAMPLE:
            self.sample[place : place + 1] = [(document.text or document.title)[:CHARACTERS]]

    def note(self, spec: ModelSpec, folder: Path, usual: str | None, given: bool) -> str | None:
        """Return a sentence if the model was not trained on the language of many documents, else None.

        Args:
            spec: The model. If its languages are not known, there is nothing to say.
            folder: The collection, for the command that changes its model.
            usual: The language of documents that have none of their own; None if it is not known.
            given: Whether the user has named it, so that it need not be detected.
        """
        total = self.named.total() + self.unnamed
        known = known_languages(spec) if total else None
        if known is None:
            return None
        counts, estimated = self._counts(usual, given)
        foreign = [(code, count) for code, count in counts.most_common() if code not in known]
        affected = round(sum(count for _, count in foreign))
        if affected < max(1.0, SHARE * total):
            return None
        many = f"about {affected / total:.0%}" if estimated else f"{affected:,}"
        verb = "is" if affected == 1 and not estimated else "are"
        which = f"{many} of {total:,} documents {verb}" if total > 1 else "the document is"
        return (
            f"{which} in {_either([code for code, _ in foreign])}; the model {spec.name} was trained on "
            f"{_trained_on(known)}: `sonde model {quote(str(folder))} --to {MULTILINGUAL}` changes the model"
        )

    def _counts(self, usual: str | None, given: bool) -> tuple[Counter[str], bool]:
        """Return how many documents each language has, and whether that is an estimate."""
        found = Counter(self.named)
        shares = None if given or self.unnamed < FEWEST else _shares(self.sample)
        if shares is None:
            if usual and self.unnamed:
                found[usual] += self.unnamed
            return found, False
        for code, share in shares.items():
            found[code] += round(share * self.unnamed)
        return found, any(share < 1 for share in shares.values())


def _shares(texts: list[str]) -> Mapping[str, float] | None:
    """Return the share of each language among the texts whose language is sure; None if too few are."""
    found = [code for text in texts if (code := detect([text]))]
    return {code: count / len(found) for code, count in Counter(found).items()} if len(found) >= SURE else None


def _either(codes: Sequence[str]) -> str:
    names, more = [english_name(code) for code in codes[:_LANGUAGES_NAMED]], len(codes) - _LANGUAGES_NAMED
    return f"{', '.join(names)} or {counted(more, 'other language')}" if more > 0 else either(names)


def _trained_on(known: frozenset[str]) -> str:
    names = sorted(english_name(code) for code in known)
    return " and ".join(names) if len(names) <= _LANGUAGES_NAMED else f"{len(names)} others"


UNREPORTED = ("file", "shown", "languages", "non_answers", "recoded")
"""What a tally holds beside the values of the report."""


def say_marked(catalog: Catalog, docs: Sequence[int], notify: Notify) -> None:
    """Say which documents that are about to be deleted have a tag or a correction: both go with them."""
    found = [
        f"{counted(count, 'document')} with {'the tag' if kind is TAG else 'a correction of'} {name!r}"
        for kind, name, count in marked_by_hand(catalog, docs)
    ]
    if found:
        said = f"{arg('sync')} deletes {', '.join(found)}; what people marked does not come back with the file"
        notify(Message(f"note: {said}"))


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
    unread_files: dict[str, int] = field(default_factory=dict)
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
