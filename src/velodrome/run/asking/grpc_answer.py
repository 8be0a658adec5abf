"""Ask a gRPC server once, by the engine, and tell what it answered."""

from velodrome.run.asking.answer import Words, Wrong
from velodrome.run.asking.once import once
from velodrome.run.calls.described_call import DescribedCall
from velodrome.run.calls.grpc_call import GrpcCall
from velodrome.run.drivers.driver import Target

WORDS = Words(foreign="what it answers is not gRPC: ", silent="SETTINGS", broken="the call breaks off")


def ask(target: Target, call: GrpcCall | DescribedCall, timeout_s: float) -> str | Wrong | None:
    """Make one call on a fresh connection: None for a right answer, a wrong one, or why there is none."""
    asked = {"grpc": call.spec, "headers": [list(header) for header in target.headers]}
    return once(target, asked, WORDS, timeout_s, payload=call.sent, expected=call.expected)
