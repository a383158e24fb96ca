"""The corpus of the kill tests: made up from a few words, with long documents, repeated texts and metadata."""

import random
from collections.abc import Iterator

from sonde.indexer.document import Document

WORDS = (
    "apple",
    "river",
    "stone",
    "cloud",
    "engine",
    "paper",
    "silver",
    "garden",
    "window",
    "music",
    "planet",
    "coffee",
)
WORDS += ("bridge", "winter", "letter")
COUNT, BATCH = 200, 25


def documents() -> Iterator[Document]:
    """The corpus as it is first indexed."""
    chance = random.Random(1)
    for number in range(COUNT):
        length = chance.choice((5, 8, 12, 120))
        sentences = [" ".join(chance.choices(WORDS, k=6)) for _ in range(max(1, length // 6))]
        text = ". ".join(sentences) if number % 10 else "the same text again"
        yield Document(text, title=f"number {number}", key=str(number), metadata={"year": 2000 + number % 20})


def changed() -> Iterator[Document]:
    """Every fifth document is gone, every seventh has another text, some are new."""
    for number, document in enumerate(documents()):
        if number % 5 == 0:
            continue
        text = f"new words about {document.text}" if number % 7 == 0 else document.text
        yield Document(text, document.title, document.key, document.metadata)
    for number in range(COUNT, COUNT + 40):
        yield Document(f"a late arrival about {WORDS[number % len(WORDS)]}", key=str(number))
