"""The typed options of methods are the fields of the settings classes, with their types."""

import dataclasses
from collections.abc import Sequence
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import sonde
from sonde.app.api import options
from sonde.pipelines.tune import TuneSettings

NAMED: dict[str, tuple[type[Any], type[Any], set[str]]] = {
    "build": (options.BuildOptions, sonde.BuildSettings, set()),
    "search": (options.SearchOptions, sonde.SearchSettings, {"k"}),
    "evaluate": (options.EvaluateOptions, sonde.SearchSettings, set()),
    "ask": (options.AskOptions, sonde.AskSettings, {"threshold"}),
    "cluster": (options.ClusterOptions, sonde.ClusterSettings, set()),
    "topics": (options.TopicOptions, sonde.TopicSettings, set()),
    "edit": (options.EditOptions, sonde.EditSettings, set()),
    "map": (options.MapOptions, sonde.MapSettings, set()),
    "duplicates": (options.DuplicateOptions, sonde.DuplicateSettings, set()),
    "label": (options.LabelOptions, sonde.LabelSettings, set()),
    "tune": (options.TuneOptions, TuneSettings, {"queries"}),
}
"""Options, settings, and the fields that the methods name themselves."""


def loosened(hint: Any) -> Any:
    """Return a type with every tuple of any length as a sequence: callers may give lists."""
    if get_origin(hint) is tuple and get_args(hint)[1:] == (...,):
        return Sequence[loosened(get_args(hint)[0])]  # type: ignore[misc]
    if get_args(hint) and hint.__class__.__name__ == "UnionType":
        first, *rest = (loosened(each) for each in get_args(hint))
        for each in rest:
            first |= each
        return first
    return hint


@pytest.mark.parametrize("name", NAMED)
def test_options_are_the_fields_of_the_settings(name: str) -> None:
    given, settings, named = NAMED[name]
    hints = get_type_hints(settings)
    wanted = {each.name: loosened(hints[each.name]) for each in dataclasses.fields(settings) if each.name not in named}
    assert get_type_hints(given) == wanted
    assert not given.__required_keys__
