"""What a topic model is asked to do."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from ...indexer.errors import UsageError, arg, as_texts, out_of_range, unknown_option
from ..analysis.naming.namer import Namer
from ..analysis.umap import FITTED_ON
from ..cluster.labelled import check_labels

Method = Literal["auto", "levels", "dense"]
METHODS: tuple[Method, ...] = get_args(Method)
Level = Literal["suggested", "coarse", "middle", "fine"]
LEVEL_NAMES: tuple[Level, ...] = get_args(Level)
Outliers = Literal["keep", "nearest"]
OUTLIERS: tuple[Outliers, ...] = get_args(Outliers)


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Settings of one topic model.

    Attributes:
        seed: Of everything that chance decides.
        min_size: Fewest distinct texts of a topic among those that it is fitted on; None takes it from their number.
        reduce_to: Topics at most, outliers not counted; the most alike are merged.
        seed_words: Groups of words; texts near a group are drawn towards it, so that it is more likely to become a
            topic.
        outliers: What becomes of texts that belong to no dense group: "keep" them apart, or put each with its "nearest"
            neighbours.
        neighbours: Neighbours of a text in UMAP's graph.
        dimensions: To which UMAP reduces.
        sample: Distinct texts that it is fitted on, at most; the others get the topic of their neighbours.
        names: How topics are named: by "terms" alone, or by the "model", which compares terms with the topic's texts;
            "auto" takes the model if it is available.
        labels: Candidate names, "name" or "name: description": a topic is named by the one that most of its typical
            documents get.
        engine: What chooses among the labels: "similarity" or "nli".
        method: "levels" finds groups at three nested levels; "dense" finds dense groups at one level, by UMAP and
            HDBSCAN. "auto" is "dense" if `min_size` is given, which only dense groups have, or if there are fewer than
            30 distinct texts; otherwise "levels".
        level: The level whose groups are the run's topics: the "suggested" one, "coarse", "middle" or "fine".
        namer: The address of an OpenAI-compatible endpoint that is asked for names; None asks none.
        namer_model: Its model.
        namer_show: Whether to show what the namer would get, and send nothing.
        about: Approximate number of topics, without outliers. If a level has about that many (within 10 %), it is used.
            Otherwise, groups of the next finer level are merged until that many are left.
    """

    seed: int = 0
    min_size: int | None = None
    reduce_to: int | None = None
    seed_words: tuple[str | tuple[str, ...], ...] = ()
    outliers: Outliers = "nearest"
    neighbours: int = 15
    dimensions: int = 5
    sample: int = FITTED_ON
    names: Literal["auto", "terms", "model"] = "auto"
    labels: tuple[str, ...] = ()
    engine: str = "similarity"
    method: Method = "auto"
    level: Level = "suggested"
    namer: str | None = None
    namer_model: str | None = None
    namer_show: bool = False
    about: int | None = None

    def __post_init__(self) -> None:
        """Take one text as one text: a word is a group of one word."""
        if isinstance(self.seed_words, str):
            said = f"{arg('seed_words')} is {self.seed_words!r}: give a list of groups of words"
            raise UsageError(said, code="wrong-type", field="seed_words", value=self.seed_words)
        groups = tuple(tuple(as_texts(group, "seed word")) for group in self.seed_words)
        object.__setattr__(self, "seed_words", groups)

    def check(self) -> None:
        """Check what can be checked without the collection.

        Raises:
            UsageError: A setting is not valid; the message names the alternatives.
        """
        if self.outliers not in OUTLIERS:
            raise unknown_option("outliers", self.outliers, OUTLIERS)
        if self.names not in ("auto", "terms", "model"):
            raise unknown_option("names", self.names, ("auto", "terms", "model"))
        self._check_method()
        check_labels(self.labels, self.engine)
        Namer.of(self.namer, self.namer_model, self.namer_show)
        least = {"seed": 0, "neighbours": 2, "dimensions": 2, "sample": 100}
        least |= {"min_size": 2} if self.min_size is not None else {}
        least |= {name: 1 for name in ("reduce_to", "about") if getattr(self, name) is not None}
        for name, low in least.items():
            if getattr(self, name) < low:
                raise out_of_range(name, getattr(self, name), f"give a whole number from {low}")
        if self.seed >= 2**31:
            raise out_of_range("seed", self.seed, f"give a whole number below {2**31}")
        if any(not word.strip() for group in self.seed_words for word in group) or () in self.seed_words:
            said = 'seed words are empty somewhere: write groups as "price,cost;delivery,parcel"'
            raise UsageError(said, code="empty", field="seed_words")

    @property
    def dense(self) -> bool:
        """Whether dense groups at one level are asked for."""
        return self.method == "dense" or (self.method == "auto" and self.min_size is not None)

    def _check_method(self) -> None:
        if self.method not in METHODS:
            raise unknown_option("method", self.method, METHODS)
        if self.level not in LEVEL_NAMES:
            raise unknown_option("level", self.level, LEVEL_NAMES)
        if self.method == "levels" and self.min_size is not None:
            said = f"{arg('min_size')} is for dense groups: leave it out, or choose {arg('method')} dense"
            raise UsageError(said, code="conflict", field="min_size", value=self.min_size)
        if self.about is not None and (self.reduce_to is not None or self.level != "suggested"):
            other = "reduce_to" if self.reduce_to is not None else "level"
            said = f"{arg('about')} chooses the level and the number of topics: leave out {arg(other)}"
            raise UsageError(said, code="conflict", field="about", value=self.about)
        if self.dense and self.level != "suggested":
            said = f"dense groups have no levels: leave out {arg('level')}, or {arg('min_size')}"
            raise UsageError(said, code="conflict", field="level", value=self.level)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        values = asdict(self) | {"seed_words": [list(group) for group in self.seed_words]}
        left_out = ["namer_show", *([] if self.labels else ["labels", "engine"])]
        left_out += ["about"] if self.about is None else []
        left_out += [] if self.namer else ["namer", "namer_model"]
        return {name: value for name, value in values.items() if name not in left_out}


def seed_words(text: str) -> tuple[tuple[str, ...], ...]:
    """Read groups of words from "price,cost;delivery,parcel".

    Raises:
        UsageError: A group or a word is empty.
    """
    groups = tuple(tuple(word.strip() for word in group.split(",")) for group in text.split(";"))
    TopicSettings(seed_words=groups).check()
    return groups
