"""How long a source is, and documents from all of it: the first ones may be shorter than the others."""

import random
import time
from dataclasses import dataclass

from ..document import Document
from ..readers import Reading

SECONDS = 5.0
"""Longest time to look; a larger source is extrapolated from the part that was read."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What a pass over a source has found.

    Attributes:
        documents: Documents in the whole source.
        characters: Characters of their titles and texts.
        seconds: Seconds that it takes to read all of it.
        sample: Some of the documents, drawn at random from the part that was read.
    """

    documents: int
    characters: int
    seconds: float
    sample: list[Document]


def survey(reading: Reading, size: int, limit: float = SECONDS) -> Survey:
    """Read a source, at most for `limit` seconds, and return what the whole of it is like.

    Args:
        reading: A source. One that can be read only once is used up.
        size: Number of documents to draw; the same documents are drawn each time.
        limit: In seconds.
    """
    chance, began = random.Random(0), time.perf_counter()
    count = characters = 0
    sample: list[Document] = []
    for item in reading:
        if not isinstance(item, Document):
            continue
        count += 1
        characters += len(item.title) + len(item.text)
        if len(sample) < size:
            sample.append(item)
        elif (place := chance.randrange(count)) < size:
            sample[place] = item
        if time.perf_counter() - began > limit:
            break
    seconds = time.perf_counter() - began
    part = (reading.progress().fraction if seconds > limit else None) or 1.0
    return Survey(round(count / part), round(characters / part), seconds / part, sample)
