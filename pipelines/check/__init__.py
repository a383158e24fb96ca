"""Checks of the data: doubtful labels, copies, outliers, and texts that are not what they should be."""

from .check import Checked, Found, check
from .personal import Masker
from .settings import KINDS, CheckKind, CheckSettings

__all__ = ["KINDS", "CheckKind", "CheckSettings", "Checked", "Found", "Masker", "check"]
