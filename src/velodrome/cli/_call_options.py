"""The options of `velodrome load` that tell a gRPC call, and the call they make together."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from velodrome.cli._declared import Option
from velodrome.plan.asked.file_or_text import read_text

Streams = Annotated[
    int | None,
    Option(
        "-m", "--streams", help="gRPC, HTTP/2: requests each connection carries at once (1; open loop 100)."
    ),
]
Call = Annotated[str | None, Option(help="gRPC: package.Service/Method, where the URL does not say it.")]
Proto = Annotated[
    list[Path] | None,
    Option(help="gRPC: file that describes the call; without one the server is asked (reflection)."),
]
Include = Annotated[
    list[Path] | None, Option("-I", "--include", help="gRPC: folder where imports are; repeatable.")
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


@dataclass(frozen=True)
class Asked:
    """What is asked over gRPC, as the options say it; None: not given."""

    streams: int | None
    call: str | None
    proto: Sequence[Path] | None
    include: Sequence[Path] | None
    data: str | None
    messages: int | None
    expect_data: str | None

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
            "proto": [str(path) for path in self.proto or ()],
            "include": [str(path) for path in self.include or ()],
            "data": read_text("--data", self.data),
            "messages": self.messages,
            "expect_data": read_text("--expect-data", self.expect_data),
        }
