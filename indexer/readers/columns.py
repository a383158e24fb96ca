"""Which column plays which role, and how that is said."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_SHOWN = 12


@dataclass(frozen=True)
class Columns:
    """The role of each column of a source.

    `metadata` gives the type of every other column that holds something: text, integer, real, boolean, date or list.
    `reasons` says for text, title, id and language how the column was chosen, or why there is none.
    `parts` holds the columns of each source by name where several that differ were given together.
    """

    text: tuple[str, ...]
    title: str | None = None
    id: str | None = None
    language: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    parts: Mapping[str, "Columns"] = field(default_factory=dict)

    def describe(self) -> str:
        """One line that says every choice aloud."""
        if self.parts:
            return " | ".join(f"{name}: {columns.describe()}" for name, columns in self.parts.items())
        said = [self._role("text", " + ".join(self.text)), self._role("title", self.title), self._role("id", self.id)]
        if self.language:
            said.append(self._role("language", self.language))
        said.append(f"metadata: {self._metadata()}")
        if self.note:
            said.append(f"read as: {self.note}")
        return " · ".join(said)

    def _role(self, role: str, column: str | None) -> str:
        reason = self.reasons.get(role, "")
        if column is None:
            return f"{role}: none" + (f", {reason}" if reason else "")
        return f"{role}: {column}" + (f" ({reason})" if reason else "")

    def _metadata(self) -> str:
        shown = [f"{name} ({kind})" for name, kind in list(self.metadata.items())[:_SHOWN]]
        more = len(self.metadata) - len(shown)
        return (", ".join(shown) or "none") + (f" and {more} more" if more else "")


def merged(parts: Sequence[tuple[str, Columns]]) -> Columns:
    """The columns of several sources read as one: the first one's roles, everyone's metadata."""
    first = parts[0][1]
    if all(columns == first for _, columns in parts):
        return first
    metadata: dict[str, str] = {}
    for _, columns in parts:
        for name, kind in columns.metadata.items():
            metadata[name] = kind if metadata.get(name, kind) == kind else _wider(metadata[name], kind)
    return Columns(first.text, first.title, first.id, first.language, metadata, first.reasons, "", dict(parts))


def _wider(one: str, other: str) -> str:
    return "real" if {one, other} == {"integer", "real"} else "text"
