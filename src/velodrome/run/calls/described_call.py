"""A gRPC call of a user's own service: their `.proto` and messages as JSON, which the engine encodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from velodrome.model.app import App, Request


@dataclass(frozen=True)
class DescribedCall:
    """One call."""

    path: str
    """`/package.Service/Method`."""
    proto: str
    """Path of the file."""
    data: str
    """The message, or a list of them."""
    expected_data: str | None = None
    """The right answer in the same form; None: any is right."""

    kind = ""
    """Told by the file."""
    sent = b""
    """What it sends is encoded by the engine."""
    expected = None

    @property
    def spec(self) -> Mapping[str, Any]:
        """What the engine takes as `grpc`."""
        return {
            "proto": [self.proto],
            "include": [str(Path(self.proto).parent)],
            "data": self.data,
            "expect_data": self.expected_data,
        }


def of_app(app: App) -> DescribedCall:
    """Return the call that a servicer is asked: its only request."""
    return of_request(app.requests[0], app.proto)


def of_request(asked: Request, proto: str) -> DescribedCall:
    """Return a request as a call."""
    right = asked.expect_body.text if asked.expect_body else None
    return DescribedCall(asked.path, proto, asked.body.text if asked.body else "{}", right)
