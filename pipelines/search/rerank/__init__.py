"""The second stage of a search: the first stage's best documents are read again with their query, and reordered."""

from .models import HUB_DEFAULT, LATE, OFFLINE_DEFAULT
from .stage import DEPTH, SecondStage, parse_budget

__all__ = ["DEPTH", "HUB_DEFAULT", "LATE", "OFFLINE_DEFAULT", "SecondStage", "parse_budget"]
