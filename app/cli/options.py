"""Arguments and options that several commands share, each with one wording."""

from pathlib import Path
from typing import Annotated

import typer

CollectionPath = Annotated[Path, typer.Argument(metavar="C.sonde", help="The collection.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda …")]
Json = Annotated[bool, typer.Option("--json", help="JSON lines on stdout.")]
Seed = Annotated[int, typer.Option("--seed", help="Of all that chance decides.")]
LabelsFile = Annotated[
    Path | None, typer.Option("--labels-file", metavar="F", help="A file with a label on each line.")
]
NamingEngine = Annotated[
    str, typer.Option("--engine", help="What chooses among the labels: similarity, or nli, which reads five texts.")
]
