"""The command line to paste: what was run here, made general, without what only a laboratory wants of a server.

Every line that is to be deployed is made here or in `deploying_app.py`, so that none has such an option.
"""

import re
import shlex
from collections.abc import Sequence
from itertools import pairwise

_ADDRESS = re.compile(r"(127\.0\.0\.1|localhost|\[::1\]):(\d{2,5})")
_APP = re.compile(r"velodrome\.guest\.interfaces\.\w+:(\w+)")
_HOST, _PORT = "127.0.0.1", "8000"
_AS_THEIRS = {"velodrome.guest.stacks.waitress": "waitress"}
"""Modules of ours that only start a server as its own module does, with the same options."""
_QUIET = ("--log-level", "--no-access-log")
LABORATORY = {
    "gunicorn": (*_QUIET, "--timeout", "--graceful-timeout", "--no-control-socket"),
    "uvicorn": (*_QUIET, "--timeout-graceful-shutdown", "--timeout-worker-healthcheck"),
    "granian": (*_QUIET, "--workers-kill-timeout", "--http1-header-read-timeout", "--no-ws"),
    "hypercorn": (*_QUIET, "--graceful-timeout"),
}
"""By server: options that a race needs and a deployment does not. In a race servers end within seconds, although that
ends live requests; are late because they are overloaded, and not to be replaced for it; write nothing; keep connections
that a load leaves idle; and speak no more than what is asked.
"""
SWITCHES = "--no-"
"""Options that begin so have no value."""


def deploy(command: Sequence[str], stack: str) -> str:
    """Return a server's command line with its own app, host and port replaced.

    Where the server is code of velodrome's there is no such line; then how to see that code.
    """
    look = f"velodrome stacks show {stack}"
    if not command:
        return look
    port = _port_of(command)
    words = ["python"]
    previous = ""
    for word in (_AS_THEIRS.get(word, word) for word in command[1:]):
        general = _APP.sub(r"yourmodule:\1", word)
        general = _ADDRESS.sub(f"{_HOST}:{_PORT}", general)
        if port and (previous in ("--port", "-p") and word == port):
            general = _PORT
        elif port and word == f"--port={port}":
            general = f"--port={_PORT}"
        words.append(general)
        previous = word
    return look if any("velodrome" in word for word in words) else shlex.join(deployed(words))


def deployed(words: Sequence[str]) -> list[str]:
    """Return the words of a command line (`python -m server …`) without what only a laboratory wants of that server."""
    left_out = LABORATORY.get(words[2], ()) if len(words) > 2 and words[1] == "-m" else ()
    found: list[str] = []
    is_value = False
    for word in words:
        option, equals, _ = word.partition("=")
        if option in left_out:
            is_value = not equals and not option.startswith(SWITCHES)
        elif not is_value:
            found.append(word)
        else:
            is_value = False
    return found


def _port_of(command: Sequence[str]) -> str | None:
    """Return the port a command listens on, wherever it stands."""
    for flag, word in pairwise(command):
        if flag in ("--port", "-p") and word.isdigit():
            return word
    text = " ".join(command)
    match = re.search(r"--port=(\d+)", text)
    if match:
        return match[1]
    address = _ADDRESS.search(text)
    return address[2] if address else None
