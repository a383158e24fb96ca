"""Tuning a collection's searches on queries with known answers."""

from .tuning import TuneReport, TuneSettings, forget, tune_search

__all__ = ["TuneReport", "TuneSettings", "forget", "tune_search"]
