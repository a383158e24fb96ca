"""Models that come with Sonde: trained from the default bi-encoder, stored as what differs from it."""

from .bundles import BUNDLED, Bundle, load_plain_bundled, open_bundle, unpack

__all__ = ["BUNDLED", "Bundle", "load_plain_bundled", "open_bundle", "unpack"]
