"""Documents put into a taxonomy from elsewhere: labelled by the names, descriptions and examples of its groups."""

import numpy as np

from ...indexer.errors import UsageError, arg
from ...indexer.progress import Notify, silent
from ...indexer.store.documents import document_numbers
from ...indexer.store.view import View, document_vectors
from ..label.labels import MOST_LABELS, Label
from ..label.margins import LabelTexts, label_corpus
from ..label.none import refusal
from ..label.outcome import decide
from ..label.scores import label_vectors
from ..label.settings import LabelSettings
from .groups import leaves, path
from .state import State

SETTINGS = LabelSettings(engine="similarity", none=True)


def labelled(view: View, state: State, notify: Notify = silent) -> State:
    """Return a state in which the documents that it does not know are in its leaf groups, or in none.

    Each leaf is a label: its path and description. The examples of a group count as texts that were corrected to it.

    Args:
        view: Of the collection.
        state: The taxonomy.
        notify: Receives progress.

    Raises:
        UsageError: There are fewer than two leaf groups, or too many.
        SondeError: The model is not available.
    """
    numbers = [number for number in leaves(state.groups) if not state.groups[number].rule]
    if len(numbers) < 2:
        said = "labelling needs at least two groups: add groups to the taxonomy first"
        raise UsageError(said, code="too-few", field="label")
    if len(numbers) > MOST_LABELS:
        said = (
            f"the taxonomy has {len(numbers):,} groups to label by; the maximum is {MOST_LABELS:,}: import it without "
        )
        said += f"{arg('label')}"
        raise UsageError(said, code="too-many", field="label")
    labels = [Label(path(state.groups, number), state.groups[number].description) for number in numbers]
    encoder = view.collection.encoder
    notify("labelling the documents by the groups")
    of_labels = label_vectors(encoder, labels)
    corpus, docs = _corpus(view, state, numbers)
    found = label_corpus(corpus, labels, of_labels, "similarity", None, SETTINGS, notify=notify)
    # The examples all fit a label, so they do not tell how many texts fit none.
    plain = LabelTexts(corpus.vectors, corpus.keys, corpus.read)
    texts, chosen, scores = decide(found.margins, False, 0.0, *refusal(plain, of_labels, SETTINGS))
    unknown = (texts < len(docs)) & ~np.isin(docs[np.minimum(texts, len(docs) - 1)], state.docs)
    placed = np.where(chosen < 0, -1, np.array(numbers)[chosen])[unknown]
    return state.placed(docs[texts[unknown]], placed, np.round(scores[unknown], 6))


def _corpus(view: View, state: State, numbers: list[int]) -> tuple[LabelTexts, np.ndarray]:
    """Return the texts to label, the examples after the documents, and the numbers of the documents, int64."""
    docs = document_numbers(view.catalog)
    examples = [(place, text) for place, n in enumerate(numbers) for text in state.groups[n].examples]
    vectors = document_vectors(view, docs)
    truth = np.zeros((len(examples), len(numbers)))
    truth[np.arange(len(examples)), [place for place, _ in examples]] = 1
    if examples:
        vectors = np.concatenate([vectors, view.collection.encoder.encode_texts([text for _, text in examples])])
    keys = [str(place) for place in range(len(vectors))]
    known = np.arange(len(docs), len(vectors))
    return LabelTexts(vectors, keys, lambda rows: ["" for _ in rows], known, truth), docs
