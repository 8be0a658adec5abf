"""Run in an environment with grpcio: asked to describe itself, it answers with what a terminal would obey.

Prints its port, then serves until its input ends.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

SAID = b"\x1b]0;OWNED\x07\xc2\x9b31m\xe2\x80\xae"
ERROR = b"\x08\x0d\x12" + bytes([len(SAID)]) + SAID
"""An `ErrorResponse`: code 13, and the message."""
ANSWER = b"\x3a" + bytes([len(ERROR)]) + ERROR


def answer(questions: Any, context: Any) -> Iterator[bytes]:
    for _ in questions:
        yield ANSWER


class Reflection(grpc.GenericRpcHandler):  # type: ignore[misc]
    def service(self, details: Any) -> Any:
        if "ServerReflectionInfo" in details.method:
            return grpc.stream_stream_rpc_method_handler(answer)
        return None


server = grpc.server(ThreadPoolExecutor(2))
server.add_generic_rpc_handlers((Reflection(),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
sys.stdin.read()
server.stop(None)
