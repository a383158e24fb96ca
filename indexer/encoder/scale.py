"""A model's levels of similarity: between a question and a passage that answers it, and between unrelated texts.

Models differ: unrelated texts have a cosine near 0 with one model and near 0.8 with another. The same reference texts
are embedded with each, so that one mapping from similarity to relevance serves all of them.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .models import DEFAULT_MODEL
from .settings import ModelSpec

REFERENCE = (
    ("how do I bake bread at home", "Mix flour, water and yeast, let the dough rise, and bake the loaf."),
    ("my parcel has not arrived", "If a delivery is late, contact the carrier about the shipment."),
    ("what causes earthquakes", "Plates of the Earth's crust slip along a fault, and the ground shakes."),
    ("how can I reset my password", "Choose 'forgot password' on the login page and follow the link in the email."),
    ("symptoms of the flu", "Influenza brings fever, aching muscles, a cough and tiredness."),
    ("who painted the ceiling of the Sistine Chapel", "Michelangelo worked on the frescoes in Rome for years."),
    ("best way to learn to play the guitar", "Beginners practise a few chords on six strings every day."),
    ("why is the sky blue", "Air scatters short wavelengths of sunlight more than long ones, so the sky looks blue."),
    ("how to sort a list in a program", "The function returns the items of the array in ascending order."),
    ("can I get my money back for a broken lamp", "Faulty goods may be returned for a full refund."),
    ("when did the Second World War end", "Germany surrendered in May 1945 and Japan in September."),
    ("what do pandas eat", "The giant panda lives almost only on bamboo shoots and leaves."),
    ("how do interest rates affect house prices", "When mortgages cost more, fewer people buy homes."),
    ("how many players are in a football team", "Each side has eleven players, one of whom is the goalkeeper."),
    ("how do vaccines work", "A vaccine trains the immune system to recognise a virus before an infection."),
    ("how to keep tomato plants healthy", "Water the tomatoes at the roots, give them sun, and cut off yellow leaves."),
    ("what does a judge do", "In court the judge hears both sides, explains the law and passes sentence."),
    ("which train goes to the airport", "The express leaves the central station for the airport terminal."),
    ("how far away is the moon", "The average distance from the Earth to the Moon is 384,000 kilometres."),
    ("tips for a job interview", "Prepare answers to common questions and arrive early at the employer's."),
    ("how does a battery store energy", "Chemical reactions between two electrodes charge and discharge the cell."),
    ("is it safe to swim in the lake", "Bathing is allowed where the water is clean and lifeguards watch the beach."),
    ("what is a neural network", "Layers of connected units learn from examples by adjusting their weights."),
    ("how do I remove a wine stain from a carpet", "Blot the red spot, then rub salt or soapy water into the rug."),
)  # fmt: skip
"""Questions with passages that answer them, each on a different subject. They were written for this purpose."""

NARROWEST = 0.02
"""The least distance between both levels, so that a model that knows no meaning causes no division by 0."""


@dataclass(frozen=True, slots=True)
class SimilarityScale:
    """Two levels of a model's similarity.

    Attributes:
        unrelated: Median similarity of a reference question and the nearest passage that does not answer it.
        related: Median similarity of a reference question and the passage that answers it.
    """

    unrelated: float
    related: float

    def standard(self, similarities: np.ndarray) -> np.ndarray:
        """Return similarities on a scale that all models share: 0 is the unrelated level, 1 the related one."""
        return (similarities - self.unrelated) / max(self.related - self.unrelated, NARROWEST)


DEFAULT_SCALE = SimilarityScale(unrelated=0.150, related=0.538)
"""The scale of the default model; a test computes it again."""


class Embeds(Protocol):
    """The part of an encoder that is used here."""

    spec: ModelSpec

    def encode_texts(self, texts: list[str], query: bool = False) -> np.ndarray:
        """Return float32 [n, d]."""
        ...


def measured_scale(encoder: Embeds) -> SimilarityScale:
    """Embed the reference texts and return the model's two levels."""
    questions = encoder.encode_texts([question for question, _ in REFERENCE], query=True)
    passages = encoder.encode_texts([passage for _, passage in REFERENCE])
    similarities = (questions @ passages.T).astype(np.float64)
    related = np.diagonal(similarities).copy()
    np.fill_diagonal(similarities, -np.inf)
    return SimilarityScale(float(np.median(similarities.max(axis=1))), float(np.median(related)))


_measured: dict[str, SimilarityScale] = {}


def known_scale(spec: ModelSpec) -> SimilarityScale | None:
    """Return a model's levels if they are known already: those of the default model, or measured in this process."""
    if spec.name == DEFAULT_MODEL and spec.truncate_dim is None:
        return DEFAULT_SCALE
    return _measured.get(spec.fingerprint)


def scale_of(encoder: Embeds) -> SimilarityScale:
    """Return a model's levels, measured once in each process if they are not known."""
    known = known_scale(encoder.spec)
    if known is None:
        known = _measured[encoder.spec.fingerprint] = measured_scale(encoder)
    return known
