"""The development data as (text, right labels, wrong labels): one generator for each permissively licensed set."""

import csv
import gzip
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as parquet
import topics


@dataclass(frozen=True)
class Example:
    """A text with wordings of labels that hold, that do not hold, and the templates that suit them."""

    text: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    templates: tuple[str, ...] = topics.TEMPLATES


def lines(path: Path) -> list[dict]:
    """Return the objects of a gzipped JSONL file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def words(text: str, least: int, most: int, chance: random.Random) -> str:
    """Cut a text to a random number of words, at its start or, now and then, from its middle."""
    parts, size = text.split(), chance.randint(least, most)
    start = chance.randint(0, max(0, len(parts) - size)) if chance.random() < 0.3 else 0
    return " ".join(parts[start : start + size])


def flat(groups: Iterator[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the distinct words of several label groups, in order."""
    return tuple(dict.fromkeys(label for group in groups for label in group))


def broad() -> tuple[str, ...]:
    """Return the labels of general topics: trivia categories and encyclopedic articles."""
    return flat(iter((*topics.TRIVIA.values(), *topics.ARTICLES.values())))


def trivia(data: Path, chance: random.Random) -> Iterator[Example]:
    """Questions, often with their answer; categories that overlap are no wrong labels of each other."""
    for row in lines(data / "topics/opentrivia.jsonl.gz"):
        if (name := row["category"]) not in topics.TRIVIA:
            continue
        answer = row["answer"] if row["answer"] not in ("True", "False", "Yes", "No") else ""
        text = f"{row['question']} {answer}".strip() if chance.random() < 0.7 else row["question"]
        near = set().union(*(group for group in topics.TRIVIA_OVERLAP if name in group), {name})
        wrong = flat(group for other, group in topics.TRIVIA.items() if other not in near)
        right = topics.TRIVIA[name]
        yield Example(text, right, tuple(label for label in wrong if label not in right))


def arxiv(data: Path, chance: random.Random) -> Iterator[Example]:
    """Titles, abstracts or both, with the categories spelled out; 700 papers of each category at most."""
    counts: dict[str, int] = {}
    rows = parquet.read_table(data / "titles/arxiv_cs.parquet").to_pylist()
    chance.shuffle(rows)
    generic = {"cs.AI", "cs.LG", "stat.ML"}
    everyday = tuple(
        label for label in broad() if not re.search("scien|comput|tech|network|math|algor|theor|engin", label)
    )
    for row in rows:
        names = [name for name in row["categories"] if name in topics.ARXIV and name not in generic]
        names = [name for name in names if counts.get(name, 0) < 700]
        if not names:
            continue
        name = min(names, key=lambda one: counts.get(one, 0))
        counts[name] = counts.get(name, 0) + 1
        right = topics.ARXIV[name]
        areas = {one.split(".")[0] for one in row["categories"]}
        others = flat(
            g
            for one, g in topics.ARXIV.items()
            if one not in row["categories"] and one.split(".")[0] not in areas - {"cs"}
        )
        broad_right = ("science", "computer science", "research") if chance.random() < 0.15 else ()
        shape = chance.random()
        text = row["title"] if shape < 0.45 else words(row["abstract"], 15, 60 if shape < 0.85 else 150, chance)
        wrong = others if chance.random() < 0.6 else everyday
        yield Example(
            text, broad_right or right, everyday if broad_right else tuple(x for x in wrong if x not in right)
        )


def squad(data: Path, chance: random.Random) -> Iterator[Example]:
    """Passages of 48 encyclopedic articles and their questions, with topics given by hand."""
    for row in lines(data / "qa/squad_dev.jsonl.gz"):
        right = topics.ARTICLES[row["article"]]
        sharing = [group for group in topics.ARTICLES.values() if not set(group) & set(right)]
        wrong = tuple(label for label in flat(iter(sharing)) if label not in right)
        for _ in range(2):
            yield Example(words(row["passage"], 15, chance.choice((40, 60, 150)), chance), right, wrong)


def medquad(data: Path, chance: random.Random) -> Iterator[Example]:
    """Answers with what they are about: medicine, the kind of question, the disease."""
    rows = lines(data / "qa/medquad.jsonl.gz")
    focus = [
        re.sub(r"^.* (?:of|is|for|with|to|by|about|from|prevent|have|are|\(are\)) |\?", "", r["question"]).strip()
        for r in rows
    ]
    everyday = tuple(
        label
        for label in broad()
        if not re.search("medic|health|disease|biolog|drug|pharm|immune|scien|plague|life", label)
    )
    for row, name in zip(rows, focus, strict=True):
        text = words(row["answer"], 12, chance.choice((40, 60, 120)), chance)
        kind = chance.random()
        if kind < 0.4:
            yield Example(text, topics.MEDICAL, everyday)
        elif kind < 0.7 and row["qtype"] in topics.QTYPES:
            right = topics.QTYPES[row["qtype"]]
            yield Example(text, right, flat(g for one, g in topics.QTYPES.items() if one != row["qtype"]))
        elif name and len(name) < 60 and name.lower() in text.lower():
            yield Example(
                text,
                (name,),
                tuple(other for other in chance.sample(focus, 10) if other and other not in name and name not in other),
            )


def banking(data: Path, chance: random.Random) -> Iterator[Example]:
    """Customers' questions with their intent, now and then with the broad topic."""
    with (data / "topics/banking77_train.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = {row["category"]: row["category"].replace("_", " ").strip("?").lower() for row in rows}
    everyday = tuple(x for x in broad() if not re.search("business|econom|compan|wealth|techn|travel|countries", x))
    for row in rows:
        if chance.random() < 0.12:
            yield Example(
                row["text"], ("banking", "money", "customer service", "bank cards and payments", "finance"), everyday
            )
        else:
            name = names[row["category"]]
            yield Example(row["text"], (name,), tuple(x for x in names.values() if x != name), topics.INTENT_TEMPLATES)


def feelings(data: Path, chance: random.Random) -> Iterator[Example]:
    """Comments of one emotion: the emotion itself, or whether it is good or bad."""
    for row in lines(data / "topics/goemotions.jsonl.gz"):
        if row["split"] != "train" or len(row["labels"]) != 1 or row["labels"][0] not in topics.FEELINGS:
            continue
        name = row["labels"][0]
        sides = [side for side in (topics.GOOD, topics.BAD) if name in side]
        if sides and chance.random() < 0.35:
            right, wrong = (
                (topics.POSITIVE, topics.NEGATIVE) if name in topics.GOOD else (topics.NEGATIVE, topics.POSITIVE)
            )
            yield Example(row["text"], right, wrong, topics.EMOTION_TEMPLATES)
        else:
            far = [
                one
                for one in topics.FEELINGS
                if one != name and (not sides or one not in sides[0] or chance.random() < 0.3)
            ]
            yield Example(
                row["text"], topics.FEELINGS[name], flat(topics.FEELINGS[one] for one in far), topics.EMOTION_TEMPLATES
            )


def genres(data: Path, chance: random.Random) -> Iterator[Example]:
    """Premises of MultiNLI with their genre."""
    for row in lines(data / "nli/taxinli.jsonl.gz"):
        if row["genre"] in topics.GENRES and len(row["premise"].split()) > 8:
            wrong = flat(group for name, group in topics.GENRES.items() if name != row["genre"])
            yield Example(row["premise"], topics.GENRES[row["genre"]], wrong)


def everyday(data: Path, chance: random.Random) -> Iterator[Example]:
    """Texts of every kind with the everyday topic that stands out for the bi-encoder: a teacher that sees no pairs."""
    import sonde

    pool = [row["question"] for row in lines(data / "topics/opentrivia.jsonl.gz")]
    pool = chance.sample(pool, 2500) + [
        row["premise"]
        for name in ("snli_dev", "taxinli")
        for row in chance.sample(lines(data / f"nli/{name}.jsonl.gz"), 1200)
    ]
    pool += [words(row["passage"], 30, 120, chance) for row in lines(data / "qa/squad_dev.jsonl.gz")]
    pool += [words(row["answer"], 20, 80, chance) for row in chance.sample(lines(data / "qa/medquad.jsonl.gz"), 600)]
    pool += [
        row["abstract"][:500]
        for row in chance.sample(parquet.read_table(data / "titles/arxiv_cs.parquet").to_pylist(), 800)
    ]
    encoder, labels = sonde.load_encoder(), topics.EVERYDAY
    scores = encoder.encode_texts(pool) @ encoder.encode_texts([f"This text is about {label}." for label in labels]).T
    scores = (scores - scores.mean(0)) / scores.std(0)
    for text, row in zip(pool, scores, strict=True):
        order = row.argsort()[::-1]
        if row[order[0]] > 3 and len(text.split()) > 5:
            right = tuple(labels[place] for place in order[:2] if row[place] > 3)
            yield Example(text, right, tuple(labels[place] for place in order if row[place] < 1))


def titles(data: Path, chance: random.Random) -> Iterator[Example]:
    """Abstracts with their own title as the label, against the titles of papers of the same category."""
    rows = parquet.read_table(data / "titles/arxiv_cs.parquet").to_pylist()
    for row in chance.sample(rows, 3000):
        text = words(row["abstract"], 20, 60, chance)
        others = tuple(other["title"] for other in chance.sample(rows, 10) if other["title"] != row["title"])
        yield Example(text, (row["title"],), others, ("{}", "This text is about: {}.", "The title is {}."))
