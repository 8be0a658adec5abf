"""Uploads markers to a gRPC server, many at once, and tells how many it lost (step `keep`).

python -m velodrome.guest.experiments.canary_calls --address 127.0.0.1:50051 --calls 700 --at-once 40 --digits 12

Prints one line of JSON: `{"statuses": {"OK": 10, "INTERNAL": 690}}`; INTERNAL is a marker that was lost.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict

from velodrome.guest.grpc.greeter import NAME, protobuf_messages
from velodrome.guest.grpc.peers import GreeterStub

CALL_S = 10.0


def statuses(address: str, calls: int, at_once: int, digits: int) -> Dict[str, int]:
    """Make the calls; return how many ended with each status. Needs grpcio installed."""
    import grpc

    messages = protobuf_messages()
    with grpc.insecure_channel(address) as channel, ThreadPoolExecutor(at_once) as pool:
        stub = GreeterStub(channel, messages)

        def call(number: int) -> str:
            request: Any = messages.request(name=NAME, body=b"%0*d" % (digits, number))
            try:
                stub.CollectHellos(iter([request]), timeout=CALL_S)
            except grpc.RpcError as error:
                return str(error.code().name)
            return "OK"

        return dict(Counter(pool.map(call, range(calls))))


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m velodrome.guest.experiments.canary_calls")
    parser.add_argument("--address", required=True, metavar="HOST:PORT")
    for count in ("--calls", "--at-once", "--digits"):
        parser.add_argument(count, type=int, required=True)
    options = parser.parse_args()
    print(
        json.dumps({"statuses": statuses(options.address, options.calls, options.at_once, options.digits)}),
        flush=True,
    )


if __name__ == "__main__":
    main()
