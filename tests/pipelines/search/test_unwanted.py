"""A search whose result nobody waits for any more ends at its next step, and leaves nothing behind."""
# ruff: noqa: F811  (fixtures that are imported)

import pytest
from searched import collection  # noqa: F401  (fixture)

from sonde.app.api import Collection
from sonde.app.http.routes.search import answer
from sonde.indexer.progress import UnwantedError, while_wanted
from sonde.pipelines.search.settings import SearchSettings

QUERY = "apple river cloud"


class Asked:
    """Counts how often it is asked, and says yes the first `most` times."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.times = 0

    def __call__(self) -> bool:
        self.times += 1
        return self.times <= self.most


@pytest.mark.parametrize("options", [{}, {"explain": True}, {"mode": "lexical", "explain": True}, {"k": 60}])
def test_it_may_end_at_each_of_its_steps(collection: Collection, options: dict[str, object]) -> None:
    settings = SearchSettings(**options)  # type: ignore[arg-type]
    whole, every = collection.search(QUERY, settings=settings), Asked(10**9)
    with while_wanted(every):
        assert answer(collection.search(QUERY, settings=settings))["hits"] == answer(whole)["hits"]
    assert every.times >= (3 + len(whole) if settings.explain else 3)
    for most in range(every.times):
        with while_wanted(Asked(most)), pytest.raises(UnwantedError, match=r"^$"):
            collection.search(QUERY, settings=settings)
    assert answer(collection.search(QUERY, settings=settings))["hits"] == answer(whole)["hits"]
