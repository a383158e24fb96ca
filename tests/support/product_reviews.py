"""Reviews of three products, for tests of the web UI in a browser."""

import csv
import subprocess
import sys
from pathlib import Path
from shutil import copytree

from served_ui import Server, weightless

SUBJECTS = {
    "kettle": ("the water boils slowly", "the lid leaks", "the handle gets hot"),
    "phone": ("the battery died after a week", "the screen broke", "the camera is blurred"),
    "fan": ("the noise keeps me awake", "the blades wobble", "the motor smells burnt"),
}


def reviews(path: Path) -> Path:
    """600 reviews of three products; the fourth row and three more have no text."""
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "title", "review", "stars", "day", "product"])
        for number in range(600):
            product = tuple(SUBJECTS)[number % 3]
            text = f"{product}: {SUBJECTS[product][number // 3 % 3]}, after {number} days of {product}"
            row = [
                number,
                "",
                "" if number % 150 == 3 else text,
                number % 5 + 1,
                f"2024-{number % 12 + 1:02}-15",
                product,
            ]
            writer.writerow(row)
    return path


def index(server: Server, tmp_path: Path) -> None:
    """Put a collection of the reviews on the shelf: a copy of one that is indexed once, without the UI."""
    made = tmp_path.parent / "products.sonde"
    if not made.exists():
        script = "from sonde.app.cli.main import main; main()"
        command = [
            sys.executable,
            "-c",
            script,
            "index",
            str(reviews(made.with_name("products.csv"))),
            "--to",
            str(made),
        ]
        subprocess.run([*command, "--device", "cpu"], env=weightless(), check=True, capture_output=True)
    copytree(made, server.shelf / "reviews.sonde")
