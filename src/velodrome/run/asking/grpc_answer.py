"""Ask a gRPC server once, by the engine, and tell what it answered."""

from velodrome.model.errors import EngineError
from velodrome.run import engine
from velodrome.run.asking.answer import Words, Wrong, of_document
from velodrome.run.calls.described_call import DescribedCall
from velodrome.run.calls.grpc_call import GrpcCall
from velodrome.run.drivers.driver import Target

WORDS = Words(foreign="what it answers is not gRPC: ", silent="SETTINGS", broken="the call breaks off")


def ask(target: Target, call: GrpcCall | DescribedCall, timeout_s: float) -> str | Wrong | None:
    """Make one call on a fresh connection: None for a right answer, a wrong one, or why there is none."""
    spec = {
        "url": target.url,
        "grpc": call.spec,
        "headers": [list(header) for header in target.headers],
        "connections": 1,
        "requests": 1,
        "timeout_s": timeout_s,
        "drain_s": 0.0,
        "transport": "epoll",
        "allow_target": list(target.allow),
    }
    try:
        return of_document(engine.load(spec, call.sent, call.expected), WORDS)
    except EngineError as error:  # a machine without a free descriptor has one later
        return str(error)
