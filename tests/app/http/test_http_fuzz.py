"""A small, repeatable part of benchmarks/fuzz_http.py: requests and filters changed at random."""
# ruff: noqa: F811  (fixtures that are imported)

import random
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient
from http_service import client, folder, local  # noqa: F401  (fixtures)

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
