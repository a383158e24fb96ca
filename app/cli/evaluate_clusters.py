"""`sonde evaluate clusters`."""

from typing import Annotated

import typer

from .options import CollectionPath, Json
from .output import print_json


def evaluate_clusters(
    collection: CollectionPath,
    run: Annotated[str, typer.Option("--run", metavar="NAME", help="A cluster or topic run.")],
    truth: Annotated[
        str | None, typer.Option("--truth", metavar="COLUMN", help="Metadata column with each document's class.")
    ] = None,
    json: Json = False,
) -> None:
    """Judge a clustering: NMI, ARI, V-measure and purity against a column; silhouette, stability and coherence without.

    Outliers count as one cluster of their own.

    \b
    Examples:
      sonde evaluate clusters themes.sonde --run kmeans --truth stars
      sonde evaluate clusters themes.sonde --run kmeans --json
    """
    from ...pipelines.evaluate.clusters import evaluate_clusters as judge
    from ..api import open as open_collection

    found = judge(open_collection(collection), run, truth)
    if json:
        print_json(found.to_dict())
        return
    for name, value in found.to_dict().items():
        if value is not None:
            print(f"{name.replace('_', ' '):<14} {value if isinstance(value, str) else format(value, ',.4g')}")
