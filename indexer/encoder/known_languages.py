"""Which languages a model was trained on, as far as its card says."""

from pathlib import Path

from ..errors import SondeError
from ..languages import normalise
from .models import DEFAULT_MODEL, STATIC_MODEL, cached
from .settings import ModelSpec

CARD = "README.md"
LARGEST_CARD = 1 << 20
"""Bytes of a card above which it is not read."""


def known_languages(spec: ModelSpec) -> frozenset[str] | None:
    """Return the ISO 639-1 codes of the languages that a model was trained on; None if its card does not list them.

    The card is the file README.md in the model's folder, whose first lines have the entry `language`. The network is
    never used. "multilingual" is no list.
    """
    tier, _, base = spec.name.partition(":")
    name = (base or DEFAULT_MODEL) if tier == STATIC_MODEL else spec.name
    if name == DEFAULT_MODEL:
        return frozenset({"en"})
    folder = _folder(name, spec.revision)
    return _listed(folder / CARD) if folder else None


def _folder(name: str, revision: str | None) -> Path | None:
    if Path(name).is_absolute():
        return Path(name)
    try:
        return cached(name, revision)
    except SondeError:
        return None


def _listed(card: Path) -> frozenset[str] | None:
    from huggingface_hub import metadata_load
    from yaml import YAMLError

    try:
        if card.stat().st_size > LARGEST_CARD:
            return None
        found = (metadata_load(card) or {}).get("language")
    except (OSError, ValueError, YAMLError, RecursionError):  # a card is written by hand
        return None
    names = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    codes = [normalise(str(name)) for name in names]
    return frozenset(code for code in codes if code) if codes and all(codes) else None
