"""grpcio in a process that gevent has patched, in its compatibility mode or left out of it: as server, as client.

python -m velodrome.guest.experiments.grpc_under_gevent server --mode out --app … --port … --threads 100
python -m velodrome.guest.experiments.grpc_under_gevent client --mode out --address 127.0.0.1:50051

The server serves as `stacks/grpc_gevent.py` does. The client makes several calls at once, a greenlet each, that take
`--ms` each, and prints one line of JSON: `{"seconds": 2.03, "statuses": {"OK": 10}}`.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any, Dict

from velodrome.guest.grpc import peers
from velodrome.guest.grpc.greeter import NAME
from velodrome.guest.grpc.processes import with_threads
from velodrome.guest.stacks.grpc_gevent import serve
from velodrome.guest.workers import arguments

PROGRAM = "velodrome.guest.experiments.grpc_under_gevent"


def client(options: argparse.Namespace) -> Dict[str, Any]:
    """Call many times at once; return how long all took and how each ended."""
    from gevent import monkey

    monkey.patch_all()
    if options.mode == "in":
        peers.enter()
    import grpc
    from gevent.pool import Pool

    from velodrome.guest.grpc.greeter import protobuf_messages
    from velodrome.guest.grpc.peers import GreeterStub

    messages = protobuf_messages()
    stub = GreeterStub(grpc.insecure_channel(options.address), messages)
    stub.SayHello(messages.request(name=NAME), timeout=options.deadline)  # makes the connection

    def call(number: int) -> str:
        request = messages.request(name=NAME, sleep_millisecond=options.ms)
        try:
            stub.SayHello(request, timeout=options.deadline)
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"

    began = time.monotonic()
    ended = Pool(options.calls).map(call, range(options.calls))
    seconds = time.monotonic() - began
    return {"seconds": seconds, "statuses": {status: ended.count(status) for status in sorted(set(ended))}}


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m " + PROGRAM)
    roles = parser.add_subparsers(dest="role")
    serving = with_threads(roles.add_parser("server", parents=[arguments(PROGRAM)], add_help=False))
    calling = roles.add_parser("client")
    for role in (serving, calling):
        role.add_argument("--mode", choices=("in", "out"), required=True)
    calling.add_argument("--address", required=True, metavar="HOST:PORT")
    calling.add_argument("--calls", type=int, default=10)
    calling.add_argument("--ms", type=int, default=200)
    calling.add_argument("--deadline", type=float, default=10.0)
    options = parser.parse_args()
    if options.role == "server":
        serve(options, options.mode == "in")
    else:
        print(json.dumps(client(options)), flush=True)


if __name__ == "__main__":
    main()
