"""BERTopic itself (Grootendorst, arXiv:2203.05794), imported without what it does to the whole process."""

import sys
import warnings
from typing import Any

from ...indexer.errors import MissingExtraError

SILENCED = (UserWarning, FutureWarning)
"""Which warnings BERTopic turns off, everywhere and for good, when it is imported."""


def bertopic() -> Any:
    """The module bertopic; warnings and its logger are then as they would be without it.

    Raises:
        MissingExtraError: It is not installed.
    """
    if sys.modules.get("bertopic") is not None:
        return sys.modules["bertopic"]
    before = list(warnings.filters)
    with warnings.catch_warnings():  # its end makes Python forget which warnings it had decided to ignore
        try:
            import bertopic as module
        except ImportError as error:
            raise MissingExtraError("BERTopic", "topics", "topics") from error
        after = [entry for entry in warnings.filters if entry in before or not _silences_all(entry)]
    filters: Any = warnings.filters
    filters[:] = after
    _restore_logger()
    return module


def _silences_all(entry: Any) -> bool:
    action, message, category, module, line = entry
    return action == "ignore" and category in SILENCED and message is None and module is None and not line


def _restore_logger() -> None:
    """Let BERTopic's logger do what any does: hand its messages to the root, at the root's level."""
    import logging

    logger = logging.getLogger("BERTopic")
    logger.handlers.clear()
    logger.propagate = True
    logger.setLevel(logging.NOTSET)
