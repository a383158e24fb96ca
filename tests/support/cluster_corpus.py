"""A corpus of three themes, told apart by their words, with copies and a few texts that fit nowhere."""

import random
from pathlib import Path
from typing import Any

from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index

THEMES = {
    "fruit": ("apple", "banana", "cherry", "orchard", "juice", "harvest"),
    "cars": ("engine", "wheel", "brake", "diesel", "garage", "clutch"),
    "music": ("violin", "concert", "melody", "drum", "choir", "piano"),
}
COPY = "fruit fruit fruit fruit apple banana cherry"


def rows(each: int = 40) -> list[dict[str, Any]]:
    """`each` texts of every theme, of which four are the same, with the theme and a date as metadata."""
    chance = random.Random(0)
    found = []
    for theme, words in THEMES.items():
        for number in range(each):
            text = (
                COPY
                if theme == "fruit" and number % 10 == 0
                else " ".join([theme] * 4 + chance.choices(words, k=2) + [f"{theme}x{number}"])
            )
            found.append({"id": f"{theme}-{number}", "text": text, "theme": theme, "day": f"2024-0{1 + number % 9}-01"})
    return found


def collection(folder: Path, each: int = 40) -> Collection:
    """Index the corpus."""
    return made(rows(each), folder)


def made(documents: list[dict[str, Any]], folder: Path) -> Collection:
    """Index documents with ids."""
    encoder: Any = FakeEncoder()
    return index(documents, folder, id="id", text="text", encoder=encoder)
