"""Models that come with Sonde: trained from the default bi-encoder, stored as what differs from it."""

from .bundles import BUNDLED, Bundle, open_bundle, unpack
from .plain import load_plain_bundled

__all__ = ["BUNDLED", "Bundle", "load_plain_bundled", "open_bundle", "unpack"]
