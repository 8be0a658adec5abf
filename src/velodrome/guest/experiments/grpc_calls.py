"""Calls a gRPC server some times, one after the other, each with a deadline, and tells how they ended.

python -m velodrome.guest.experiments.grpc_calls --address 127.0.0.1:50051 --calls 3 --deadline 2

Prints one line of JSON: `{"seconds": 6.01, "statuses": {"DEADLINE_EXCEEDED": 3}}`.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any, Dict

from velodrome.guest.grpc.greeter import NAME, protobuf_messages
from velodrome.guest.grpc.peers import GreeterStub


def calls(address: str, times: int, deadline_s: float) -> Dict[str, Any]:
    """Make the calls. Needs grpcio installed."""
    import grpc

    messages = protobuf_messages()
    ended: Dict[str, int] = {}
    with grpc.insecure_channel(address) as channel:
        stub = GreeterStub(channel, messages)
        began = time.monotonic()
        for _ in range(times):
            status = "OK"
            try:
                stub.SayHello(messages.request(name=NAME), timeout=deadline_s)
            except grpc.RpcError as error:
                status = str(error.code().name)
            ended[status] = ended.get(status, 0) + 1
        return {"seconds": time.monotonic() - began, "statuses": ended}


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m velodrome.guest.experiments.grpc_calls")
    parser.add_argument("--address", required=True, metavar="HOST:PORT")
    parser.add_argument("--calls", type=int, default=3)
    parser.add_argument("--deadline", type=float, default=2.0)
    options = parser.parse_args()
    print(json.dumps(calls(options.address, options.calls, options.deadline)), flush=True)


if __name__ == "__main__":
    main()
