"""Tuning a collection's searches on queries with known answers."""

from .tuning import TuneReport, TuneSettings, forget_defaults, tune_search

__all__ = ["TuneReport", "TuneSettings", "forget_defaults", "tune_search"]
