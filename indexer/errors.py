"""Errors that a user can act on: one line that says what is wrong and what to do."""


class SondeError(Exception):
    """Something failed; the message says what, and what to do about it."""

    exit_code = 1


class UsageError(SondeError):
    """The request itself cannot be right, whatever the data: a bad option, an unknown column, a k of 0."""

    exit_code = 2


class WriterBusyError(SondeError):
    """Another process is writing the collection."""


class NothingToIndexError(SondeError):
    """The source gave no document that can be used."""


class MissingExtraError(SondeError):
    """An optional library is needed and absent; the message prints the command that installs it."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {library}, which is not installed: pip install 'sonde[{extra}]'")
