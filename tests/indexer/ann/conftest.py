"""What the tests of vector indexes share."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="package")
def few_vectors_are_searched_by_the_index() -> Iterator[None]:
    """Up to 5,000 vectors are compared one by one, so that tests of a few thousand would never search the index."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["sonde.indexer.ann.index"], "SMALL_SUBSET", 100)
        yield
