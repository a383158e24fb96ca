"""What is new: groups that grew, shrank or appeared among the new documents of a collection."""

from .settings import WatchSettings
from .watch import Example, GroupChange, Watched, watch

__all__ = ["Example", "GroupChange", "WatchSettings", "Watched", "watch"]
