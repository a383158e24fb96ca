"""A memo asks once for a word, and forgets."""

from sonde.indexer import memo
from sonde.indexer.memo import Memo


def test_words_are_asked_once_long_ones_each_time_and_all_are_forgotten_when_there_are_too_many(monkeypatch) -> None:
    monkeypatch.setattr(memo, "MOST_WORDS", 2)
    asked: list[str] = []
    known: Memo[int] = Memo(lambda word: asked.append(word) or len(word))
    assert [known[word] for word in ("a", "bb", "a")] == [1, 2, 1]
    assert [known["x" * 41] for _ in range(2)] == [41, 41]
    assert asked == ["a", "bb", "x" * 41, "x" * 41]
    assert known["ccc"] == 3
    assert dict(known) == {"ccc": 3}
