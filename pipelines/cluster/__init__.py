"""Clustering the documents of a collection by meaning."""

from .clustering import Clustering, cluster
from .labelled import read_candidates
from .settings import ClusterSettings
from .update import Updated, update

__all__ = ["ClusterSettings", "Clustering", "Updated", "cluster", "read_candidates", "update"]
