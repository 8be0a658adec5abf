"""What every stack is conformance-tested with: its environment, the guest tree, a third party."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.model.errors import EnvironmentFailedError
from velodrome.run import environment, guest_tree


class ThirdParty(BaseHTTPRequestHandler):
    """Answers after the latency that the request asks for (`GET /?latency=75ms`)."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        asked = parse_qs(urlsplit(self.path).query)["latency"][0]
        found = re.fullmatch(r"([0-9.]+)ms", asked)
        assert found is not None, asked
        time.sleep(float(found[1]) / 1000)
        body = b"x" * 64
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="session")
def upstream() -> Iterator[str]:
    """The base URL of a third party."""
    with ThreadingHTTPServer(("127.0.0.1", 0), ThirdParty) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="session")
def tree() -> Path:
    """The guest tree, exported."""
    return guest_tree.export()


@pytest.fixture(scope="session")
def python_of() -> Callable[[Stack], Path]:
    """The interpreter in a stack's own environment; all are made by whichever worker is first."""
    stacks = catalog.stacks().values()
    cannot = {stack.name: why for stack in stacks if (why := environment.cannot_run(stack))}
    made = environment.prepare([stack for stack in stacks if stack.name not in cannot])

    def python(stack: Stack) -> Path:
        if stack.name in cannot:
            pytest.skip(f"{stack.name}: {cannot[stack.name]}")
        one = made[stack.name]
        if isinstance(one, EnvironmentFailedError):
            raise one
        return one.python

    return python
