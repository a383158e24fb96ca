"""A collection on another machine, with the same methods as a local one."""

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import reduce
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from ...indexer.errors import (
    MissingExtraError,
    NothingToIndexError,
    SondeError,
    Texts,
    UsageError,
    WriterBusyError,
    arg,
    as_text,
    as_texts,
    is_finite,
)
from ...indexer.progress import Notify, silent
from ...indexer.wording import counted
from ...pipelines.label import Classified, Entailment, Labels, LabelSettings, check_sentences, make_labels
from ..api.arguments import S, checked, settings_from
from .remote import NOTHING, READING, WRITING, RemoteMap, RemoteTopics, check_settings, options_of, remote_method
from .wire import decode, encode, parts_of

if TYPE_CHECKING:
    import httpx2
    import numpy as np
    import pandas as pd

    from ...indexer.ingest import BuildReport
    from ..api import Collection as Local
else:
    Local = object

PAGE = 1_000
"""Number of documents to read in one request."""
PATIENCE = 60.0
"""Default timeout in seconds of a call that reads."""


class RemoteCollection(Local):
    """A collection served by `sonde serve`, with the methods, results and errors of a local one.

    `remote_method` creates every method that is not defined here, with the signature of the local method. Options that
    choose a model or a device raise an error, because the service decides these. `progress` is not called.
    """

    def __init__(
        self, http: "httpx2.Client", collection: str | None = None, *, for_writes: "httpx2.Timeout | None" = None
    ) -> None:
        """Take an open HTTP client whose base URL is the service, and the collection's name on that service.

        Calls that write use the timeout `for_writes`, or the client's timeout if None.
        """
        self._http = http
        self._for_writes = for_writes
        self.collection = collection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    if not TYPE_CHECKING:  # a type checker sees the methods of a local collection

        def __getattr__(self, name: str) -> Any:
            method = remote_method(name)
            setattr(type(self), name, method)
            return getattr(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *READING, *WRITING})

    def __len__(self) -> int:
        return self.info().documents

    def __contains__(self, id: object) -> bool:
        return isinstance(id, (str, Integral)) and bool(self.documents([as_text(id, "id")]))

    def __repr__(self) -> str:
        name = f", collection={self.collection!r}" if self.collection else ""
        return f"RemoteCollection({self._url!r}{name})"

    @property
    def _url(self) -> str:
        return str(self._http.base_url).rstrip("/")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def classify(
        self, texts: Texts, labels: Labels, *, settings: LabelSettings | None = None, **options: Any
    ) -> list[Classified]:
        """Label texts that are not in a collection; `options` are those of the service's `/label`.

        Raises:
            UsageError: A text, a label or a setting is not valid.
            SondeError: The service's model is not available, or a reason listed under `search`.
        """
        named = {label.name: label.description for label in make_labels(labels, several=True)}
        given = {"texts": as_texts(texts, "text"), "labels": named}
        chosen = _chosen(LabelSettings, settings, options, "classify")
        if refused := [name for name in ("model", "device", "dtype") if name in chosen]:
            raise UsageError(f"{refused[0]} cannot be chosen over HTTP: the service decides it", field=refused[0])
        found = self._post("/label", given | chosen)["texts"]
        return [
            Classified(tuple(each["labels"]), each["scores"], each["engine"], each["model"], each.get("none"))
            for each in found
        ]

    @checked
    def entail(self, premise: str, hypothesis: str) -> Entailment:
        """Decide whether one sentence follows from another.

        Raises:
            UsageError: A sentence is empty.
            SondeError: As for `classify`.
        """
        check_sentences(premise, hypothesis)
        return Entailment(**self._call("/entail", {"premise": premise, "hypothesis": hypothesis}))

    @checked
    def embed(self, texts: Texts, *, query: bool = False) -> "np.ndarray":
        """Embed texts with the service's model; return float32 [n, d].

        Raises:
            SondeError: As for `search`.
        """
        import numpy as np

        return np.array(self._post("/embed", {"texts": as_texts(texts, "text"), "query": query})["vectors"], np.float32)

    @checked
    def put(self, documents: Any, *, progress: Notify = silent) -> "BuildReport":
        """Add documents, or replace those with the same id, in commits of 500 or fewer; see the local method.

        Raises:
            UsageError: A document cannot be used; earlier commits are already written, as a note of the error says.
            SondeError: The key allows only reading, another process is writing, or a reason listed under `search`.
        """
        from ...indexer.readers.given import given_documents

        given = given_documents(documents, self.fields, lambda: self.id_column)
        reports: list[BuildReport] = []
        stored = 0
        try:
            for part in parts_of(given):
                reports.append(self.call("write/put", {"documents": part}))
                stored += len(part)
        except SondeError as error:
            if stored:
                error.add_note(f"stored before that: {counted(stored, 'document')}")
            raise
        return reduce(_together, reports)

    @checked
    def rows(
        self, *, vectors: bool = False, start: int = 0, count: int | None = None, where: str | None = None,
        indicators: str | None = None,
    ) -> Iterator[dict[str, Any]]:  # fmt: skip
        """Yield every document as a dictionary, fetched in pages of 1,000; see the local method.

        Raises:
            UsageError: `start` or `count` is below 0, or the filter is not valid.
            SondeError: As for `search`.
        """
        given = {"where": where, "indicators": indicators}
        return self._pages({"vectors": vectors} | {k: v for k, v in given.items() if v is not None}, start, count)

    def _pages(self, options: Mapping[str, Any], start: int, count: int | None) -> Iterator[dict[str, Any]]:
        end = None if count is None else start + count
        while end is None or start < end:
            page = PAGE if end is None else min(PAGE, end - start)
            found = self.call("read/rows", {**options, "start": start, "count": page})
            yield from found
            if len(found) < page:
                return
            start += page

    @checked
    def to_pandas(
        self, *, vectors: bool = False, where: str | None = None, columns: Sequence[str] | None = None,
        indicators: str | None = None,
    ) -> "pd.DataFrame":  # fmt: skip
        """Return documents with their metadata as a DataFrame; see the local method.

        Raises:
            UsageError: The filter is not valid, or a column does not exist.
            MissingExtraError: pandas is not installed.
            SondeError: As for `search`.
        """
        from ...indexer.store.tabular import frame_of, only_columns

        return only_columns(frame_of(self.rows(vectors=vectors, where=where, indicators=indicators)), columns)

    @checked
    def topics(self, name: str = "topics", **options: Any) -> "RemoteTopics":
        """Find topics, store them as a run, and return them; see the local method."""
        return RemoteTopics(self, self._made("topics", name, options))

    @checked
    def topic_run(self, name: str | None = None, *, progress: Notify = silent) -> "RemoteTopics":
        """Return the topics of a stored run, or of the newest run if no name is given."""
        return RemoteTopics(self, self.call("read/topic_run/name", {}, name))

    @checked
    def map(self, name: str = "map", **options: Any) -> "RemoteMap":
        """Lay out the documents on a plane, store the map as a run, and return it; see the local method."""
        return RemoteMap(self, self._made("map", name, options))

    @checked
    def map_run(self, name: str | None = None) -> "RemoteMap":
        """Return a stored map, or the newest map if no name is given."""
        return RemoteMap(self, self.call("read/map_run/name", {}, name))

    def call(self, method: str, options: Mapping[str, Any], run: str | None = None) -> Any:
        """Call a method of the service and return its result with the original types.

        Args:
            method: "read/NAME" or "write/NAME"; for a run's methods, the method that opens the run comes before NAME.
            options: The arguments by name.
            run: The run's name, for methods of topics and maps.
        """
        encoded = {name: _encoded(name, value) for name, value in options.items()}
        return decode(self._post(f"/{method}", {"options": encoded} | ({"run": run} if run else {}))["result"])

    def _made(self, method: str, name: str, options: dict[str, Any]) -> str:
        from ..api import Collection

        check_settings(getattr(Collection, method), options)
        return self.call(f"write/{method}", {"name": name, **options_of(options)})

    def _named(self) -> dict[str, Any]:
        return {"collection": self.collection} if self.collection else {}

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self._call(path, self._named() | body)

    def _call(self, path: str, body: dict[str, Any]) -> Any:
        writes = path.startswith("/write/")
        given: dict[str, Any] = {"json": body}
        if writes and self._for_writes is not None:
            given["timeout"] = self._for_writes
        answer = self._sent(path, given, again=not writes)
        if not answer.is_success:
            raise _refusal(answer, self._url)
        try:
            return answer.json()
        except ValueError:
            raise SondeError(f"{self._url} does not answer like `sonde serve`: is this its address?") from None

    def _sent(self, path: str, given: Mapping[str, Any], *, again: bool) -> "httpx2.Response":
        """Send a request and return the answer.

        Args:
            path: The path below the service's address.
            given: Arguments of `httpx2.Client.post`.
            again: Whether to retry once if the connection closes before an answer; servers close idle connections.
                Only for requests that read, because a write may already have happened.

        Raises:
            UsageError: A text cannot be encoded as UTF-8.
            SondeError: The connection is closed, or no answer arrived.
        """
        import httpx2

        if self._http.is_closed:
            raise SondeError("the connection is closed: open another with sonde.connect()")
        try:
            return self._http.post(path, **given)
        except UnicodeEncodeError as error:
            text = error.object[: error.start].rpartition('"')[2] + error.object[error.start :].partition('"')[0]
            said = f"{reprlib.repr(text)} is not valid Unicode: write it in UTF-8"
            raise UsageError(said, code="wrong-type", value=text) from None
        except httpx2.ConnectTimeout:
            raise SondeError(f"{self._url} cannot be reached{_within(self._http.timeout.connect)}") from None
        except httpx2.TimeoutException:
            raise SondeError(
                f"no answer from {self._url}{_within(self._http.timeout.read)}; the service may still be working: "
                "give sonde.connect() a longer timeout"
            ) from None
        except httpx2.HTTPError as error:
            broken = isinstance(error, httpx2.RemoteProtocolError | httpx2.ReadError | httpx2.WriteError)
            if broken and again:
                return self._sent(path, given, again=False)
            if broken and path.startswith("/write/"):
                said = f"the connection to {self._url} broke before an answer came ({error})"
                raise SondeError(f"{said}: what was sent may be stored, so look before you send it again") from None
            raise SondeError(f"{self._url} cannot be reached: {error}") from None


def _within(seconds: float | None) -> str:
    return "" if seconds is None else f" within {seconds:g} s"


def _encoded(name: str, value: Any) -> Any:
    try:
        return encode(value)
    except TypeError as error:
        kind = str(error).split(" ")[0]
        said = f"{arg(name)} is {reprlib.repr(value)}: values of the type {kind} cannot be sent to a service"
        raise UsageError(said, code="wrong-type", field=name, value=value) from None


def _refusal(answer: "httpx2.Response", url: str) -> SondeError:
    """Return the error for an unsuccessful answer, with the class that the local method raises."""
    try:
        problem = answer.json()
        detail, code = problem["detail"], problem.get("code")
        field = (problem.get("errors") or [{}])[0].get("field")
    except (ValueError, KeyError, TypeError, AttributeError):
        detail, code, field = f"{url} answers with status {answer.status_code}", None, None
    kinds = {(409, NOTHING): NothingToIndexError, (409, WriterBusyError.code): WriterBusyError}
    kind = UsageError if answer.status_code == 422 else kinds.get((answer.status_code, code or ""), SondeError)
    return kind(detail, code=code, field=field)


@checked
def connect(
    url: str, *, key: str | None = None, collection: str | None = None, timeout: float | None = None
) -> RemoteCollection:
    """Open a collection served by `sonde serve`; the first call connects.

    Args:
        url: The service's address, such as "http://127.0.0.1:8080"; http:// is optional.
        key: An API key, if the service requires one.
        collection: The collection's name on the service; optional if the service has only one.
        timeout: Seconds to wait for an answer to each call. By default, a call that reads waits 60 s, and a call that
            writes, such as `cluster`, has no time limit.

    Raises:
        UsageError: The address, the key or the timeout is not valid.
        MissingExtraError: httpx2 is not installed.
    """
    try:
        import httpx2
    except ImportError:
        raise MissingExtraError("httpx2", "all", "`sonde.connect`") from None
    base = _address(url)
    if key is not None and not (key.isascii() and key.isprintable()):
        raise UsageError(
            "the key is not valid: give it exactly as `sonde serve key` printed it", code="invalid", field="key"
        )
    if timeout is not None and not (is_finite(timeout) and timeout > 0):
        said = f"{arg('timeout')} is {timeout!r}: give a number of seconds above 0"
        raise UsageError(said, code="out-of-range", field="timeout", value=timeout)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    client = httpx2.Client(base_url=base, headers=headers, timeout=timeout or PATIENCE)
    return RemoteCollection(
        client, collection, for_writes=None if timeout else httpx2.Timeout(PATIENCE, read=None, write=None)
    )


def _address(url: str) -> str:
    """Return the address of a service, with http:// if it has no scheme.

    Raises:
        UsageError: The address is not valid.
    """
    full = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(full)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good or not full.isascii() or any(character.isspace() for character in full):
        said = f"{url!r} is not the address of a service: give one such as http://127.0.0.1:8080"
        raise UsageError(said, code="invalid", field="url", value=url)
    return full


def _chosen(kind: type[S], settings: S | None, options: dict[str, Any], method: str) -> dict[str, Any]:
    """Return the fields that differ from their defaults, because the service does not accept every field."""
    given = settings_from(kind, settings, options, method)
    given.check()  # type: ignore[attr-defined]
    values = {field.name: getattr(given, field.name) for field in fields(kind)}  # type: ignore[arg-type]
    default = kind()
    return {name: value for name, value in values.items() if value != getattr(default, name)}


def _together(one: "BuildReport", two: "BuildReport") -> "BuildReport":
    """Return the combined report of two commits."""
    sums = {
        each.name: getattr(one, each.name) + getattr(two, each.name)
        for each in fields(one)
        if isinstance(getattr(one, each.name), int | float)
    }
    rows, fields_now = (*one.skipped_rows, *two.skipped_rows), (*one.became_text, *two.became_text)
    return replace(two, **sums, skipped_rows=rows, became_text=fields_now, notes=(*one.notes, *two.notes))
