"""Collections by their folders, without opening them: a quick look, who writes, and removal."""

from ...indexer.store.lock import being_written
from ...indexer.upkeep.delete import remove_collection
from ...indexer.upkeep.info import glance as quick_look
from ...indexer.upkeep.info import last_change

__all__ = ["being_written", "last_change", "quick_look", "remove_collection"]
"""`quick_look` reads a few small files and gives what is wrong with a damaged collection instead of raising."""
