"""Names of groups inside larger groups: apart from the parent's name, unless readers need its words."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sonde.pipelines.analysis.naming.choice import NameAccuracy
from sonde.pipelines.topics.items import _apart

PARENTS = [(0, "kettle, toaster"), (0, "kettle, toaster"), (1, "lamp"), (1, "lamp")]
APART = ["sent", "bread", "bright", "pieces"]
FREE = ["kettle", "toaster, bread", "Lamp", "glass shade"]


class Naming:
    """Gives one list of names with a ban on the parents' words and another without."""

    def __init__(self, accuracies: dict[str, float]) -> None:
        self.accuracies = accuracies

    def choose(
        self, kept: Mapping[int, str], parents: Sequence[tuple[int, str]], taken: Collection[str] = ()
    ) -> list[str]:
        assert [number for number, _ in parents] == [number for number, _ in PARENTS]
        return APART if parents[0][1] else FREE

    def compare(self, names: Sequence[str]) -> NameAccuracy:
        return NameAccuracy(None, tuple(self.accuracies.get(name) for name in names), {}, 9)


def names(**accuracies: float) -> list[str]:
    naming: Any = Naming(accuracies)
    return _apart(naming, {}, PARENTS)


def test_a_word_of_the_parent_is_used_only_where_readers_need_it() -> None:
    assert names(sent=0.1, kettle=0.9, bread=0.5) == ["kettle", "bread", "bright", "pieces"]
    assert names(sent=0.85, kettle=0.9) == APART, "not for a little"


def test_no_name_is_that_of_the_parent_and_none_comes_twice() -> None:
    assert names(Lamp=1.0) == APART
    FREE[1] = "sent"
    assert names(sent=1.0, bread=0.0)[:2] == ["sent", "bread"]
    FREE[1] = "toaster, bread"
