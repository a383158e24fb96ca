"""Zero-shot scores of labels, from similarity to their wordings and from natural language inference."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ...indexer.encoder import Encoder
from ...indexer.errors import SondeError, UsageError, as_text
from ...indexer.store.view import normalized
from ..pairs import PairScorer
from .labels import TEMPLATE, Label, check_template, hypotheses
from .solvers import softmax

WORDINGS = (
    "{}", "This text is about {}.", "{} news", "a discussion of {}", "The topic is {}.", "This example is {}.",
    "questions about {}", "an article on {}",
)  # fmt: skip
"""A label's embedding is the mean over these: accuracy on `bbc` is 0.857, and 0.803 with the name alone."""

TEMPERATURE = 0.05
"""Cosines are divided by this value before the softmax."""

YES = 0.25
"""Minimum cosine for a label to be more likely than not, with several labels per text."""


def label_vectors(encoder: Encoder, labels: Sequence[Label]) -> np.ndarray:
    """Return unit-length label embeddings, float32 [labels, d]: the mean over the wordings of name and description."""
    texts = [wording.replace("{}", label.wording) for label in labels for wording in WORDINGS]
    vectors = encoder.encode_texts(texts, query=True).reshape(len(labels), len(WORDINGS), -1)
    return normalized(vectors.mean(axis=1))


def similarity_margins(vectors: np.ndarray, of_labels: np.ndarray, multi_label: bool) -> np.ndarray:
    """Return log-odds from cosines as float32 [n, labels]; higher is more likely.

    Args:
        vectors: float32 [n, d], the texts.
        of_labels: float32 [labels, d].
        multi_label: Whether a text may get several labels.
    """
    cosines = normalized(vectors) @ of_labels.T
    return (cosines - YES if multi_label else cosines) / TEMPERATURE


ENOUGH = 50
"""Minimum number of texts for a corpus to add information about a label beyond its name."""
ROUNDS = 10
SHARPNESS = 0.03
"""Cosines are divided by this value when labels adapt to a corpus."""
NAME_SHARE = 0.4
"""Share of a label's adapted embedding that comes from its wordings."""
LEARN_FROM = 50_000
"""Maximum number of texts to which labels adapt; more do not change the result."""


def adapted_margins(vectors: np.ndarray, of_labels: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return log-odds as float32 [n, labels], after moving each label towards the texts that it fits.

    The model is a mixture of von Mises-Fisher distributions (Banerjee and others, JMLR 2005), one for each label, with
    the mean kept close to the label's own embedding. Each round distributes the texts among the labels, counts how
    common each label is, and moves each label to the mean of its most certain texts. Only for one label per text.

    Args:
        vectors: float32 [n, d], all texts of a corpus.
        of_labels: float32 [labels, d].
        seed: Random seed for sampling a corpus of more than 50,000 texts.
    """
    texts = normalized(vectors)
    some = texts
    if len(texts) > LEARN_FROM:
        some = texts[np.sort(np.random.default_rng(seed).choice(len(texts), LEARN_FROM, replace=False))]
    moved, prior = adapted(some, of_labels)
    return (texts @ moved.T / SHARPNESS + prior).astype(np.float32)


def adapted(texts: np.ndarray, of_labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return labels moved towards the texts that they fit, float32 [labels, d], and how common they are, as logarithms.

    Args:
        texts: float32 [n, d], unit length.
        of_labels: float32 [labels, d].
    """
    moved, prior = of_labels, np.zeros(len(of_labels))
    for _ in range(ROUNDS):
        shares = softmax(texts @ moved.T / SHARPNESS + prior)
        prior = np.log((shares.sum(axis=0) + 1) / (len(texts) + len(of_labels)))
        # Squared, so that texts shared by two labels do not move either label far.
        centres = normalized((shares.T**2).astype(np.float32) @ texts)
        moved = normalized((1 - NAME_SHARE) * centres + NAME_SHARE * of_labels)
    return moved, prior


HUB_MODEL = "facebook/bart-large-mnli"


@dataclass(frozen=True, slots=True)
class NliClasses:
    """The position of each class in the logits; `neutral` is None for a model with two classes."""

    entailment: int
    contradiction: int
    neutral: int | None

    @classmethod
    def of(cls, model: PairScorer) -> "NliClasses":
        """Read the classes from the model's configuration, without assuming an order.

        For a model with two classes, "entailment" and "not_entailment", the second is used as contradiction.

        Raises:
            SondeError: The model has no class named entailment.
        """
        names = {name.lower().strip(): number for number, name in model.id2label.items()}
        entailment = _first(names, ("entail",))
        if entailment is None:
            known = ", ".join(model.id2label.values())
            raise SondeError(f"{model.name} is no NLI model: none of its classes is entailment (they are {known})")
        contradiction = _first(names, ("contra", "not_entail", "not entail", "non_entail", "non-entail"))
        others = [number for number in names.values() if number != entailment]
        if contradiction is None and len(others) == 1:
            contradiction = others[0]
        if contradiction is None:
            known = ", ".join(model.id2label.values())
            raise SondeError(f"{model.name} is no NLI model: none of its classes is contradiction (they are {known})")
        return cls(entailment, contradiction, _first(names, ("neutral",)))


def _first(names: dict[str, int], beginnings: tuple[str, ...]) -> int | None:
    return next((number for name, number in names.items() if name.startswith(beginnings)), None)


class NliJudge:
    """Judges texts against labels by entailment; the results equal those of transformers' zero-shot pipeline.

    Attributes:
        name: "nli".
        model: The pair model's name.
        template: The hypothesis template.
    """

    name = "nli"
    calls_per_label = 1

    def __init__(self, pairs: PairScorer, template: str = TEMPLATE) -> None:
        """Take an NLI pair model.

        Raises:
            UsageError: The template has no placeholder for the label.
            SondeError: The model has no entailment class.
        """
        self.pairs = pairs
        self.classes = NliClasses.of(pairs)
        self.template = check_template(template)

    @property
    def model(self) -> str:
        """The model's name."""
        return self.pairs.name

    def margins(
        self, texts: Sequence[str], labels: Sequence[Label], multi_label: bool,
        chosen: np.ndarray | None = None, on_batch: Callable[[int], object] | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return log-odds as float32 [texts, labels]; higher is more likely.

        With one label per text, they are the entailment logits; their softmax over the labels is the probability. With
        several, they are the entailment logit minus the contradiction logit; their sigmoid is the probability.

        Args:
            texts: The premises.
            labels: The labels from which the hypotheses are built.
            multi_label: Whether a text may get several labels.
            chosen: bool [texts, labels], the pairs to judge; other pairs get NaN. All pairs if None.
            on_batch: Called with the number of pairs of each batch.
        """
        wordings = hypotheses(labels, self.template)
        places = np.argwhere(np.ones((len(texts), len(labels)), bool) if chosen is None else chosen)
        logits = self.pairs.logits(
            [(texts[text], wordings[label]) for text, label in places.tolist()], on_batch=on_batch
        )
        found = np.full((len(texts), len(labels)), np.nan, np.float32)
        margin = logits[:, self.classes.entailment]
        if multi_label:
            margin = margin - logits[:, self.classes.contradiction]
        found[places[:, 0], places[:, 1]] = margin
        return found


@dataclass(frozen=True, slots=True)
class Entailment:
    """Whether a hypothesis follows from a premise: three probabilities that sum to one (two without neutral).

    Attributes:
        label: The most likely class: "entailment", "neutral" or "contradiction".
        entailment: Probability, 0 to 1.
        neutral: Probability; 0 for a model with two classes.
        contradiction: Probability; that of "not entailment" for a model with two classes.
        model: The model that judged the pair.
    """

    label: str
    entailment: float
    neutral: float
    contradiction: float
    model: str

    @classmethod
    def of(cls, logits: np.ndarray, classes: NliClasses, model: str) -> Self:
        """Return the softmax of one pair's logits, and the most likely class."""
        shares = softmax(logits[None])[0]
        found = {"entailment": float(shares[classes.entailment]), "contradiction": float(shares[classes.contradiction])}
        found["neutral"] = float(shares[classes.neutral]) if classes.neutral is not None else 0.0
        return cls(max(found, key=lambda name: found[name]), model=model, **found)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


def check_sentences(premise: str, hypothesis: str) -> None:
    """Raise UsageError if one of the sentences is empty."""
    for kind, text in (("premise", premise), ("hypothesis", hypothesis)):
        if not as_text(text, kind).strip():
            raise UsageError(f"the {kind} is empty: give two sentences")


def entail(premise: str, hypothesis: str, pairs: PairScorer) -> Entailment:
    """Judge whether `hypothesis` follows from `premise`.

    Raises:
        UsageError: One of the sentences is empty.
        SondeError: The model has no entailment class.
    """
    check_sentences(premise, hypothesis)
    classes = NliClasses.of(pairs)
    return Entailment.of(pairs.logits([(premise, hypothesis)])[0], classes, pairs.name)
