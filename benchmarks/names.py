"""Names of groups, as they were before 0046 and as they are, on the same groups.

    python benchmarks/names.py [--folder collections/] [--sets bbc,trec6] [--show]

The folder keeps the collections, as in `clusters.py`; those that are there are used as they are. Groups are KMeans with
the true number of classes, and topics. A tenth of the texts is held out. Three readers who know only the names say
where these belong: BM25, the collection's model, and the static model, which had no part in making any names.
"""

import argparse
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from time import process_time

import numpy as np
from _side_by_side import machine
from clusters import SETS, indexed

import sonde
from sonde.indexer.encoder import load_encoder
from sonde.indexer.store.kinds import CLUSTER, TOPIC, RunKind
from sonde.indexer.store.runs import assignments_of, find_run
from sonde.indexer.store.view import View
from sonde.pipelines.analysis.corpus import Corpus, texts_of
from sonde.pipelines.analysis.describe import centroids, cluster_terms, languages, name_by_terms
from sonde.pipelines.analysis.naming.choice import right, right_among
from sonde.pipelines.analysis.naming.names import Naming, embedder, naming_of
from sonde.pipelines.analysis.naming.phrases import alike, stems_of
from sonde.pipelines.analysis.naming.words import BREAK, CONVERSATION, STOP, Reader, plain
from sonde.pipelines.analysis.terms import count_terms, terms_of, tokenizer, topic_name

CLASSES = {"bbc": 5, "newsgroups20": 20, "stackoverflow": 20, "banking77": 77, "trec6": 6}
AMONG = 10


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "sonde-clusters")
    parser.add_argument("--sets", default=",".join(SETS), help=", ".join(SETS))
    parser.add_argument("--show", action="store_true", help="print the names")
    arguments = parser.parse_args()
    print(f"{machine('sonde')}\n")
    print("| set | texts | groups | names | repeat | fragment | twice | BM25 | model | static | mean of two "
          "| all groups | processor seconds |\n" + 13 * "|---" + "|")  # fmt: skip
    for name in arguments.sets.split(","):
        collection = indexed(name, arguments.folder)
        collection.cluster("names", k=CLASSES[name], refits=0, replace=True)
        began = process_time()
        collection.topics("names", replace=True)
        topics = process_time() - began
        for kind in (CLUSTER, TOPIC):
            one_set(name, collection, kind, arguments.show)
        print(f"\ntopics of {name}, with their names: {topics:.1f} s of processor time", flush=True)


def one_set(name: str, collection: sonde.Collection, kind: RunKind, show: bool) -> None:
    """Print the rows of the groups of one run."""
    with collection.stored.view() as view:
        corpus = Corpus.of(view)
        run = find_run(view.catalog, kind, "names")
        groups = np.unique(assignments_of(view.catalog, run)[1][corpus.first], return_inverse=True)[1]
        number, embed = int(groups.max()) + 1, embedder(view.collection, "model")
        began = process_time()
        before = (earlier_clusters if kind is CLUSTER else earlier_topics)(view, corpus, groups, number)
        between = process_time()
        naming = naming_of(view, corpus, groups, number, 0, embed)
        now = naming.choose()
        naming.measure(now)
        seconds = {"before": between - began, "now": process_time() - between}
        spoken = languages(view)
    for who, names in (("before", before), ("now", now)):
        marks = " | ".join(faults(names, naming, spoken))
        print(f"| {name} | {len(corpus.first):,} | {number} {kind}s | {who} | {marks} | {accuracies(naming, names)} "
              f"| {seconds[who]:.1f} |", flush=True)  # fmt: skip
    if show:
        print(*(f"    {one}  ->  {other}" for one, other in zip(before, now, strict=True)), sep="\n")


def accuracies(naming: Naming, names: Sequence[str]) -> str:
    """Return the share of held-out texts that each reader puts right among ten groups; and among all."""
    rows = np.flatnonzero(naming.held_out)
    own, scores = naming.sample.groups[rows], naming.scores(names, rows)
    static = load_encoder("static")
    texts = static.encode_texts([naming.sample.texts[row] for row in rows.tolist()])
    third = np.round(texts.astype(np.float64) @ static.encode_texts(list(names)).T, 5)
    ten = [float(right_among(each, own, AMONG).mean()) for each in (*scores.values(), third)]
    every = float(np.mean([right(each, own).mean() for each in scores.values()]))
    return " | ".join(f"{100 * value:.1f}" for value in (*ten, (ten[0] + ten[1]) / 2, every))


def faults(names: Sequence[str], naming: Naming, spoken: Sequence[str]) -> list[str]:
    """Return the shares of names that repeat a stem, hold a fragment, or are used twice."""
    reader, used = Reader(spoken), Counter(name.casefold() for name in names)
    texts = "\n".join(
        " ".join(re.findall(r"\w[\w'’&+#-]*|[^\w\s]", plain(text))).lower() for text in naming.sample.texts
    )
    found = (
        sum(repeats(name, reader) for name in names),
        sum(any(fragment(term, reader, texts) for term in name.split(", ")) for name in names),
        sum(used[name.casefold()] > 1 for name in names),
    )
    return [f"{100 * count / len(names):.0f} %" for count in found]


def repeats(name: str, reader: Reader) -> bool:
    """Return whether a name has a stem twice, or two stems that begin alike."""
    stems = stems_of(reader.tokens(name))
    return any(alike(one, other) for place, one in enumerate(stems) for other in stems[:place])


def fragment(term: str, reader: Reader, texts: str) -> bool:
    """Return whether a term is no phrase: no text has it as it is written, or a part of it is no word for a name."""
    tokens = [token for token in reader.tokens(term) if token != reader.tokens("")[0]]
    broken = any(token.stem == BREAK for token in tokens) or not tokens
    ends = {token.form.lower() for token in (tokens[:1] + tokens[-1:]) if token.stem == STOP}
    if broken or ends - CONVERSATION:  # earlier names used words of conversation: that is no fragment
        return True
    if " " not in term:
        return False
    written = re.compile(rf"(?<!\w){re.escape(term.lower())}(?!\w)")
    return not written.search(texts)


def earlier_clusters(view: View, corpus: Corpus, groups: np.ndarray, number: int) -> list[str]:
    """Return the names that clusters had: the best three terms by c-TF-IDF."""
    terms = cluster_terms(view, corpus, groups, 0)
    return [name_by_terms(terms.get(group, []), group) for group in range(number)]


def earlier_topics(view: View, corpus: Corpus, groups: np.ndarray, number: int) -> list[str]:
    """Return the names that topics had: words, and pairs of them in typical texts, that are nearest to the mean."""
    docs, encoder = corpus.snapshot.docs[corpus.first], view.collection.encoder
    spoken = languages(view)
    counts = count_terms(texts_of(view, docs), spoken, 1)
    assert counts is not None
    means, words, found = centroids(corpus.vectors, groups, number), tokenizer(tuple(spoken)), []
    for group, weighted in enumerate(terms_of(counts, groups, number)):
        rows = np.flatnonzero(groups == group)
        near = rows[np.argsort(-(corpus.vectors[rows] @ means[group]), kind="stable")[:30]]
        weights = dict(weighted)
        seen = Counter(
            pair
            for text in texts_of(view, docs[near])
            for pair in {f"{a} {b}" for a, b in pairwise(words(text)) if a in weights and b in weights and a != b}
        )
        pairs = sorted((pair for pair, count in seen.items() if count >= 3), key=lambda pair: (-seen[pair], pair))
        terms = dict(weighted[:15]) | {pair: sum(weights[word] for word in pair.split()) / 2 for pair in pairs[:15]}
        cosines = np.maximum(encoder.encode_texts(list(terms)) @ means[group], 0)
        power = (np.array(list(terms.values())) / max(terms.values())) ** 0.3
        order = np.argsort(-(cosines * power), kind="stable")
        found.append(topic_name(list(terms)[place] for place in order))
    return found


if __name__ == "__main__":
    main()
