"""Run in an environment with grpcio: when it is to describe itself, it answers with what a terminal would obey.

Prints its port, then serves until its input ends.
"""

import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc

SAID = b"\x1b]0;OWNED\x07\xc2\x9b31m\xe2\x80\xae"
ERROR = b"\x08\x0d\x12" + bytes([len(SAID)]) + SAID
"""An `ErrorResponse`: code 13, and the message."""
ANSWER = b"\x3a" + bytes([len(ERROR)]) + ERROR


def answer(questions: Iterable[bytes], _context: object) -> Iterator[bytes]:
    for _ in questions:
        yield ANSWER


server = grpc.server(ThreadPoolExecutor(2))
methods = {"ServerReflectionInfo": grpc.stream_stream_rpc_method_handler(answer)}
for version in ("v1", "v1alpha"):
    service = f"grpc.reflection.{version}.ServerReflection"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
sys.stdin.read()
server.stop(None)
