"""What a page says when it cannot go on: a sentence, and what to do."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from ...indexer.errors import SondeError, WriterBusyError
from .plain import escape_markdown

log = logging.getLogger("sonde.ui")


@contextmanager
def sentences() -> Iterator[None]:
    """Show what fails inside the block as one sentence; what nobody foresaw goes to the server's log."""
    try:
        yield
    except WriterBusyError:
        st.warning("This collection is being written. Searching goes on as before; try this again when that has ended.")
    except SondeError as error:
        st.error(escape_markdown(str(error)))
    except OSError as error:
        st.error(escape_markdown(f"{error.strerror or error}: {error.filename or 'a file'}"))
    except Exception:
        log.exception("a page failed")
        st.error("Something failed that Sonde did not foresee. The server's log says what; load the page again.")


def empty(what: str, way_on: str, icon: str = ":material/inbox:") -> None:
    """Show that there is nothing here yet, and what to do about it; both are Sonde's own words, as Markdown."""
    with st.container(border=True, horizontal_alignment="center"):
        st.subheader(f"{icon} {what}", anchor=False, text_alignment="center")
        st.markdown(way_on, text_alignment="center")
