"""Loading what the first search of a collection needs before anyone searches: model, indexes, and the table."""

import logging
from collections.abc import Callable
from threading import Lock, Thread
from weakref import WeakSet

from ..api import Collection
from .launch import UiSettings
from .workspace import Workspace

log = logging.getLogger("sonde.ui")
_WARMED = WeakSet[Collection]()
_LOCK = Lock()


def warm_up(settings: UiSettings) -> Thread:
    """Load the collection that the first page will show, in a thread of its own; what fails is left to the page."""

    def work() -> None:
        shelf = Workspace(settings)
        name = settings.collection or next(iter(shelf.names()), None)
        if name is not None:
            load(shelf.open(name))

    return _started(work)


def warm(collection: Collection) -> None:
    """Load a collection in a thread of its own, the first time that a page shows it."""
    with _LOCK:
        if collection in _WARMED:
            return
        _WARMED.add(collection)
    _started(lambda: load(collection))


def load(collection: Collection) -> None:
    """Load the model, the indexes and the table of a collection, and the libraries that pages import at first use.

    What a first search needs comes first; the phrases of the empty page, which take longest, come last.

    Raises:
        SondeError: The collection or its model cannot be loaded.
    """
    if not len(collection) or not collection.model_at_hand:  # a page never downloads a model by itself
        return
    next(iter(collection.search_many(["a first query"], k=1, where="length > 0", explain=True)))
    collection.facets()
    _draw()
    collection.table()
    collection.example_queries()


def _draw() -> None:
    """Draw a first figure: Plotly imports what it needs only then."""
    import plotly.graph_objects as go

    go.Figure(go.Scattergl(x=[0], y=[0])).to_json()


def _started(work: Callable[[], None]) -> Thread:
    def tried() -> None:
        try:
            work()
        except Exception as error:  # the page will say it, if it matters
            log.info("preloading failed: %s", error)

    thread = Thread(target=tried, name="warm-up", daemon=True)
    thread.start()
    return thread
