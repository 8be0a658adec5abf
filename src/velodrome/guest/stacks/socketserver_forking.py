"""The standard library's `socketserver.ForkingTCPServer`: a process for each request."""

from __future__ import annotations

import os
import signal
import socketserver
from typing import Any

from velodrome.guest.raw.process import (
    arguments,
    command,
    end_on_sigterm,
    sigterm_held_back,
    sigterm_let_through,
)
from velodrome.guest.stack import Launch, Process, Stack, one_per_worker
from velodrome.guest.stacks._socketserver import endpoint, server
from velodrome.guest.workers import load


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.socketserver_forking", launch)


stack = Stack(
    name="socketserver-forking",
    title="socketserver · fork per request",
    about="a new process for each request, which answers, closes the connection and ends; `workers` is how "
    "many may live at once (socketserver's own 40), further requests wait",
    interface="socket_blocking",
    concurrency="processes",
    command=_command,
    knobs={"backlog": 1000, "workers": 40},
    keeps_alive=False,
    slots=one_per_worker,
    python=(3, 10),  # the oldest that the interface's client runs on
)


class Forking(socketserver.ForkingTCPServer):
    """The server of the standard library, which can be ended while it forks."""

    def process_request(self, request: Any, client_address: Any) -> None:
        """Fork, and note the child before SIGTERM looks for those to end."""
        with sigterm_held_back():
            super().process_request(request, client_address)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Respond, in the child."""
        sigterm_let_through()
        super().finish_request(request, client_address)


def end_children(forking: socketserver.ForkingTCPServer) -> None:
    """Kill what still answers and leave no zombie."""
    for pid in list(forking.active_children or ()):
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass  # ended and was collected since


def main() -> None:
    """Serve till SIGTERM."""
    options = arguments("backlog", "workers")
    forking = server(Forking, options, endpoint(load(options.app), keep=False))
    forking.max_children = options.workers
    end_on_sigterm(lambda: end_children(forking))
    forking.serve_forever()


if __name__ == "__main__":
    main()
