"""What same_answers.py works on: smaller inputs, made of the data, and two steps that take the Python API."""

import csv
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BATCH = 256
"""Documents that are embedded together. Where nobody says how many, the clock decides, and other batches round anew.
So what `sonde index` reads here is no larger, or goes to the static model, which reads each text by itself."""
NOTES = ((".txt", "{title}\n\n{text}"), (".md", "# {title}\n\n{text}"), (".html", "<h1>{title}</h1><p>{text}</p>"))
"""Endings of files, and what stands in them."""
LABELS = """\
ABBR: what an abbreviation stands for
DESC: a description, a reason or a manner
ENTY: a thing, an animal or a product
HUM: a person or a group
LOC: a place
NUM: a number, a date or an amount
"""


def write_inputs(data: Path) -> None:
    """Write the smaller inputs into this folder, a link to the data, and a folder for what commands write."""
    from pyarrow import parquet

    Path("data").symlink_to(data)
    for name in ("out", "notes"):
        Path(name).mkdir()
    trec, bbc = rows("topics/trec6.jsonl.gz"), rows("topics/bbc.jsonl.gz")[::15]
    bbc = [row | {"text": row["text"][: 600 + 300 * (place % 5)]} for place, row in enumerate(bbc)]
    banking, questions = rows("topics/banking77_test.csv"), rows("qa/medquad.jsonl.gz")
    squad = [row | row["questions"][0] for row in rows("qa/squad_dev.jsonl.gz")[::10] if row["questions"]]
    for place, row in enumerate(bbc[:12]):
        ending, form = NOTES[place % len(NOTES)]
        Path(f"notes/{place:02}{ending}").write_text(form.format(**row), "utf-8")
    write("bbc.jsonl", bbc)
    write("trec.jsonl", trec[::10])
    write("stack.jsonl", rows("topics/stackoverflow.jsonl.gz")[::13])
    write("some.jsonl", rows("retrieval/cisi/queries.jsonl.gz")[::15])
    write("faq.jsonl", questions[::80])
    write("squad.jsonl", [{name: row[name] for name in ("id", "article", "passage")} for row in squad])
    write("pairs.jsonl", [{"query": row["question"], "passage": row["passage"]} for row in squad[::4]])
    write("banking.csv", banking[::13])
    write("fewer.csv", banking[::26] + banking[1::99])
    write("answered.csv", [{"question": row["question"], "id": row["id"]} for row in squad[::2]])
    write("corrections.csv", [{"id": row["id"], "label": row["coarse"]} for row in trec[::200]])
    write("examples.csv", [{"text": row["text"], "label": row["coarse"]} for row in trec[5::41]])
    write("unanswerable.csv", [{"question": row["question"]} for row in questions[40::160]])
    papers = parquet.read_table("data/titles/arxiv_cs.parquet")
    parquet.write_table(papers.take(list(range(0, len(papers), 300))), "arxiv.parquet")
    Path("labels.txt").write_text(LABELS, "utf-8")
    Path("sts.csv").write_text(first_lines("sts/stsb-en-dev.csv", 150), "utf-8")
    Path("tatoeba.tsv").write_text(first_lines("parallel/tatoeba-deu-eng.tsv", 301), "utf-8")
    pairs = [line.split("\t") for line in Path("tatoeba.tsv").read_text("utf-8").splitlines()[1:]]
    for name, column in (("german.txt", 0), ("english.txt", 1)):
        Path(name).write_text("".join(f"{pair[column]}\n" for pair in pairs), "utf-8")


def first_lines(path: str, count: int) -> str:
    """Return the beginning of a file of the data."""
    return "".join(Path("data", path).read_text("utf-8").splitlines(keepends=True)[:count])


def rows(path: str) -> list[dict[str, Any]]:
    """Return the rows of a file of the data; one without an id gets its number."""
    file = Path("data", path)
    with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as stream:
        found = csv.DictReader(stream) if file.suffix == ".csv" else (json.loads(line) for line in stream)
        return [{"id": f"n{number}"} | row if "_id" not in row else row for number, row in enumerate(found)]


def write(name: str, found: Sequence[dict[str, Any]]) -> None:
    """Write rows as CSV or as JSON lines."""
    with Path(name).open("w", encoding="utf-8", newline="") as stream:
        if name.endswith(".csv"):
            writer = csv.DictWriter(stream, list(found[0]))
            writer.writeheader()
            writer.writerows(found)
        else:
            stream.writelines(json.dumps(row) + "\n" for row in found)


def fill() -> None:
    """Make the larger collections, in batches of a fixed size, and in a precision that does not depend on a timing."""
    import sonde

    for source in ("data/retrieval/cisi/corpus.jsonl.gz", "stack.jsonl", "trec.jsonl"):
        name = "cisi" if "cisi" in source else source.removesuffix(".jsonl")
        made = sonde.index(source, to=f"{name}.sonde", batch=BATCH, dtype="float32")
        show(name, made.report.to_dict() if made.report else None)


def look() -> None:
    """Ask the Python API, and print what it answers."""
    import sonde

    bbc, cisi, stack, trec = (sonde.open(f"{name}.sonde") for name in ("bbc", "cisi", "stack", "trec"))
    queries = ["how libraries share books", "citation indexing", "the cost of retrieval"]
    show("len", [len(each) for each in (bbc, cisi, stack, trec)])
    show("search", cisi.search(queries[0], k=7, mode="dense", explain=True))
    show("filtered", bbc.search("money", k=7, where="label IN ('tech', 'business') AND length > 1000"))
    show("reranked", bbc.search("a film about a boxer", k=5, rerank=True, rerank_depth=10))
    show("search_many", list(cisi.search_many(queries, k=5, offset=2)))
    show("similar", bbc.similar("tech/007.txt", k=5))
    show("like", stack.like("How do I sort a list?", k=5, threshold=0.3))
    show("ask", bbc.ask("who won the cup", threshold=0.1).to_dict())
    show("duplicates", [group.to_dict() for group in stack.duplicates(kinds=("exact", "meaning"), meaning=0.9).groups])
    show("compare", stack.compare(clusters=(2, 3), run="kmeans").to_dict())
    show("unsure", [each.to_dict() for each in trec.unsure("labels", k=5)])
    show("judgements", [each.to_dict() for each in bbc.judgements().kept])
    show("runs", [run.to_dict() for run in bbc.runs()])
    show("run", bbc.run("kmeans").to_dict())
    show("topic", stack.topic_run().of(["How do I sort a list?"])[0].to_dict())
    show("map", stack.map_run().places.ravel())
    show("vectors", [row["vector"] for row in cisi.rows(vectors=True)])
    show("frame", bbc.to_pandas().to_csv())
    show("encoder", sonde.load_encoder().encode_texts(queries, query=True))
    show("classify", [each.to_dict() for each in sonde.classify(queries, ["library", "money"], engine="similarity")])
    show("entail", sonde.entail("A man plays a guitar.", "Nobody makes music.", model="bundled").to_dict())
    show("similarity", sonde.similarity("He bought a car from her.", "She sold him a car.").to_dict())
    show("bitext", [each.to_dict() for each in sonde.mine_bitext(queries, ["Zitate", "Bücher", "Kosten"], k=2)])


def show(name: str, value: Any) -> None:
    """Print a JSON line."""
    print(json.dumps({name: value}, default=plain, ensure_ascii=False))


def plain(value: Any) -> Any:
    """Return the hits of a search with how it went, an array as lists, anything else as text."""
    if hasattr(value, "strategy"):
        return [value.strategy, value.notes, *(hit.to_dict() for hit in value)]
    return value.tolist() if hasattr(value, "tolist") else str(value)
