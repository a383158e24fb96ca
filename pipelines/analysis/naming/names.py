"""Names of groups: chosen among the phrases of their texts, measured on other texts, and stored with a run."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ....indexer.errors import SondeError
from ....indexer.progress import Notify, silent
from ....indexer.store.collection import StoredCollection
from ....indexer.store.run_writing import NAME_ACCURACY
from ....indexer.store.runs import Item
from ....indexer.store.view import View
from ....indexer.wording import on_one_line
from ..corpus import Corpus, texts_of
from ..describe import languages, membership_matrix
from ..neighbours import one_thread
from .choice import MOST, Evidence, NameAccuracy, bm25, choose
from .phrases import PARTED, Key, Phrase, ReadTexts, candidates, counts_by_group, stems_of
from .words import plain

READ = 6_000
"""Texts that are read for names, about; each group gets its share, and at least `LEAST` where it has them."""
ASKED = 4_000
"""Texts that the readers are asked for while a name is chosen, at most, with as many of each group."""
EVIDENCE = 30_000_000
"""Pairs of a text and a candidate that the readers judge, at most."""
LEAST = 40
HELD_OUT = 0.1
"""Share of the texts that are read that no name is made of: they measure the names."""
FEWEST = 5
"""Texts of a group from which on one is held out."""

TYPICAL, QUOTED = 5, 40
"""Texts of which the shortest names a group that has no usable phrase, and how many of its characters."""

Embed = Callable[[list[str]], np.ndarray]


def rows_to_read(groups: np.ndarray, seed: int, most: int = READ) -> np.ndarray:
    """Return ascending rows of texts to read, of each group its share, and at least 40 if it has them.

    Of more groups than a fortieth of `most`, each has fewer.

    Args:
        groups: int64 [texts], -1 for outliers, which name nothing.
        seed: Of the sample.
        most: How many, about.
    """
    random = np.random.default_rng(seed)
    inside = np.flatnonzero(groups >= 0)
    if len(inside) <= most:
        return inside
    numbers, own = np.unique(groups[inside], return_inverse=True)
    least, kept = int(np.clip(most // len(numbers), 1, LEAST)), []
    for rows in membership_matrix(own, inside):
        count = min(len(rows), max(least, round(most * len(rows) / len(inside))))
        kept.append(random.choice(rows, count, replace=False))
    return np.sort(np.concatenate(kept))


@dataclass(frozen=True, slots=True)
class Sample:
    """Texts that names are made from and measured on.

    Attributes:
        texts: As they are stored.
        groups: int64 [texts], 0 to number - 1.
        number: Of groups.
        languages: ISO 639-1 codes, the commonest first.
        vectors: float32 [texts, d] of length 1, or None to do without a model.
        embed: Turns phrases into vectors of length 1, or None.
        model: What `embed` is called, in `NameAccuracy.readers`.
    """

    texts: Sequence[str]
    groups: np.ndarray
    number: int
    languages: Sequence[str]
    vectors: np.ndarray | None = None
    embed: Embed | None = None
    model: str = "model"


class Naming:
    """Makes the names of groups, and measures any names.

    Args:
        sample: What is named.
        seed: Of the choice of the texts that are held out.
    """

    def __init__(self, sample: Sample, seed: int = 0) -> None:
        self.sample = sample
        self.held_out = _held_out(sample.groups, seed)
        self._read = ReadTexts(sample.texts, sample.languages, self.held_out)
        self._embedded: dict[str, np.ndarray] = {}

    def choose(
        self, kept: Mapping[int, str] | None = None, parents: Sequence[tuple[int, str]] | None = None,
        most: int = MOST, taken: Collection[str] = (),
    ) -> list[str]:  # fmt: skip
        """Return a name for each group: a few phrases; "" for a group that has no usable word.

        No name has a stem twice, no two names are the same, and none has a stem of its parent's name.

        Args:
            kept: Names that stay, by group.
            parents: The number and name of each group's parent, or None.
            most: Phrases of a name.
            taken: Names that are used elsewhere, and are not given again.
        """
        kept = kept or {}
        keys = self._candidates([parent for parent, _ in parents]) if parents else self._keys
        known = self._known
        if parents:
            known = self._read.phrases(self._rows.tolist(), {key for some in keys for key in some})
        keys = [self._one_spelling(some, known, own) for some, own in zip(keys, self._counts, strict=True)]
        places = {key: place for place, key in enumerate(known)}
        of_group = [[places[key] for key in some] for some in keys]
        phrases = [*known.values(), *(Phrase(name, self._stems(name)) for name in kept.values())]
        stay = {group: [len(known) + place] for place, group in enumerate(kept)}
        banned = [self._stems(name) for _, name in parents] if parents else [frozenset()] * self.sample.number
        chosen = choose(self._evidence(phrases), of_group, phrases, self.sample.number, stay, banned, most)
        names = [", ".join(phrases[place].text for place in some) for some in chosen]
        return _different(names, [[phrases[place] for place in some] for some in of_group], kept, banned, taken)

    def or_quoted(self, names: Sequence[str]) -> list[str]:
        """Return names of which the empty ones are the beginning of a typical text, in quotation marks.

        One stays empty if the texts have no words, or another group has this name.
        """
        found = list(names)
        for group, name in enumerate(names):
            if not name and (quoted := self._quoted(group)) not in found:
                found[group] = quoted
        return found

    def _quoted(self, group: int) -> str:
        """Return the shortest of the texts nearest to the mean of a group; without vectors, of its first texts."""
        rows, vectors = self._rows[self.sample.groups[self._rows] == group], self.sample.vectors
        if vectors is not None and len(rows):
            with one_thread():
                cosines = np.round((vectors[rows] @ vectors[rows].mean(axis=0)).astype(np.float64), 5)
            rows = rows[np.argsort(-cosines, kind="stable")]
        texts = [on_one_line(plain(self.sample.texts[int(row)])) for row in rows[:TYPICAL]]
        worded = [text for text in texts if any(map(str.isalpha, text))]
        if not worded:
            return ""
        text = min(worded, key=len)
        return f"“{text}”" if len(text) <= QUOTED else f"“{text[:QUOTED].rpartition(' ')[0] or text[:QUOTED]} …”"

    def _one_spelling(self, keys: list[Key], known: Mapping[Key, Phrase], counts: Counter[Key]) -> list[Key]:
        """Return phrases without those that are another spelling of a more frequent one: "web site" and "website"."""
        kept, parted = set[Key](), dict[str, list[str]]()
        for key in sorted(keys, key=lambda key: -counts[key]):
            text = known[key].text.lower()
            joined, parts = PARTED.sub("", text), PARTED.findall(text)
            if parted.setdefault(" ".join(self.stems(joined)) or joined, parts) == parts:
                kept.add(key)
        return [key for key in keys if key in kept]

    def _evidence(self, phrases: Sequence[Phrase]) -> Evidence:
        vectors, rows = self.sample.vectors, self._rows
        asked = min(ASKED, EVIDENCE // max(len(phrases), 1))
        rows = rows[rows_to_read(self.sample.groups[rows], 0, asked)]
        stems = [self._read.stems(row) for row in rows.tolist()]
        embedded = self._vectors([phrase.text for phrase in phrases])
        return Evidence.of(
            stems, self.sample.groups[rows], phrases, None if vectors is None else vectors[rows], embedded
        )

    def measure(self, names: Sequence[str]) -> NameAccuracy:
        """Return how well readers put the texts that are held out, by names, of which none needs to be ours."""
        return self._accuracy(names, np.flatnonzero(self.held_out))

    def compare(self, names: Sequence[str]) -> NameAccuracy:
        """Return how well readers put the texts that names are made of: to choose between names, not to report."""
        return self._accuracy(names, self._rows)

    def phrases(self) -> list[list[str]]:
        """Return the candidates of each group, the most telling first."""
        return [[self._known[key].text for key in some] for some in self._keys]

    def nearest(self, group: int, vector: np.ndarray) -> list[tuple[str, float]]:
        """Return the candidates of a group with their cosines to a vector of length 1, the nearest first.

        Without a model, there are none.
        """
        texts = self.phrases()[group]
        embedded = self._vectors(texts)
        if embedded is None:
            return []
        with one_thread():
            cosines = np.round((embedded @ vector).astype(np.float64), 3).tolist()
        return sorted(zip(texts, cosines, strict=True), key=lambda pair: (-pair[1], pair[0]))

    def scores(self, names: Sequence[str], rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return each reader's scores, float [rows, groups], of texts for names."""
        stems = [self._read.stems(row) for row in rows.tolist()]
        found = {"BM25": bm25(stems, [self.stems(name) for name in names])}
        vectors, embedded = self.sample.vectors, self._vectors(list(names))
        if vectors is not None and embedded is not None:
            with one_thread():
                found[self.sample.model] = np.round((vectors[rows] @ embedded.T).astype(np.float64), 5)
        return found

    def _accuracy(self, names: Sequence[str], rows: np.ndarray) -> NameAccuracy:
        own = self.sample.groups[rows]
        return NameAccuracy.of(self.scores(names, rows) if len(rows) else {}, own, self.sample.number)

    @cached_property
    def _rows(self) -> np.ndarray:
        """int64: the texts that names are made of."""
        return np.flatnonzero(~self.held_out)

    @cached_property
    def _keys(self) -> list[list[Key]]:
        return self._candidates(None)

    @cached_property
    def _known(self) -> dict[Key, Phrase]:
        return self._read.phrases(self._rows.tolist(), {key for some in self._keys for key in some})

    def _candidates(self, parents: Sequence[int] | None) -> list[list[Key]]:
        sizes = np.bincount(self.sample.groups[self._rows], minlength=self.sample.number)
        return candidates(self._counts, sizes, parents)

    @cached_property
    def _counts(self) -> list[Counter[Key]]:
        keys = [self._read.keys(row) for row in self._rows.tolist()]
        return counts_by_group(keys, self.sample.groups[self._rows], self.sample.number)

    def stems(self, name: str) -> list[str]:
        """Return the stems of a name, repeated as they occur, without stop words."""
        return stems_of(self._read.reader.tokens(name))

    def _stems(self, name: str) -> frozenset[str]:
        return frozenset(self.stems(name))

    def _vectors(self, names: list[str]) -> np.ndarray | None:
        """Return float32 [names, d], or None without a model."""
        if self.sample.embed is None or not names:
            return None
        new = sorted({name for name in names if name not in self._embedded})
        if new:
            self._embedded |= dict(zip(new, self.sample.embed(new), strict=True))
        return np.array([self._embedded[name] for name in names], np.float32)


def _held_out(groups: np.ndarray, seed: int) -> np.ndarray:
    """Return bool [texts]: a tenth of each group, at least one of five; none of a group of fewer."""
    random = np.random.default_rng(seed)
    found = np.zeros(len(groups), bool)
    own = np.unique(groups, return_inverse=True)[1]
    for rows in membership_matrix(own, np.arange(len(groups))) if len(groups) else []:
        if len(rows) >= FEWEST:
            found[random.choice(rows, max(1, round(HELD_OUT * len(rows))), replace=False)] = True
    return found


def _different(
    names: list[str], phrases: list[list[Phrase]], kept: Mapping[int, str], banned: Sequence[frozenset[str]],
    elsewhere: Collection[str] = (),
) -> list[str]:  # fmt: skip
    """Return names that differ from each other and from those elsewhere.

    A name that is taken gets a further phrase, becomes another phrase, or "".
    """
    taken = {name.casefold() for name in (*kept.values(), *elsewhere)}
    found = []
    for group, name in enumerate(names):
        if group in kept:
            found.append(kept[group])
            continue
        own = [phrase for phrase in phrases[group] if phrase.stems and not phrase.repeats(banned[group])]
        used = frozenset().union(*(phrase.stems for phrase in own if phrase.text in name.split(", ")))
        longer = (f"{name}, {phrase.text}" for phrase in own if not phrase.repeats(used))
        tried = (name, *longer, *(phrase.text for phrase in own)) if name else ()
        name = next((each for each in tried if each.casefold() not in taken), "")
        found.append(name)
        taken.add(name.casefold())
    return found


MEASURED = (NAME_ACCURACY, "name_readers", "name_texts")
"""What a report keeps of the measurement."""
AUTOMATIC = "named"
"""In the data of a group: the name that was made for it, whatever it is called now."""


def embedder(collection: StoredCollection, choice: str, notify: Notify = silent) -> Embed | None:
    """Return what embeds phrases: the collection's model, or None if it is not wanted, or not available.

    Raises:
        SondeError: It is wanted ("model") and is not available.
    """
    if choice == "terms" or (choice == "auto" and not collection.encoder_at_hand):
        return None
    try:
        encoder = collection.encoder
    except SondeError as error:
        if choice == "model":
            raise
        error.prefix("groups are named by their terms alone")
        notify(error.message)
        return None

    def embed(phrases: list[str]) -> np.ndarray:
        with one_thread():
            return encoder.encode_texts(phrases)

    return embed


def naming_of(
    view: View, corpus: Corpus, groups: np.ndarray, number: int, seed: int, embed: Embed | None = None
) -> Naming:
    """Return what names groups of a collection's texts.

    Args:
        view: Of the collection.
        corpus: Its documents.
        groups: int64 [distinct texts], -1 for outliers.
        number: Of groups.
        seed: Of the samples.
        embed: As `embedder` gives it.
    """
    rows = rows_to_read(groups, seed)
    texts = texts_of(view, corpus.snapshot.docs[corpus.first[rows]])
    vectors = corpus.vectors[rows] if embed else None
    spoken = languages(view) or ["en"]
    return Naming(Sample(texts, groups[rows], number, spoken, vectors, embed, view.generation.spec.name), seed)


def with_accuracy(items: Sequence[Item], accuracy: NameAccuracy) -> list[Item]:
    """Return items with their `name_accuracy`, in the order of the groups; outliers, number -1, stay as they are."""
    values = iter(accuracy.groups)
    return [
        item if item.number < 0 else replace(item, data={**item.data, NAME_ACCURACY: next(values)}) for item in items
    ]


def report_of(accuracy: NameAccuracy) -> dict[str, Any]:
    """Return what a run's report says of its names."""
    return dict(zip(MEASURED, (accuracy.whole, accuracy.readers, accuracy.texts), strict=True))
