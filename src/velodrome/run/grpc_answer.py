"""Ask a gRPC server once, by the engine, and tell what it answered."""

from collections.abc import Mapping
from typing import Any

from velodrome.model.errors import EngineError
from velodrome.run import engine
from velodrome.run.answer import UNFINISHED, Wrong
from velodrome.run.drivers.driver import Target
from velodrome.run.grpc_call import GrpcCall

NOT_GRPC = "what it answers is not gRPC: "


def ask(target: Target, call: GrpcCall, timeout_s: float) -> str | Wrong | None:
    """Make one call on a fresh connection: None for a right answer, a wrong one, or why there is none."""
    spec = {
        "url": target.url,
        "grpc": {"kind": call.kind},
        "headers": [list(header) for header in target.headers],
        "connections": 1,
        "requests": 1,
        "timeout_s": timeout_s,
        "drain_s": 0.0,
        "transport": "epoll",
        "allow_target": list(target.allow),
    }
    try:
        return _judged(engine.load(spec, call.sent, call.expected))
    except EngineError as error:  # a machine without a free descriptor has one later
        return str(error)


def _judged(document: Mapping[str, Any]) -> str | Wrong | None:
    outcome = next((name for name, count in document["outcomes"].items() if count), "unfinished")
    examples = document["examples"]
    what = examples[0]["text"] if examples else UNFINISHED
    if outcome == "ok":
        return None
    if outcome in ("timeout", "unfinished"):
        # A server that takes the connection and says nothing of HTTP/2 is another matter than a slow one.
        return what if "SETTINGS" in what else UNFINISHED
    if outcome == "refused":
        return "nothing listens on its port" if "nothing listens" in what else what
    if outcome == "reset":
        return f"the call breaks off ({what})"
    return Wrong(NOT_GRPC + what if outcome == "bad_protocol" else f"it answers wrongly: {what}")
