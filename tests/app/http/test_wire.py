"""What methods return over HTTP: every class of a result can be sent, and comes back as it was."""
# ruff: noqa: F811  (fixtures that are imported)

import inspect
import re
from dataclasses import is_dataclass
from typing import Any

from fastapi.testclient import TestClient
from http_service import client, folder, local  # noqa: F401  (fixtures)

from sonde.app.api import Collection
from sonde.app.http.client import RemoteCollection
from sonde.app.http.remote import READING, WRITING
from sonde.app.http.wire import TYPES
from sonde.indexer.ingest.late import LateReport

OF_JSON = {"Any", "Item", "Iterator", "Literal", "Mapping", "None", "Path", "Sequence", "Value"}
"""Names in annotations that are no class of a result, or a class that is sent by its name."""


def test_every_class_that_a_method_returns_can_be_sent() -> None:
    known = {name for names in TYPES.values() for name in names} | OF_JSON
    for name in (*READING, *WRITING):
        method: Any = getattr(Collection, name)
        plain: Any = inspect.unwrap(getattr(method, "fget", method))
        returned = set(re.findall(r"\b[A-Z]\w+", str(plain.__annotations__["return"])))
        assert returned <= known, name


def test_a_late_index_is_removed_over_http(client: TestClient, local: Collection) -> None:
    report = RemoteCollection(client, "reviews").late(remove=True)  # type: ignore[arg-type]
    assert is_dataclass(report) and type(report) is LateReport
    assert (report.passages, report.covered, report.removed) == (local.info().passages, 0, False)
