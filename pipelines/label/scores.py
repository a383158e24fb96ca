"""Zero-shot scores of labels: by similarity to their wordings, and by natural language inference."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ...indexer.encoder import Encoder
from ...indexer.errors import SondeError, UsageError, as_text
from ...indexer.store.view import normalized
from ..pairs import PairModel
from .labels import TEMPLATE, Label, check_template, hypotheses, softmax

WORDINGS = (
    "{}", "This text is about {}.", "{} news", "a discussion of {}", "The topic is {}.", "This example is {}.",
    "questions about {}", "an article on {}",
)  # fmt: skip
"""A label's vector is the mean over these: on `bbc` 0.857 of texts got the right label, 0.803 with the name alone."""

TEMPERATURE = 0.05
"""Cosines are divided by it before the softmax."""

YES = 0.25
"""Cosine from which a text is rather about a label than not, for several labels per text."""


def label_vectors(encoder: Encoder, labels: Sequence[Label]) -> np.ndarray:
    """Return float32 [labels, d] of length 1: the mean over the wordings of name and description."""
    texts = [wording.replace("{}", label.wording) for label in labels for wording in WORDINGS]
    vectors = encoder.encode_texts(texts, query=True).reshape(len(labels), len(WORDINGS), -1)
    return normalized(vectors.mean(axis=1))


def similarity_margins(vectors: np.ndarray, of_labels: np.ndarray, multi_label: bool) -> np.ndarray:
    """Return float32 [n, labels] log-odds of cosines, higher is likelier.

    Args:
        vectors: float32 [n, d], the texts.
        of_labels: float32 [labels, d].
        multi_label: Whether a text may get several labels.
    """
    cosines = normalized(vectors) @ of_labels.T
    return (cosines - YES if multi_label else cosines) / TEMPERATURE


ENOUGH = 50
"""Texts from which a corpus can say more about a label than its name."""
ROUNDS = 10
SHARPNESS = 0.03
"""Cosines are divided by it where labels adapt to a corpus."""
NAME_SHARE = 0.4
"""How much of a label's vector stays that of its wordings."""
LEARN_FROM = 50_000
"""Texts that labels adapt to; more change nothing."""


def adapted_margins(vectors: np.ndarray, of_labels: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return float32 [n, labels] log-odds of labels that have moved towards the texts which are theirs.

    A mixture of von Mises-Fisher distributions (Banerjee and others, JMLR 2005), one for each label, whose mean is held
    near the label's own vector: every round shares the texts out among the labels, counts how common each label is, and
    moves it to the mean of the texts that it is surest of. With one label per text only.

    Args:
        vectors: float32 [n, d], all texts of a corpus.
        of_labels: float32 [labels, d].
        seed: For the sample of a corpus of more than 50,000 texts.
    """
    texts = normalized(vectors)
    some = texts
    if len(texts) > LEARN_FROM:
        some = texts[np.sort(np.random.default_rng(seed).choice(len(texts), LEARN_FROM, replace=False))]
    moved, prior = of_labels, np.zeros(len(of_labels))
    for _ in range(ROUNDS):
        shares = softmax(some @ moved.T / SHARPNESS + prior)
        prior = np.log((shares.sum(axis=0) + 1) / (len(some) + len(of_labels)))
        # Squared: texts that two labels share pull neither of them far.
        centres = normalized((shares.T**2).astype(np.float32) @ some)
        moved = normalized((1 - NAME_SHARE) * centres + NAME_SHARE * of_labels)
    return (texts @ moved.T / SHARPNESS + prior).astype(np.float32)


HUB_MODEL = "facebook/bart-large-mnli"


@dataclass(frozen=True, slots=True)
class NliClasses:
    """Which logit stands for what; `neutral` is None for a model of two classes."""

    entailment: int
    contradiction: int
    neutral: int | None

    @classmethod
    def of(cls, model: PairModel) -> "NliClasses":
        """Read the classes from the model's configuration; nothing is assumed about their order.

        A model of two classes, "entailment" and "not_entailment", has the second in the place of contradiction.

        Raises:
            SondeError: The model names no class of entailment.
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
    """Judges texts against labels by entailment; the numbers are those of transformers' zero-shot pipeline.

    Attributes:
        name: "nli".
        model: The pair model's name.
        template: The hypothesis template.
    """

    name = "nli"
    calls_per_label = 1

    def __init__(self, pairs: PairModel, template: str = TEMPLATE) -> None:
        """Take a pair model of NLI.

        Raises:
            UsageError: The template has no place for the label.
            SondeError: The model has no class of entailment.
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
        """Return float32 [texts, labels] log-odds; higher is likelier.

        With one label per text they are the entailment logits, whose softmax over the labels is the probability; with
        several, entailment's logit minus contradiction's, whose sigmoid is.

        Args:
            texts: The premises.
            labels: What the hypotheses are made of.
            multi_label: Whether a text may get several labels.
            chosen: bool [texts, labels], the pairs to judge; others get NaN. All where None.
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
        label: The likeliest: "entailment", "neutral" or "contradiction".
        entailment: Probability, 0 to 1.
        neutral: Probability; 0 for a model of two classes.
        contradiction: Probability; of "not entailment" for a model of two classes.
        model: What judged it.
    """

    label: str
    entailment: float
    neutral: float
    contradiction: float
    model: str

    @classmethod
    def of(cls, logits: np.ndarray, classes: NliClasses, model: str) -> Self:
        """Return the softmax of one pair's logits, and the likeliest class."""
        shares = softmax(logits[None])[0]
        found = {"entailment": float(shares[classes.entailment]), "contradiction": float(shares[classes.contradiction])}
        found["neutral"] = float(shares[classes.neutral]) if classes.neutral is not None else 0.0
        return cls(max(found, key=lambda name: found[name]), model=model, **found)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


def check_sentences(premise: str, hypothesis: str) -> None:
    """Raise UsageError where one of them is empty."""
    for kind, text in (("premise", premise), ("hypothesis", hypothesis)):
        if not as_text(text, kind).strip():
            raise UsageError(f"the {kind} is empty: give two sentences")


def entail(premise: str, hypothesis: str, pairs: PairModel) -> Entailment:
    """Judge whether `hypothesis` follows from `premise`.

    Raises:
        UsageError: One of them is empty.
        SondeError: The model has no class of entailment.
    """
    check_sentences(premise, hypothesis)
    classes = NliClasses.of(pairs)
    return Entailment.of(pairs.logits([(premise, hypothesis)])[0], classes, pairs.name)
