"""The built wheel, in an environment of its own and outside the checkout: what a user gets from `pip install`."""

import json
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import numpy as np
import pytest
from installed import build_wheel, environment, run
from weights_script import FILES, WEIGHTS

from sonde.pipelines.pairs.bundled import BUNDLED

HEAVY = re.compile(
    r"Requires-Dist: (torch|transformers|sentence-transformers|onnx|pyarrow|streamlit|plotly|scipy|scikit-learn)\b"
    r"(?!.*extra)"
)
"""Requirements that only extras may have."""
LARGEST = 600_000_000
"""Bytes that the light installation may take, with the bytecode that pip writes and without pip."""


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(checkout, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; the libraries that it depends on are those of the running one."""
    program = environment(tmp_path_factory.mktemp("environment") / "venv")
    pip = (sys.executable, "-m", "pip", "--python", str(program), "install", "--quiet", "--no-deps", "--no-index")
    run(*pip, str(wheel))
    own = run(str(program), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    # A .pth line extends the path; the .pth files in there, this project's editable install among them, stay unread.
    (Path(own) / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return program


def test_the_wheel_holds_every_module_and_nothing_else(wheel, checkout):
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    roots = {"src/sonde": "sonde", "app": "sonde/app", "indexer": "sonde/indexer", "pipelines": "sonde/pipelines"}
    expected = {
        f"{package}/{file.relative_to(checkout / folder).as_posix()}"
        for folder, package in roots.items()
        for file in (checkout / folder).rglob("*.py")
    }
    models = {
        f"sonde/pipelines/pairs/bundled/{name}/{file}"
        for name in BUNDLED
        for file in ("README.md", "weights.safetensors")
    }
    pages = {
        "sonde/app/ui/style.css",
        "sonde/app/ui/icon.svg",
        "sonde/app/ui/host.js",
        "sonde/app/workbench/style.css",
        *(f"sonde/app/workbench/{path.name}" for path in (checkout / "app" / "workbench").glob("*.js")),
    }
    present = (checkout / "indexer/encoder/minilm/model.safetensors").is_file()  # `make weights` puts them there
    weights = {f"sonde/indexer/encoder/minilm/{file}" for file in FILES} if present else set()
    samples = {
        f"sonde/app/samples/{file.relative_to(checkout / 'app' / 'samples').as_posix()}"
        for file in (checkout / "app" / "samples").rglob("*")
        if file.suffix in (".csv", ".jsonl", ".txt", ".md", ".html")
    }
    assert held == expected | {"sonde/py.typed"} | models | pages | weights | samples


def test_the_wheel_is_small_enough_for_pypi(wheel):
    assert wheel.stat().st_size < 100_000_000
    sizes = {file.filename: file.file_size for file in zipfile.ZipFile(wheel).infolist()}
    large = {name for name, size in sizes.items() if name.endswith(".safetensors") and size > 12_000_000}
    assert large <= {f"sonde/indexer/encoder/minilm/{WEIGHTS}"}


def test_the_wheel_says_what_it_is(wheel):
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("METADATA"))
    (entry_points,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("entry_points.txt"))
    assert not [line for line in metadata.splitlines() if HEAVY.match(line)]
    for line in ("Name: sonde", "License-Expression: Apache-2.0", "Requires-Python: >=3.11", "License-File: LICENSE"):
        assert line in metadata.splitlines()
    assert "sonde = sonde.app.cli.main:main" in entry_points


def test_the_installed_wheel_is_what_runs(python, wheel, tmp_path):
    script = (
        "import sonde, sonde.app, sonde.indexer, sonde.pipelines, importlib.metadata;"
        "print(*(package.__file__ for package in (sonde, sonde.app, sonde.indexer, sonde.pipelines)), sep='\\n');"
        "print(importlib.metadata.version('sonde'))"
    )
    *files, version = run(str(python), "-I", "-c", script, cwd=tmp_path).splitlines()
    environment = python.parent.parent
    assert [Path(file).is_relative_to(environment) for file in files] == [True] * 4, files
    assert wheel.name.startswith(f"sonde-{version}-")


def test_the_installed_wheel_indexes_and_searches(python, tmp_path):
    (tmp_path / "docs.csv").write_text(
        "id,title,text,year\n"
        "a,Bread,Let the dough rest overnight and bake it in a hot oven.,2019\n"
        "b,Bicycle,A worn chain slips over the sprockets under load.,2021\n"
        "c,Garden,Water tomatoes at the root and not on the leaves.,2023\n"
    )
    # `sonde` as a script takes the folder of the script for its path, not the current one; -P says the same for -m.
    sonde = str(python.with_name("sonde"))
    run(sonde, "index", "docs.csv", "--to", "c.sonde", cwd=tmp_path)
    hits = run(sonde, "search", "c.sonde", "my bike makes noises", "--json", "-k", "2", cwd=tmp_path).splitlines()
    best = json.loads(hits[0])
    assert (best["rank"], best["id"], best["title"], best["metadata"]["year"]) == (1, "b", "Bicycle", 2021)
    script = (
        "import sonde; found = sonde.open('c.sonde').search('baking a loaf', k=1, where='year < 2020');"
        "print(found[0].id, len(found))"
    )
    assert run(str(python), "-I", "-c", script, cwd=tmp_path) == "a 1\n"


@pytest.fixture(scope="module")
def light(wheel: Path, checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a clean environment with what `pip install sonde` brings, from PyPI."""
    python = environment(tmp_path_factory.mktemp("light") / "venv")
    pip = (sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet")
    run(*pip, "-c", str(checkout / "constraints.txt"), str(wheel), limit=1_200)
    return python.parent


@pytest.mark.slow
def test_the_light_installation_fits_and_has_no_torch(light):
    code = (
        "import importlib.metadata as m; f = [f for d in m.distributions() for f in d.files or ()];"
        "print(sum(p.stat().st_size for f in f if (p := f.locate()).is_file()));"
        "print(*sorted(d.name.lower() for d in m.distributions()))"
    )
    size, names = run(str(light / "python"), "-I", "-c", code).splitlines()
    assert int(size) < LARGEST
    assert not {"torch", "transformers", "scikit-learn", "scipy", "onnx", "streamlit"} & set(names.split())
    assert "faiss-cpu" in names.split()


@pytest.mark.slow
def test_the_light_installation_does_what_it_promises(light, tmp_path):
    rows = [
        f"{n},{text} {n}" for n in range(9) for text in ("The soup needs salt", "The team won", "The train is late")
    ]
    (tmp_path / "notes.csv").write_text("id,text\n" + "\n".join(f"{n}-{row}" for n, row in enumerate(rows)) + "\n")
    sonde = str(light / "sonde")
    run(sonde, "index", "notes.csv", cwd=tmp_path)
    for rerank in ((), ("--rerank",)):
        found = run(sonde, "search", "notes.sonde", "garlic", "--json", "-k", "1", *rerank, cwd=tmp_path)
        assert json.loads(found.splitlines()[0])["text"].startswith("The soup")
    labels = ("label", "notes.sonde", "--labels", "sport,food,travel", "--replace")
    for engine in ("similarity", "nli", "reranker"):
        found = run(sonde, *labels, "--engine", engine, "--name", engine, cwd=tmp_path).splitlines()
        assert sum(int(line.split()[1]) for line in found) == 27
    found = run(sonde, "cluster", "notes.sonde", "-k", "3", "--json", cwd=tmp_path).splitlines()
    assert sum(json.loads(line).get("size", 0) for line in found) == 27
    run(sonde, "duplicates", "notes.sonde", cwd=tmp_path)
    run(sonde, "index", "notes.csv", "--to", "s.sonde", "--model", "static", cwd=tmp_path)
    refused = subprocess.run(
        [sonde, "ui", "notes.sonde"], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False
    )
    assert (refused.returncode, refused.stderr) == (
        1, "sonde: `sonde ui` needs streamlit, which is not installed: pip install 'sonde[ui]'\n",
    )  # fmt: skip


@pytest.mark.slow
def test_both_installations_give_the_same_vectors(light, tmp_path):
    (tmp_path / "notes.csv").write_text("id,text\n1,The soup needs salt\n2,The team won\n3,The train is late\n")
    other = [sys.executable, "-c", "from sonde.app.cli.main import main; main()"]
    read = "import numpy as np, glob; print(np.load(glob.glob('{}/vectors/*.npy')[0]).tolist())"
    for model in ("all-MiniLM-L6-v2", "static"):
        made = {}
        for name, command in {"light": [str(light / "sonde")], "full": other}.items():
            run(*command, "index", "notes.csv", "--to", f"{name}-{model}.sonde", "--model", model, cwd=tmp_path)
            found = run(str(light / "python"), "-I", "-c", read.format(f"{name}-{model}.sonde"), cwd=tmp_path)
            made[name] = np.array(json.loads(found), np.float64)
        lengths = np.linalg.norm(made["light"], axis=1) * np.linalg.norm(made["full"], axis=1)
        assert ((made["light"] * made["full"]).sum(axis=1) / lengths).min() >= 0.99999
        for command in ([str(light / "sonde")], other):
            for name in ("light", "full"):
                hit = run(*command, "search", f"{name}-{model}.sonde", "soup", "--json", "-k", "1", cwd=tmp_path)
                assert json.loads(hit.splitlines()[0])["id"] == "1"


@pytest.mark.slow
def test_twine_accepts_the_wheel(wheel, tmp_path):
    python = environment(tmp_path / "venv")
    run(sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "twine", limit=600)
    assert "PASSED" in run(str(python), "-m", "twine", "check", "--strict", str(wheel))
