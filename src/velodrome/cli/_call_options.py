"""The options of `velodrome load` that tell a gRPC call, and the call they make together."""

from __future__ import annotations

from velodrome.cli._declared import Annotated, Option
from velodrome.plan.asked.file_or_text import read_text

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

Streams = Annotated[
    int | None,
    Option(
        "-m", "--streams", help="gRPC, HTTP/2: requests each connection carries at once (1; open loop 100)."
    ),
]
Call = Annotated[str | None, Option(help="gRPC: package.Service/Method, where the URL does not say it.")]
Proto = Annotated[
    list[str] | None,
    Option(
        metavar="PATH",
        help="gRPC: file that describes the call; without one the server is asked (reflection).",
    ),
]
Include = Annotated[
    list[str] | None,
    Option("-I", "--include", metavar="PATH", help="gRPC: folder where imports are; repeatable."),
]
Data = Annotated[
    str | None,
    Option(
        help="gRPC: the message as JSON, or @file; a list where a call sends several. {{n}}, {{i}} and {{random}} "
        "in its strings are the number of the call, that of the message in it, and a random number."
    ),
]
Messages = Annotated[int | None, Option(min=1, help="gRPC: send the message so many times in each call.")]
ExpectData = Annotated[
    str | None,
    Option(
        help="gRPC: the right answer as JSON, or @file; of several messages all as a list, or what each is like."
    ),
]


class Asked:
    """What is asked over gRPC, as the options say it; None: not given."""

    def __init__(
        self,
        streams: int | None,
        call: str | None,
        proto: Sequence[str] | None,
        include: Sequence[str] | None,
        data: str | None,
        messages: int | None,
        expect_data: str | None,
    ) -> None:
        self.streams, self.call, self.messages = streams, call, messages
        self.proto, self.include = proto, include
        self.data, self.expect_data = data, expect_data

    @property
    def given(self) -> dict[str, object]:
        """The options that say nothing to another protocol."""
        return {
            "--streams": self.streams,
            "--call": self.call,
            "--proto": self.proto,
            "--include": self.include,
            "--data": self.data,
            "--messages": self.messages,
            "--expect-data": self.expect_data,
        }

    def spec(self) -> dict[str, Any]:
        """Return what the engine takes as `grpc`. Raises UsageError for a file that cannot be read."""
        return {
            "call": self.call,
            "proto": list(self.proto or ()),
            "include": list(self.include or ()),
            "data": read_text("--data", self.data),
            "messages": self.messages,
            "expect_data": read_text("--expect-data", self.expect_data),
        }
