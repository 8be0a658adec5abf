"""A stack of the ward: the server of the standard library, one thread, which waits for the next request of a client.

With `connection` close it ends each connection with the answer.
"""

import argparse
import importlib
import os
import socketserver
import sys
from wsgiref import simple_server

from velodrome.guest.stack import Process, Stack, exactly_one


def _command(launch):
    keeps_s = launch.text("keepalive") if launch.text("connection") == "keep" else "0"
    path, options = (
        os.path.abspath(__file__),
        ("--port", str(launch.port), "--keepalive", keeps_s),
    )
    # By its path: the copy of the guest folder does not have it.
    code = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    return Process(("-c", code, path, *options, launch.app))


stack = Stack(
    name="holding",
    title="wsgiref · one thread",
    about="One thread answers one connection at a time; while that is idle, it waits for its next request.",
    interface="wsgi",
    concurrency="sync",
    command=_command,
    knobs={"keepalive": 30, "connection": "keep"},
    choices={"connection": ("keep", "close")},
    slots=exactly_one,
)


class Handler(simple_server.WSGIRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    wbufsize = 65_536
    disable_nagle_algorithm = True

    def handle(self):
        """Answer its requests, one after the other."""
        self.timeout = keeps_s or None
        self.connection.settimeout(self.timeout)
        self.raw_requestline = b""
        while True:
            try:
                self.raw_requestline = self.rfile.readline(65537)
            except OSError:
                return
            if not self.raw_requestline or not self.parse_request():
                return
            handler = Answering(
                self.rfile, self.wfile, self.get_stderr(), self.get_environ(), multithread=False
            )
            handler.request_handler = self
            handler.run(self.server.get_app())
            self.wfile.flush()
            if not keeps_s:
                return

    def log_message(self, format, *args):
        """Say nothing."""


class Answering(simple_server.ServerHandler):
    """One answer."""

    http_version = "1.1"

    def cleanup_headers(self):
        """Say whether the connection stays."""
        super().cleanup_headers()
        self.headers["Connection"] = "keep-alive" if keeps_s else "close"

    def close(self):
        """Keep the connection: `simple_server` would log here."""
        simple_server.SimpleHandler.close(self)


keeps_s = 0

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--keepalive", type=int)
    parser.add_argument("app")
    given = parser.parse_args()
    keeps_s = given.keepalive
    sys.path.insert(0, os.getcwd())
    module, _, name = given.app.partition(":")
    socketserver.TCPServer.request_queue_size = 1024
    server = simple_server.WSGIServer(("127.0.0.1", given.port), Handler)
    server.set_app(getattr(importlib.import_module(module), name))
    server.serve_forever()
