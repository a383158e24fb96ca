"""How often the excerpt of a hit holds the answer, beside the beginning of its passage and the whole of it.

    python benchmarks/excerpts.py [--folder collections/] [--questions 400]

SQuAD's development set says which words of a passage answer a question. Each question is searched; counted are the
questions whose passage is among the first ten hits and is longer than an excerpt.
"""

import argparse
import random
import tempfile
from pathlib import Path

from _judged_sets import DATA, _lines, collection_of
from _side_by_side import machine

from sonde.pipelines.search.excerpts import LENGTH


def main() -> None:
    """Print the shares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--questions", type=int, default=400)
    given = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as temporary:
        collection = collection_of("squad", given.folder or Path(temporary))
        asked = [(str(n), q) for n, row in enumerate(_lines(DATA / "qa/squad_dev.jsonl.gz")) for q in row["questions"]]
        asked = random.Random(0).sample(asked, given.questions)
        for explain in (False, True):
            counts = dict.fromkeys(("questions", "beginning", "excerpt", "passage"), 0)
            found = collection.search_many([q["question"] for _, q in asked], k=10, explain=explain)
            for (id, question), results in zip(asked, found, strict=True):
                for hit in results:
                    if hit.id == id and len(hit.passage.text) > LENGTH:
                        shown = (hit.passage.text[:LENGTH], hit.excerpt.text, hit.passage.text)
                        holds = [any(answer in text for answer in question["answers"]) for text in shown]
                        for name, value in zip(counts, (1, *holds), strict=True):
                            counts[name] += value
            total = counts.pop("questions")
            shares = ", ".join(f"{name} {count / total:.3f}" for name, count in counts.items())
            print(f"{'with' if explain else 'without'} --explain, {total} questions: {shares}")


if __name__ == "__main__":
    main()
