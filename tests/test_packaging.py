"""The built wheel, in an environment of its own and outside the checkout: what a user gets from `pip install`."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from sonde.app.ui.views.map.chart.mount import SCRIPTS
from sonde.pipelines.pairs.bundled import BUNDLED


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the tree, so that no leftover of an earlier build gets in."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        if (checkout / name).exists():
            shutil.copy(checkout / name, source)
    for name in ("src", "app", "indexer", "pipelines"):
        shutil.copytree(checkout / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    out = tmp_path_factory.mktemp("dist")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation")
    run(*pip, "--wheel-dir", str(out), str(source))
    (built,) = out.glob("sonde-*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; the libraries that it depends on are those of the running one."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    program = folder / "bin" / "python"
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(program),
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        str(wheel),
    )
    own = run(str(program), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    # A .pth line extends the path; the .pth files in there, this project's editable install among them, stay unread.
    (Path(own) / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return program


def run(*command: str, cwd: Path | None = None) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=300, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


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
    chart = {"chart.html", "chart.css", *SCRIPTS}
    pages = {
        "sonde/app/ui/style.css",
        "sonde/app/ui/icon.svg",
        *(f"sonde/app/ui/views/map/chart/{name}" for name in chart),
    }
    samples = {
        f"sonde/app/samples/{file.relative_to(checkout / 'app' / 'samples').as_posix()}"
        for file in (checkout / "app" / "samples").rglob("*")
        if file.suffix in (".csv", ".txt", ".md", ".html")
    }
    assert held == expected | {"sonde/py.typed"} | models | pages | samples


def test_no_model_in_the_wheel_is_larger_than_12_mb(wheel):
    sizes = {file.filename: file.file_size for file in zipfile.ZipFile(wheel).infolist()}
    assert {name: size for name, size in sizes.items() if name.endswith(".safetensors") and size > 12_000_000} == {}


def test_the_wheel_says_what_it_is(wheel):
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("METADATA"))
    (entry_points,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("entry_points.txt"))
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
