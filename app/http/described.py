"""The OpenAPI document of the service: the key that requests need, and errors in their own media type."""

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI

from .problems import MEDIA_TYPE

OPEN = ("/health", "/ready")
"""Routes that need no key."""


def describe(app: FastAPI, *, keys: bool) -> None:
    """Have the application describe itself as OpenAPI 3.1.

    Args:
        app: The application, with all its routes.
        keys: Whether requests need a key.
    """
    usual = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            described = usual()
            for response in _refusals(described):
                response["content"][MEDIA_TYPE] = response["content"].pop("application/json")
            if keys:
                _require_keys(described)
        return usual()

    app.openapi = openapi


def _refusals(described: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every response that is a problem document, which FastAPI describes as JSON of no special kind."""
    for methods in described["paths"].values():
        for method in methods.values():
            for response in method["responses"].values():
                if {MEDIA_TYPE, "application/json"} <= response.get("content", {}).keys():
                    yield response


def _require_keys(described: dict[str, Any]) -> None:
    """Say that every route needs `Authorization: Bearer KEY`, but for those that say whether the service works."""
    described["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    described["security"] = [{"key": []}]
    for path in OPEN:
        for method in described["paths"].get(path, {}).values():
            method["security"] = []
