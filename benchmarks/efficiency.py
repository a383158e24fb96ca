"""Forms of the default model: what each costs, and what it loses on STS-B and CISI, as `sonde evaluate models` says.

    python benchmarks/efficiency.py [--to docs/efficiency.md]

With --to, the table in that page is replaced. Take it on a quiet machine: disturbed times are marked with a star.
"""

import argparse
import sys
from pathlib import Path

from _side_by_side import DATA

from sonde.pipelines.evaluate.models import evaluate_models, markdown, read_retrieval
from sonde.pipelines.similarity.pair_file import read_pair_file

BEGIN, END = "<!-- table: benchmarks/efficiency.py -->\n", "<!-- end of the table -->\n"


def main() -> None:
    """Measure, and print the table or put it into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--pairs", type=Path, default=DATA / "sts" / "stsb-en-dev.csv")
    parser.add_argument("--retrieval", type=Path, default=DATA / "retrieval" / "cisi")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--to", type=Path)
    arguments = parser.parse_args()
    pairs, retrieval = read_pair_file(arguments.pairs, scored=True), read_retrieval(arguments.retrieval)
    rows = evaluate_models(
        pairs, retrieval, model=arguments.model, device=arguments.device, repeats=arguments.repeats,
        notify=lambda event: print(event, file=sys.stderr),
    )  # fmt: skip
    table = markdown(rows, arguments.model, pairs.name, retrieval.name, len(retrieval.texts))
    if arguments.to is None:
        print(table)
        return
    page = arguments.to.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    arguments.to.write_text(before + BEGIN + "\n" + table + "\n" + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    main()
