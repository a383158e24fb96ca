"""Which text of a pair is cut where both do not fit into the model's window."""

from typing import Literal, get_args

Cut = Literal["first", "longest"]
CUTS: tuple[Cut, ...] = get_args(Cut)


def fit(first: int, second: int, room: int, cut: Cut) -> tuple[int, int]:
    """Return how many tokens of either text to keep, so that both fit into `room` tokens.

    "first" cuts the first text alone, as zero-shot pipelines do. Where the second leaves no room for a token of it,
    the second is cut to half the room: a pair never fails. "longest" evens both out, as cross-encoders do for
    queries and passages (`longest_first`).
    """
    if first + second <= room:
        return first, second
    if cut == "longest":
        return _even(first, second, room)
    second = second if second < room else room // 2
    return min(first, room - second), second


def _even(first: int, second: int, room: int) -> tuple[int, int]:
    """Cut the longer one until both are of one length, then both; an odd token stays with the longer."""
    shorter, longer = min(first, second), max(first, second)
    shorter, longer = (shorter, room - shorter) if shorter <= room // 2 else (room // 2, room - room // 2)
    return (longer, shorter) if first > second else (shorter, longer)
