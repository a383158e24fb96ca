"""Texts of four themes that share no word, for topics and maps; with the fake encoder a theme is a dense group."""

import random
from pathlib import Path
from typing import Any

from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index

THEMES = {
    "parcel": "parcel late delivery courier lost tracking depot",
    "battery": "battery charge cable power socket adapter voltage",
    "screen": "screen display pixel glass scratch brightness panel",
    "refund": "refund money invoice payment card bank receipt",
}
MONTHS = ("2024-01-10", "2024-02-11", "2024-03-12", "2024-04-13")


def rows(each: int = 30, themes: dict[str, str] = THEMES, first: int = 0) -> list[dict[str, Any]]:
    """Texts of four words of their theme, with ids THEME-NUMBER, the theme, a date and a number of stars."""
    chance = random.Random(7 + first)
    return [
        {"id": f"{theme}-{number}", "text": " ".join([theme, *chance.sample(words.split(), 4)]), "theme": theme,
         "day": MONTHS[number % 4], "stars": number % 5}
        for number in range(first, first + each) for theme, words in themes.items()
    ]  # fmt: skip


def collection(folder: Path, made: list[dict[str, Any]]) -> Collection:
    """A collection of rows, made or brought up to date."""
    encoder: Any = FakeEncoder()
    return index(made, folder, text="text", id="id", encoder=encoder)
