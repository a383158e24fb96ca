"""Duplicates: exact, near and by meaning against the naive search; representatives; exports without them."""

import json
import random
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cluster_corpus import made
from command_line import Command, contents
from themes import collection, rows

from sonde.app.api import Collection
from sonde.indexer.errors import UsageError
from sonde.indexer.store.view import document_vectors, normalized
from sonde.pipelines.duplicates import Duplicates, DuplicateSettings, find_duplicates
from sonde.pipelines.duplicates.pairs import Sketches, _bands, near_pairs, normalised_text, shingle_jaccard, shingles

LONG = "the parcel came late and the courier left it with a neighbour who was away for a week"
TEXTS = {
    "a": LONG, "b": f"  {LONG.upper()}!", "c": f"{LONG} indeed", "d": "battery", "e": "Battery.",
    "f": "screen glass", "g": "glass screen",
}  # fmt: skip
DAYS = {"a": "2024-03-01", "b": "2024-01-01", "c": "2024-02-01", "d": "2024-01-01", "e": "2024-05-01"}


@pytest.fixture
def mail(tmp_path: Path) -> Collection:
    return made([{"id": id, "text": text, "day": DAYS.get(id)} for id, text in TEXTS.items()], tmp_path / "mail.sonde")


def found(opened: Collection, **settings: Any) -> dict[str, list[tuple[str, str, float]]]:
    groups = find_duplicates(opened.stored, DuplicateSettings(**settings)).groups
    return {g.representative: [(d.id, d.kind, round(d.similarity, 3)) for d in g.duplicates] for g in groups}


def test_the_strictest_kind_and_the_similarity_to_the_representative(mail: Collection) -> None:
    near = round(shingle_jaccard(shingles(normalised_text(LONG)), shingles(normalised_text(TEXTS["c"]))), 3)
    assert near == round(16 / 17, 3)
    assert found(mail) == {
        "a": [("b", "exact", 1.0), ("c", "near", near)],
        "d": [("e", "exact", 1.0)],
        "f": [("g", "meaning", 1.0)],
    }
    assert found(mail, kinds=("exact",)) == {"a": [("b", "exact", 1.0)], "d": [("e", "exact", 1.0)]}
    assert found(mail, kinds=("near",))["a"] == [("b", "near", 1.0), ("c", "near", near)]
    assert found(mail, near=0.95, kinds=("exact", "near")).get("a") == [("b", "exact", 1.0)]


def test_the_same_value_in_a_column_is_enough(tmp_path: Path) -> None:
    """One paper from two databases, whose abstracts differ, is one paper."""
    dois = {
        "a": "10.1000/X1",
        "b": None,
        "d": "https://doi.org/10.1000/x1",
        "f": "10.1000/x2",
        "g": "",
        "e": "10.1000/x1 ",
    }
    papers = made([{"id": id, "text": text, "doi": dois.get(id)} for id, text in TEXTS.items()], tmp_path / "p.sonde")
    same = {"a": [("b", "exact", 1.0), ("d", "value", 1.0), ("e", "value", 1.0)]}
    assert found(papers, kinds=("exact",), same="doi") == same
    near = found(papers, same="doi")
    assert near["a"][1:] == [("c", "near", round(16 / 17, 3)), *same["a"][1:]]
    assert near["f"] == [("g", "meaning", 1.0)]
    longest = found(papers, kinds=("exact",), same="doi", keep="longest")
    assert longest == {"b": [("a", "exact", 1.0), ("d", "value", 1.0), ("e", "value", 1.0)]}  # "a" has their DOI
    with pytest.raises(UsageError, match="there is no metadata column 'dio': there is only doi"):
        found(papers, same="dio")


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"keep": "first"}, {"a", "d", "f"}),
        ({"keep": "longest"}, {"c", "e", "f"}),
        ({"keep": "newest"}, {"c", "e", "g"}),
        ({"keep": "newest", "date": "day"}, {"a", "e", "g"}),
    ],
)
def test_what_represents_a_group(mail: Collection, settings: dict[str, Any], kept: set[str]) -> None:
    result = find_duplicates(mail.stored, DuplicateSettings(**settings))
    assert {group.representative for group in result.groups} == kept == set(TEXTS) - result.redundant
    assert (result.documents, result.share) == (7, 4 / 7)


def test_near_pairs_are_those_of_exact_jaccard() -> None:
    chance = random.Random(1)
    texts = [" ".join(chance.choices("abcdefgh", k=12)) for _ in range(20)]
    texts += [f"{text} {chance.choice('xyz')}" for text in texts]
    sets = [shingles(normalised_text(text)) for text in texts]
    expected = {
        (i, j): like for i, j in combinations(range(40), 2) if (like := shingle_jaccard(sets[i], sets[j])) >= 0.7
    }
    assert len(expected) >= 20
    assert {(i, j): like for i, j, like in near_pairs(texts, 0.7, lambda _: None)} == expected


def naive(opened: Collection) -> tuple[list[str], np.ndarray]:
    with opened.stored.view() as view:
        keys = dict(view.catalog.connection.execute("SELECT doc, key FROM documents ORDER BY doc"))
        vectors = normalized(document_vectors(view, list(keys)))
    return list(keys.values()), vectors @ vectors.T


def test_by_meaning_is_the_naive_search_of_all_pairs(tmp_path: Path) -> None:
    opened = collection(tmp_path / "t.sonde", rows())
    ids, cosines = naive(opened)
    result: Duplicates = find_duplicates(opened.stored, DuplicateSettings(("meaning",), meaning=0.97, pairs=5))
    taken: set[int] = set()
    expected = {}
    for place in range(len(ids)):
        others = [p for p in np.flatnonzero(cosines[place] >= 0.97).tolist() if p not in taken and p != place]
        if place not in taken and others:
            expected[ids[place]] = {ids[other] for other in others}
            taken |= {place, *others}
    assert {group.representative: {d.id for d in group.duplicates} for group in result.groups} == expected
    assert len(expected) > 3 and [len(g.duplicates) for g in result.groups] == sorted(map(len, expected.values()))[::-1]
    assert all(d.similarity >= 0.97 for group in result.groups for d in group.duplicates)
    first = sorted({normalised_text(row["text"]): place for place, row in reversed(list(enumerate(rows())))}.values())
    best = sorted((-float(cosines[pair]), pair) for pair in combinations(first, 2))[:5]
    assert [alike for *_, alike in result.pairs] == pytest.approx([-cosine for cosine, _ in best], abs=1e-6)
    assert all(alike == pytest.approx(cosines[ids.index(a), ids.index(b)]) for a, b, alike in result.pairs)


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_the_export_holds_exactly_what_stays(mail: Collection, sonde: Command, tmp_path: Path, suffix: str) -> None:
    before, target = contents(mail.path), tmp_path / f"unique.{suffix}"
    ran = sonde("duplicates", mail.path, "--keep", "longest", "--to", target)
    assert (
        ran.code == 0 and "3 groups, 4 of 7 documents can be removed (57.1%)" in ran.err and ": 3 documents" in ran.err
    )
    read = {"jsonl": lambda: pd.read_json(target, lines=True), "csv": lambda: pd.read_csv(target)}
    kept = read.get(suffix, lambda: pd.read_parquet(target))()
    assert kept["id"].tolist() == ["c", "e", "f"] and contents(mail.path) == before
    assert kept["text"].tolist() == [TEXTS[id] for id in ("c", "e", "f")]
    shown = [json.loads(line) for line in sonde("duplicates", mail.path, "--json", "--by", "exact").out.splitlines()]
    assert shown[1] == {
        "representative": "d", "size": 2, "duplicates": [{"id": "e", "kind": "exact", "similarity": 1.0}]
    }  # fmt: skip


def test_what_is_shown_tells_what_the_documents_say(mail: Collection, sonde: Command) -> None:
    shown = sonde("duplicates", mail.path, "--pairs", 1).out.splitlines()
    long = "the parcel came late and the courier left it with a neighbour who was away for a week"
    assert shown[:6] == [
        "size  document that is kept, and below it its duplicates: kind, similarity, document",
        f"   3  a · {long}",
        f"      exact   1.00  b · {long.upper()}!",
        f"      near    0.94  c · {long} …",
        "   2  d · battery",
        "      exact   1.00  e · Battery.",
    ]
    assert shown[8:] == ["closest pairs:", "1.0000  f · screen glass", "        g · glass screen"]


def test_where_no_export_can_go(mail: Collection, sonde: Command, tmp_path: Path) -> None:
    sonde("duplicates", mail.path, "--to", tmp_path / "x.txt").refused(
        "'x.txt'", ".xlsx, .csv, .parquet, .jsonl or .ris", code=2
    )
    sonde("duplicates", mail.path, "--to", tmp_path / "no" / "x.csv").refused("does not exist")


def test_one_group_is_no_groups(tmp_path: Path, sonde: Command) -> None:
    opened = made([{"id": "1", "text": "twice"}, {"id": "2", "text": "Twice!"}], tmp_path / "c.sonde")
    assert "1 group, 1 of 2 documents can be removed (50.0%)" in sonde("duplicates", opened.path).err


def test_few_documents(tmp_path: Path) -> None:
    one = made([{"id": "1", "text": "alone"}], tmp_path / "one.sonde")
    assert find_duplicates(one.stored, DuplicateSettings(pairs=3)).groups == ()
    one.delete(["1"])
    empty = find_duplicates(one.stored, DuplicateSettings(pairs=3))
    assert (empty.groups, empty.pairs, empty.documents, empty.share) == ((), (), 0, 0.0)
    with pytest.raises(UsageError, match="'x' is not a date column: there are none"):
        find_duplicates(one.stored, DuplicateSettings(keep="newest", date="x"))


def test_the_turkish_capital_i_is_an_i() -> None:
    assert normalised_text("SİPARİŞ İstanbul") == normalised_text("sipariş, istanbul")


@pytest.mark.parametrize(
    ("least", "shape"),
    [(0.05, (75, 1)), (0.3, (32, 2)), (0.5, (32, 4)), (0.7, (20, 6)), (0.8, (14, 9)), (0.9, (8, 16))],
)
def test_bands_are_those_that_datasketch_chooses(least: float, shape: tuple[int, int]) -> None:
    assert _bands(least) == shape


def test_a_sketch_is_that_of_datasketch() -> None:
    sketches = Sketches(0.7)
    sketches.add(["one two three", "two three four"])
    [first] = sketches._buckets[0]
    assert np.frombuffer(first, np.uint32).tolist() == [
        1596985859,
        54428199,
        2112996390,
        1558922060,
        266488563,
        2676972712,
    ]


def test_most_sets_that_share_four_fifths_are_found_and_hardly_any_others() -> None:
    rng, sketches = np.random.default_rng(0), Sketches(0.7)
    sets = [[f"{number} {word}" for word in range(40)] for number in range(300)]
    assert [found for each in sets if (found := sketches.add(each))] == []
    near = [[*rng.permutation(each)[:36].tolist(), f"{number} other"] for number, each in enumerate(sets)]
    found = [sketches.add(each) for each in near]
    assert sum(number in one for number, one in enumerate(found)) >= 298
    assert sum(len(one) for one in found) <= 302


def test_the_same_set_in_another_order_is_found() -> None:
    sketches = Sketches(0.9)
    assert [sketches.add(each) for each in (["a", "b", "c"], ["x"], ["c", "a", "b"], ["x"])] == [[], [], [0], [1]]
