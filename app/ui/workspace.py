"""The collections of one folder, each opened once per server, loaded before anyone searches, and who may use them."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from threading import Lock, Thread
from weakref import WeakSet

import streamlit as st

from ...indexer.encoder import Encoder, ModelSpec
from ...indexer.errors import UsageError
from ..api import Collection
from ..api.functions import lasting_file, load_encoder_for
from ..http.guard import Keys
from .jobs import Jobs
from .launch import UiSettings

SUFFIX = ".sonde"
FORBIDDEN = '/\\:*?"<>|'
LONGEST_NAME = 200
"""Bytes; file systems allow 255 for the folder, ending included."""
log = logging.getLogger("sonde.ui")
_WARMED = WeakSet[Collection]()
_LOCK = Lock()


def shared_encoder(spec: ModelSpec, *, device: str) -> Encoder:
    """Return the bi-encoder that all collections of this model share on this server."""
    return _encoder(json.dumps(spec.to_dict(), sort_keys=True), device)


@st.cache_resource(show_spinner=False, max_entries=4)
def _encoder(spec: str, device: str) -> Encoder:
    return load_encoder_for(ModelSpec.from_dict(json.loads(spec)), device=device)


@st.cache_resource(show_spinner=False, max_entries=32)
def _opened(path: str, device: str, made: tuple[int, int]) -> Collection:
    del made  # part of the key: a new collection under an old name is another one
    return Collection.open(path, device=device, loader=shared_encoder)


class Workspace:
    """The collections of one folder. A name from a URL is looked up among them, never made into a path."""

    def __init__(self, settings: UiSettings) -> None:
        """Take the settings of the server."""
        self.settings = settings
        self.folder = settings.folder

    @property
    def jobs(self) -> Jobs:
        """The jobs that work on this shelf."""
        return Jobs(self.settings.jobs)

    def names(self) -> list[str]:
        """Return the names of all collections that a page can show, in the order of the alphabet."""
        found = (path for path in self.folder.glob(f"*{SUFFIX}") if lasting_file(path))
        return sorted(path.name.removesuffix(SUFFIX) for path in found if path.name.isprintable())

    def path(self, name: str) -> Path:
        """Return the folder of a collection, there or yet to be made.

        Raises:
            UsageError: There is none of this name, and the name is empty or long, begins with a dot or a space, or
                holds a separator or the like.
        """
        shown = name.isprintable() and name == name.strip() and not any(c in name for c in FORBIDDEN)
        usable = name and shown and not name.startswith(".") and len(name.encode("utf-8", "replace")) <= LONGEST_NAME
        if not usable and name not in self.names():
            raise UsageError(f"{name[:60]!r} is not a valid collection name: use letters, digits, spaces, - and _")
        return self.folder / f"{name}{SUFFIX}"

    def open(self, name: str) -> Collection:
        """Return a collection, opened once per server.

        Raises:
            SondeError: There is none of this name, or it cannot be read.
        """
        path = self.path(name)
        try:
            made = (lasting_file(path) or path / "nothing").stat()
        except OSError:
            raise UsageError(f"there is no collection {name!r}") from None
        return _opened(str(path), self.settings.device, (made.st_dev, made.st_ino))


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


RIGHTS = "_rights"


def admit(settings: UiSettings) -> bool:
    """Return whether this session may see anything; ask for the key if it has not given one."""
    if settings.keys is None or RIGHTS in st.session_state:
        return True
    st.title("Sonde")
    with st.form("gate"):
        given = st.text_input(
            "Key", type="password", help="Ask the person who runs this server. `sonde serve key` creates keys."
        )
        asked = st.form_submit_button("Open")
    if asked:
        key = Keys.load(Path(settings.keys)).find(given.strip())
        if key:
            st.session_state[RIGHTS] = key.rights
            st.rerun()
        st.error("This key is not valid for this server.")
    return False


def may_write() -> bool:
    """Return whether this session may change collections: a key of rights "read" may not."""
    return st.session_state.get(RIGHTS, "write") == "write"
