"""Models of the Hugging Face hub: the local cache first, then an announced download."""

from collections.abc import Callable
from pathlib import Path

from ..errors import SondeError

UNWANTED = [
    *("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle", "*.h5", "*.msgpack", "*.ot", "*.gguf", "*.onnx"),
    *("*.py", "onnx/*", "openvino/*", "coreml/*", "checkpoint-*/*"),
]
"""Never fetched: pickles and code, which Sonde does not load, and the same weights for other programs."""


def fetch(repository: str, revision: str | None, notify: Callable[[str], object], option: str = "--model") -> Path:
    """Return the local folder of the hub's model `repository` ("org/name"), downloading it only if it is not cached.

    `option` is the one that the name came from, for messages.

    Raises:
        SondeError: There is no such model, or the hub cannot be reached.
    """
    return cached(repository, revision) or _download(repository, revision, notify, option)


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


def _download(repository: str, revision: str | None, notify: Callable[[str], object], option: str) -> Path:
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError
    from huggingface_hub.utils.tqdm import disable_progress_bars

    instead = f"give the folder of a local model instead ({option} ./folder)"
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
