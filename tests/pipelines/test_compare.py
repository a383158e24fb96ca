"""What tells clusters, filters and queries apart, and how far two runs agree."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Command, contents
from scipy.stats import hypergeom
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from themes import THEMES, collection, rows

from sonde.app.api import Collection
from sonde.indexer.errors import UsageError
from sonde.indexer.store.kinds import CLUSTER
from sonde.indexer.store.run_writing import NewRun, Snapshot, write_run
from sonde.indexer.store.runs import Item
from sonde.pipelines.analysis.statistics import beyond_chance, term_log_odds
from sonde.pipelines.analysis.terms import Counts, best_terms, count_terms, distinctive, weights
from sonde.pipelines.compare import Contrast, RunComparison

WORDS = {theme: set(f"{theme} {words}".split()) for theme, words in THEMES.items()}
NAMES = list(THEMES)


@pytest.fixture
def themed(tmp_path: Path) -> Collection:
    """Two runs: `four` has the themes, 0 to 3; `other` splits theme 0, joins 2 and 3 and leaves ten documents out."""
    opened = collection(tmp_path / "t.sonde", rows())
    with opened.stored.view() as view:
        snapshot = Snapshot.of(view)
        keys = dict(view.catalog.connection.execute("SELECT doc, key FROM documents"))
    ids = [keys[doc] for doc in snapshot.docs.tolist()]
    four = np.array([NAMES.index(id.split("-")[0]) for id in ids])
    odd = np.array([int(id.split("-")[1]) % 2 for id in ids])
    other = np.where(four == 0, odd * 4, np.minimum(four, 2))
    for name, labels, docs in (("four", four, snapshot.docs), ("other", other[10:], snapshot.docs[10:])):
        items = [Item(int(n), f"{name} {n}", {}) for n in np.unique(labels)]
        assigned = (docs, labels, np.ones(len(docs)))
        write_run(opened.stored, NewRun(CLUSTER, name, {}, (), {}, 0.0, items, assigned), snapshot)
    return opened


def test_two_runs_as_scikit_learn_measures_them(themed: Collection) -> None:
    found = themed.compare(runs=["four", "other"])
    assert isinstance(found, RunComparison) and found.documents == 110
    labels = [(NAMES.index(theme), n % 2) for n in range(30) for theme in NAMES][10:]
    four = [theme for theme, _ in labels]
    other = [odd * 4 if theme == 0 else min(theme, 2) for theme, odd in labels]
    assert found.nmi == pytest.approx(normalized_mutual_info_score(four, other))
    assert found.ari == pytest.approx(adjusted_rand_score(four, other))
    ((split,), (merged,)) = found.split, found.merged
    ones = [odd for theme, odd in labels if theme == 0]
    shares = {0: ones.count(0) / len(ones), 4: ones.count(1) / len(ones)}
    assert (split.number, split.name, split.size) == (0, "four 0", len(ones))
    assert {number: share for number, _, share in split.parts} == pytest.approx(shares)
    assert (merged.number, {n for n, _, _ in merged.parts}) == (2, {2, 3})
    same = themed.compare(runs=["four", "four"])
    assert isinstance(same, RunComparison) and (same.nmi, same.ari, same.split, same.merged) == (1.0, 1.0, (), ())


@pytest.mark.parametrize("by", ["clusters", "filters", "queries"])
def test_two_parts_are_told_apart_by_their_own_words_and_documents(themed: Collection, by: str) -> None:
    if by == "clusters":
        found = themed.compare(clusters=[0, 2], run="four")
    elif by == "filters":
        found = themed.compare(where=["theme = 'parcel'", "theme = 'screen'"])
    else:
        found = themed.compare(queries=["parcel", "screen"], k=10)
    assert isinstance(found, Contrast) and found.common == 0 and -1 <= found.similarity < 0.7
    for side, theme in zip(found.sides, ("parcel", "screen"), strict=True):
        assert side.documents == (10 if by == "queries" else 30)
        assert {word for term, _ in side.terms for word in term.split()} <= WORDS[theme]
        assert len(side.terms) == 15 and side.terms[0][0] == theme and side.terms[0][1] > 2
        assert side.beyond_chance[0] == theme
        assert len(side.examples) == 5 and all(id.startswith(theme) for id in side.examples)


def test_common_documents_count_for_neither_side(themed: Collection) -> None:
    found = themed.compare(where=["stars <= 2", "stars >= 2"])
    assert isinstance(found, Contrast) and found.common == 24
    assert [side.documents for side in found.sides] == [72, 72]
    with pytest.raises(UsageError, match="every document of one side is also on the other"):
        themed.compare(where=["stars <= 2", "stars <= 2"])


def test_log_odds_are_the_formula() -> None:
    counts = count_terms(["pear pear fig", "fig kiwi"], [], longest=1)
    assert counts is not None and counts.terms.tolist() == ["fig", "kiwi", "pear"]
    first, second = np.array([1, 0, 2]), np.array([1, 1, 0])
    prior = np.array([2, 1, 2]) * 3 / 5 * 0.1 + 0.01
    odds = [np.log((own + prior) / (own.sum() + prior.sum() - own - prior)) for own in (first, second)]
    expected = (odds[0] - odds[1]) / np.sqrt(1 / (first + prior) + 1 / (second + prior))
    np.testing.assert_allclose(term_log_odds(counts, np.array([0, 1])), expected)


def test_terms_beyond_chance_are_those_of_the_exact_test() -> None:
    rng = np.random.default_rng(1)
    texts = [" ".join(f"word{n}" for n in np.flatnonzero(rng.random(40) < 0.3)) for _ in range(60)]
    side = np.repeat([0, 1], [20, 40])
    texts = [
        f"{text} pear pear pear" if s == 0 or place % 5 == 0 else text
        for place, (text, s) in enumerate(zip(texts, side, strict=True))
    ]
    counts = count_terms(texts, [], longest=1)
    assert counts is not None
    having = np.array([[term in text.split() for term in counts.terms] for text in texts])
    tails, lowest = list[float](), list[float]()
    for one in (0, 1):
        for own, every in zip(having[side == one].sum(axis=0), having.sum(axis=0), strict=True):
            size = int((side == one).sum())
            tails.append(float(hypergeom.sf(own - 1, 60, every, size)))
            lowest.append(float(hypergeom.sf(min(every, size) - 1, 60, every, size)))
    found = beyond_chance(counts, side)
    assert found.ravel().tolist() == tarone(tails, lowest)
    assert [counts.terms[found[s]].tolist() for s in (0, 1)] == [["pear"], []]


def tarone(chances: list[float], lowest: list[float]) -> list[bool]:
    """Tarone's correction, naively: of k tests, at most k can reach 0.05 / k."""
    k = next(k for k in range(1, len(chances) + 1) if sum(each <= 0.05 / k for each in lowest) <= k)
    return [each <= 0.05 / k for each in chances]


def test_parts_that_differ_by_chance_have_no_terms_beyond_it() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"word{n}" for n in rng.zipf(1.3, 12) % 3_000) for _ in range(600)]
    counts = count_terms(texts, [], longest=2)
    assert counts is not None
    wrong = sum(beyond_chance(counts, rng.permutation(np.repeat([0, 1], [150, 450]))).any() for _ in range(40))
    assert wrong <= 4


def test_a_single_term_tells_no_sides_apart() -> None:
    """NumPy's warning about a logarithm was printed."""
    counts = Counts.of_rows([{0: 3}, {0: 1}], ["refund"])
    assert term_log_odds(counts, np.array([0, 1])).tolist() == [0.0]


def test_a_word_frequent_everywhere_names_no_cluster() -> None:
    texts = [9 * "said " + word for word in 3 * ["game team"] + 4 * ["market"] + 4 * ["vote"]]
    groups = np.repeat([0, 1, 2], [3, 4, 4])
    counts = count_terms(texts, [], longest=1)
    assert counts is not None
    weighted = weights(counts, groups, 3)
    assert best_terms(weighted, 1)[1][0][0] == "said"
    found = best_terms(distinctive(weighted, counts, groups))
    assert [[term for term, _ in terms] for terms in found] == [["game", "team"], ["market"], ["vote"]]
    alike = distinctive(weights(counts, 0 * groups, 1), counts, 0 * groups)
    assert len(best_terms(alike)[0]) == 5  # one group has no others: it keeps its terms


def test_the_command(themed: Collection, sonde: Command) -> None:
    before = contents(themed.path)
    ran = sonde("compare", themed.path, "--run", "four", "--run", "other")
    assert ran.code == 0 and ran.out.startswith("four and other: 110 documents · NMI 0.") and "split: 0 (" in ran.out
    ran = sonde("compare", themed.path, "--cluster", 0, "--cluster", 1, "--run", "four", "--json")
    assert [side["name"] for side in json.loads(ran.out)["sides"]] == ["0 (four 0)", "1 (four 1)"]
    ran = sonde("compare", themed.path, "--where", "stars = 1", "--where", "stars = 2")
    assert ran.out.count("\n  chance    all of these terms may differ only by chance\n") == 2
    for arguments, words, code in (
        (["--cluster", 0, "--cluster", 9, "--run", "four"], ["no cluster 9", "there are 0, 1, 2, 3"], 2),
        (["--cluster", 0], ["two clusters"], 2),
        ([], ["two clusters, two filters, two queries or two runs"], 2),
        (["--run", "four", "--run", "nope"], ["'nope'", "four (cluster), other (cluster)"], 1),
        (["--cluster", 0, "--cluster", 1, "--run", "nope"], ["'nope'", "four (cluster), other (cluster)"], 1),
        (["--cluster", 0, "--cluster", 1, "--run", "four", "--run", "other"], ["give --run once"], 2),
        (["--where", "stars = 9", "--where", "stars = 1"], ["'stars = 9' holds no documents"], 2),
        (["--where", "nope = 9", "--where", "stars = 1"], ["no field 'nope'"], 2),
    ):
        sonde("compare", themed.path, *arguments).refused(*words, code=code)
    assert contents(themed.path) == before
