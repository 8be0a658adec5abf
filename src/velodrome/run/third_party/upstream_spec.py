"""How a simulated third party answers, as the engine takes it in its specification."""

from dataclasses import asdict
from typing import Any

from velodrome.model.app import ThirdParty


def answering(third: ThirdParty) -> dict[str, Any]:
    """Return the fields of a specification that say what its answers are and when they come."""
    body: int | dict[str, str] = third.size
    if third.body is not None:
        body = {"base64": third.body.base64} if third.body.base64 else {"text": third.body.text}
    return {
        "latency": third.latency,
        "errors": third.errors,
        "stall": None if third.stall is None else asdict(third.stall),
        "body": body,
        "type": third.content_type,
    }
