"""What was found out about a word, kept for the next text that has it."""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

MOST_WORDS = 50_000
"""Kept at most, about 10 MB; with more, all are forgotten. Half the words of a large collection occur only once."""
LONGEST = 40
"""Characters of a word that is kept: longer ones hardly come again."""


class Memo(dict[str, T]):
    """A function's results by word: `memo[word]` calls it for a word that is not there. For any number of threads."""

    def __init__(self, function: Callable[[str], T]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, word: str) -> T:
        found = self._function(word)
        if len(word) <= LONGEST:
            if len(self) >= MOST_WORDS:
                self.clear()
            self[word] = found
        return found
