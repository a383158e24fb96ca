"""The three walks of ARCHITECTURE.md, compared with the files that real commands enter."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from default_model import default_model

ROWS = "id,text,stars\n1,The battery died.,1\n2,It lasts for days.,5\n3,The screen broke.,2\n"

pytestmark = pytest.mark.skipif(not default_model(), reason="needs the default model's package")


def drawn(checkout: Path) -> dict[str, list[str]]:
    """The files of each walk, by its name, in the order in which ARCHITECTURE.md names them."""
    text = (checkout / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.partition("## Three walks")[2].partition("\n## ")[0]
    parts = re.split(r"^\*\*(\w+):\*\*", section, flags=re.MULTILINE)
    return {
        name: re.findall(r"`((?:app|pipelines|indexer)/\S+?\.py)`", steps)
        for name, steps in zip(parts[1::2], parts[2::2], strict=True)
    }


@pytest.fixture(scope="module")
def entered(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The files that each command entered, in the order of the first call."""
    folder = tmp_path_factory.mktemp("walks")
    (folder / "reviews.csv").write_text(ROWS)
    search = ["search", "reviews.sonde", "battery"]
    commands = {
        "Text": ["index", "reviews.csv", "--to", "reviews.sonde"],
        "Query": search,
        "Filter": [*search, "--where", "stars <= 2"],
    }
    script = checkout / "tests" / "support" / "walked.py"
    words = [sys.executable, str(script), json.dumps(list(commands.values()))]
    run = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=dict(os.environ), check=False)
    assert run.returncode == 0, run.stderr
    return dict(zip(commands, json.loads(run.stderr.splitlines()[-1]), strict=True))


@pytest.mark.parametrize("name", ["Query", "Filter", "Text"])
def test_a_walk_names_the_files_in_the_order_in_which_they_are_entered(checkout, entered, name):
    walk = drawn(checkout)[name]
    assert len(walk) == len(set(walk)) >= 8
    assert walk == [file for file in entered[name] if file in walk]
