"""Errors: messages that name arguments for every interface, and what programs can read of a mistake."""

import pickle

import pytest

from sonde.indexer.errors import (
    Message,
    MissingExtraError,
    SondeError,
    UsageError,
    WriterBusyError,
    arg,
    out_of_range,
    unknown_option,
)


def option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def test_each_interface_names_an_argument_its_own_way() -> None:
    error = UsageError(f"{arg('reduce_to')} is 0: leave out {arg('min_size')}")
    assert str(error) == f"{error}" == "reduce_to is 0: leave out min_size"
    assert error.args == ("reduce_to is 0: leave out min_size",)
    assert error.render(option) == "--reduce-to is 0: leave out --min-size"
    assert error.render(lambda name: name.replace("_", " ")) == "reduce to is 0: leave out min size"


@pytest.mark.parametrize("text", ["{k}", "{0}", "{", "}}", "{k!r:>9}", "%(k)s", r"\1 \g<1>", "k", "{field('k')}"])
def test_text_of_users_stays_as_it_is(text: str) -> None:
    error = UsageError(f"{arg('where')} is {text}: give {arg('k')}")
    assert str(error) == f"where is {text}: give k"
    assert error.render(option) == f"--where is {text}: give --k"


def test_a_value_with_its_argument() -> None:
    error = UsageError(f"give {arg('keep', 'last')} or {arg('id', '')}")
    assert str(error) == 'give keep="last" or id=""'
    assert error.render(option) == "give --keep last or --id ''"


def test_a_mark_in_text_of_users_is_no_mark() -> None:
    """`repr`, by which messages quote values, escapes the characters that mark a name."""
    error = unknown_option("mode", arg("k"), ("dense", "hybrid"))
    assert error.render(option) == r"--mode is '\ufdd0k\ufdd1': use dense, hybrid"
    assert str(UsageError("half a mark \ufdd0k")) == "half a mark \ufdd0k"


def test_a_rendered_name_is_not_read_again() -> None:
    assert UsageError(arg("k")).render(lambda name: arg(f"{name}_{name}")) == arg("k_k")


def test_what_programs_read() -> None:
    error = out_of_range("k", 0, "ask for at least 1 hit")
    assert str(error) == "k is 0: ask for at least 1 hit"
    assert (type(error), error.code, error.field, error.value, error.alternatives) == (
        UsageError, "out-of-range", "k", 0, (),
    )  # fmt: skip
    error = unknown_option("keep", "oldest", ("first", "newest"))
    assert str(error) == "keep is 'oldest': use first, newest"
    assert (error.code, error.field, error.value) == ("unknown-option", "keep", "oldest")
    assert error.alternatives == ("first", "newest")


@pytest.mark.parametrize(
    ("error", "code", "exit_code"),
    [
        (SondeError("a"), "failed", 1),
        (UsageError("a"), "usage", 2),
        (WriterBusyError("a"), "busy", 1),
        (SondeError("a", code="not-found"), "not-found", 1),
        (MissingExtraError("peft", "train", arg("lora")), "failed", 1),
    ],
)
def test_codes(error: SondeError, code: str, exit_code: int) -> None:
    assert (error.code, error.exit_code, error.field, error.value) == (code, exit_code, None, None)


def test_a_subject_before_a_message_keeps_the_rest() -> None:
    error = out_of_range("k", 0, "ask for more")
    error.prefix("a.csv")
    assert str(error) == "a.csv: k is 0: ask for more"
    assert error.render(option) == "a.csv: --k is 0: ask for more"
    assert (error.code, error.field) == ("out-of-range", "k")


def test_a_message_that_quotes_lines_is_one_line() -> None:
    error = SondeError("catalog.db is damaged (malformed schema: \n  complete\r\n  INTEGER): restore it")
    assert str(error) == "catalog.db is damaged (malformed schema: complete INTEGER): restore it"


def test_an_error_crosses_processes() -> None:
    error = pickle.loads(pickle.dumps(out_of_range("reduce_to", 0, "give more")))
    assert (str(error), error.code, error.field) == ("reduce_to is 0: give more", "out-of-range", "reduce_to")
    assert error.render(option) == "--reduce-to is 0: give more"


def test_a_notice_is_a_string_with_names() -> None:
    notice = Message(f"language: de ({arg('language')} sets it)")
    assert isinstance(notice, str)
    assert notice == "language: de (language sets it)"
    assert notice.render(option) == "language: de (--language sets it)"
