"""What a build did, counted."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ..document import Skipped

SHOWN = 20
"""How many skipped rows the report itself holds; the file `skipped.jsonl` holds all of them."""


@dataclass(frozen=True, slots=True)
class BuildReport:
    """Counts of one run. Documents: added, replaced, unchanged, deleted, skipped. Passages: embedded, reused.

    `duplicate_ids` counts documents whose id came more than once in the source: the last one is kept.
    `cut_tokens` counts tokens that no passage could hold, `cut_documents` the documents that lost some.
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

    @property
    def changed(self) -> bool:
        """Whether the collection differs from before the run."""
        return bool(self.added or self.replaced or self.deleted)

    def to_dict(self) -> dict[str, object]:
        """Return the report as JSON values."""
        found = asdict(self)
        found["skipped_file"] = str(self.skipped_file) if self.skipped_file else None
        return found


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

    def skip(self, rows: list[Skipped]) -> None:
        """Count skipped rows and append them to the file, which starts anew with the run's first one."""
        if not rows:
            return
        with self.file.open("a" if self.skipped else "w", encoding="utf-8") as stream:
            for row in rows:
                stream.write(json.dumps({"origin": row.origin, "reason": row.reason}, ensure_ascii=False) + "\n")
        self.skipped += len(rows)
        self.shown.extend(rows[: SHOWN - len(self.shown)])

    def finish(self, seconds: float) -> BuildReport:
        """Return the finished report; a file left by an earlier run is removed when this one skipped nothing."""
        if not self.skipped:
            self.file.unlink(missing_ok=True)
        counts = {name: value for name, value in vars(self).items() if name not in ("file", "shown")}
        file = self.file if self.skipped else None
        return BuildReport(skipped_rows=tuple(self.shown), skipped_file=file, seconds=seconds, **counts)
