"""Several requests by weight, as the engine takes them in the field `mix` of its specification."""

from collections.abc import Sequence
from typing import Any

from velodrome.model.app import Content, Request


def document(requests: Sequence[Request]) -> list[dict[str, Any]]:
    """Return the field; a request with an empty path is asked at the path of the load's URL."""
    return [
        {
            "name": request.name,
            "weight": request.weight,
            "method": request.method,
            "path": request.path or None,
            "headers": [list(header) for header in request.headers],
            "body": _content(request.body),
            "expect_status": request.expect_status,
            "expect_body": _content(request.expect_body),
            "expect_contains": request.expect_contains,
        }
        for request in requests
    ]


def _content(content: Content | None) -> dict[str, str] | None:
    if content is None:
        return None
    return {"base64": content.base64} if content.base64 else {"text": content.text}
