"""A small, repeatable part of benchmarks/fuzz_http.py: requests and filters changed at random."""
# ruff: noqa: F811  (fixtures that are imported)

import json
import random
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from fake_encoder import FakeEncoder
from fastapi.testclient import TestClient
from http_service import client, client_of, folder, local  # noqa: F401  (fixtures)

from sonde.app.api import index

PATH = Path(__file__).parents[3] / "benchmarks" / "fuzz_http.py"
JSON = {"content-type": "application/json"}


def fuzzer() -> Any:
    spec = spec_from_file_location("fuzz_http", PATH)
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_filter_fails_without_a_sentence() -> None:
    assert list(fuzzer().filter_finds(500, seed=7, patience=60)) == []


def test_no_body_makes_the_service_fail(client: TestClient) -> None:
    fuzz, chance = fuzzer(), random.Random(7)
    described = client.get("/openapi.json").json()
    schemas = described["components"]["schemas"]
    for path, ways in described["paths"].items():
        for method, about in ways.items():
            if "requestBody" not in about or path == "/entail":  # it would load an NLI model
                continue
            kind = about["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
            for _ in range(25):
                body = fuzz.some_body(chance, schemas[kind])
                named = path.format(
                    opened="topic_run", method=chance.choice(["search", "facets", "rows", "put", "tag"])
                )
                answer = client.request(method, named, content=body, headers=JSON)
                assert str(answer.status_code) in about["responses"], (named, body[:300], answer.text[:300])
                assert answer.status_code != 500, (named, body[:300])


def test_no_call_of_a_method_makes_the_service_fail(tmp_path: Path) -> None:
    fuzz, chance = fuzzer(), random.Random(7)
    rows = [{"id": str(n), "text": f"letter {n} about apples", "stars": n % 5, "tags": ["a", "b"]} for n in range(50)]
    encoder: Any = FakeEncoder()
    with index(rows, tmp_path / "letters.sonde", encoder=encoder) as made:
        fuzz.make_runs(made)
    methods, statuses = fuzz.known_methods(), set[int]()
    with client_of(tmp_path / "letters.sonde") as client:
        for _ in range(400):
            path, body = fuzz.some_call(chance, methods)
            answer = client.post(path, content=json.dumps(body), headers=JSON)
            statuses.add(answer.status_code)
            assert answer.status_code != 500, (path, str(body)[:300])
    assert statuses == {200, 404, 409, 422}
