"""Every function that the interfaces share is found where the table says, without loading all of them at once."""

import pytest

from sonde.app.api import functions


@pytest.mark.parametrize("name", functions._HOME_OF)
def test_every_shared_function_exists(name: str) -> None:
    assert getattr(getattr(functions, name), "__name__", name) == name


def test_a_name_that_is_none() -> None:
    with pytest.raises(AttributeError, match="no_such_function"):
        _ = functions.no_such_function  # type: ignore[attr-defined]
