"""Requests that the OpenAPI document allows, and many that it does not: no failure, and answers as documented.

Left out is the check that whatever fits the schema is accepted: a filter must also name columns that exist.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import schemathesis
from fake_encoder import FakeEncoder
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from sonde.app.api import index
from sonde.app.http.hosted import Hosts
from sonde.app.http.service import create_app
from sonde.app.http.settings import ServeSettings

EXAMPLES = settings().max_examples // 2
LENIENT = [HealthCheck.too_slow, HealthCheck.filter_too_much]


@pytest.fixture(scope="module")
def documented() -> Iterator[schemathesis.BaseSchema]:
    rows = [{"id": str(n), "text": f"letter {n} about apples", "stars": n % 5} for n in range(20)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "letters.sonde"
        index(rows, path, id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
        given = ServeSettings(allow_host=("testserver",))
        hosts = Hosts.open([path], given, encoder=FakeEncoder())  # type: ignore[arg-type]
        yield schemathesis.openapi.from_asgi("/openapi.json", create_app(hosts, given))


def test_the_service_is_as_documented(documented: schemathesis.BaseSchema) -> None:
    operations = [found.ok() for found in documented.get_all_operations()]  # type: ignore[union-attr]
    assert len(operations) > 12
    for operation in operations:

        @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=LENIENT)
        @given(case=operation.as_strategy())
        def answers_as_documented(case: schemathesis.Case) -> None:
            case.call_and_validate(excluded_checks=[positive_data_acceptance], timeout=60)

        answers_as_documented()


def test_the_schemas_name_modules_that_exist() -> None:
    import re
    from importlib import import_module

    from sonde.app.http import schemas

    [name] = re.findall(r"`(\w+)` checks", schemas.__doc__ or "")
    assert import_module(f"sonde.app.http.{name}")


def test_every_option_of_a_search_is_in_the_body_and_reaches_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A field of the body that was forgotten on the way was ignored without a word."""
    from dataclasses import fields
    from types import SimpleNamespace

    from sonde.app.http.routes.search import _settings
    from sonde.app.http.schemas import SearchRequest
    from sonde.pipelines.search.settings import SearchSettings

    options = {
        "k": 3, "offset": 2, "mode": "dense", "where": "stars = 1", "threshold": 0.2, "fusion": "rrf", "weight": 0.3,
        "depth": 40, "breadth": 50, "explain": True, "collapse": False, "rerank": True, "rerank_model": "late",
        "rerank_depth": 20, "rerank_weight": 0.4, "rerank_budget": "1s",
    }  # fmt: skip
    assert set(options) == {field.name for field in fields(SearchSettings)}
    assert all(options[field.name] != field.default for field in fields(SearchSettings))
    context = SimpleNamespace(settings=ServeSettings(), check_text=lambda text, name: None, check_page=lambda *_: None)
    body = SearchRequest(query="apples", **options)
    assert _settings(context, body) == SearchSettings(**options)  # type: ignore[arg-type]
