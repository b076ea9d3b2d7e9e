"""Describes the operations in OpenAPI 3.1, for programs that generate clients.

Source: https://spec.openapis.org/oas/v3.1.1 (26 November 2026).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.json import schema_components

from kbsource import __version__
from mapping.serving.operations import STATUS, Json, Request

_REFERENCE = "#/components/schemas/{name}"
_JSON = "application/json"


def openapi(operations: Mapping[str, type[Request]]) -> Json:
    """Returns the description of operations, by the names of their routes."""
    _, schemas = schema_components(operations.values(), ref_template=_REFERENCE)
    reasons = {"type": "string", "enum": list(STATUS), "description": "why the request is not answered"}
    schemas["Fault"] = {
        "type": "object",
        "properties": {"reason": reasons, "detail": {"type": "string", "description": "what is wrong, for people"}},
        "required": ["reason", "detail"],
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kbsource serve",
            "version": __version__,
            "description": "A snapshot of Wikipedia in which every text has a position: page, revision, element, "
            "characters. Every answer names the release by the hash of its manifest.",
        },
        "servers": [{"url": "/"}],
        "paths": {
            "/": {"get": _operation("describe_release", "Name the release and the operations.")},
            **{f"/{name}": _path(name, operation) for name, operation in operations.items()},
        },
        "components": {
            "schemas": schemas,
            "responses": {str(status): _fault(status) for status in sorted(set(STATUS.values()))},
        },
    }


def _path(name: str, operation: type[Request]) -> Json:
    """Returns the description of an operation, which is called by GET with its parameters in the URL, or by POST."""
    schema, said = operation.schema(), operation.description()
    own = name.replace("/", "_")
    parameters = [
        {"name": field, "in": "query", "required": field in schema.get("required", ()), "schema": bounds}
        for field, bounds in schema["properties"].items()
    ]
    content = {_JSON: {"schema": {"$ref": _REFERENCE.format(name=operation.__name__)}}}
    return {
        "get": {**_operation(own, said), "parameters": parameters},
        "post": {**_operation(f"{own}_by_post", said), "requestBody": {"required": True, "content": content}},
    }


def _operation(name: str, description: str) -> Json:
    answer = {"description": "the answer", "content": {_JSON: {"schema": {"type": "object"}}}}
    faults = {str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(set(STATUS.values()))}
    return {"operationId": name, "description": description, "responses": {"200": answer, **faults}}


def _fault(status: int) -> Json:
    reasons: list[Any] = [reason for reason, own in STATUS.items() if own == status]
    content = {_JSON: {"schema": {"$ref": _REFERENCE.format(name="Fault")}}}
    return {"description": ", ".join(reasons), "content": content}
