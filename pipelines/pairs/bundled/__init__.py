"""Models that come with Sonde: trained from the default bi-encoder, stored as what differs from it."""

from .loading import BUNDLED, Bundle, load_bundled, pack, unpack, write_bundle

__all__ = ["BUNDLED", "Bundle", "load_bundled", "pack", "unpack", "write_bundle"]
