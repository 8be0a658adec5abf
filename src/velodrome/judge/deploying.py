"""The command line to paste: what was run here, made general, and for what it was measured.

Every line that is to be deployed is made here or in `deploying_app.py`. It is the line that was measured but for the
address and what its server declares as `race_only`: how long requests get when it is stopped, and its own log.
"""

import re
import shlex
from collections.abc import Sequence
from itertools import pairwise

from velodrome.guest import catalog
from velodrome.guest.stack import Server
from velodrome.model import quantity
from velodrome.model.measurement import SHARED_NOTED, Measurement

_ADDRESS = re.compile(r"(127\.0\.0\.1|localhost|\[::1\]):(\d{2,5})")
_APP = re.compile(r"velodrome\.guest\.interfaces\.\w+:(\w+)")
_HOST, _PORT = "127.0.0.1", "8000"


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
    of = catalog.stacks().get(stack)
    for word in command[1:]:
        if of is not None and of.stands_for and word.startswith("velodrome.guest.stacks."):
            word = of.stands_for  # noqa: PLW2901 - a program of ours that takes the same options
        general = _APP.sub(r"yourmodule:\1", word)
        general = _ADDRESS.sub(f"{_HOST}:{_PORT}", general)
        if port and (previous in ("--port", "-p") and word == port):
            general = _PORT
        elif port:
            general = re.sub(rf"\bport={port}\b", f"port={_PORT}", general)
        words.append(general)
        previous = word
    return look if any("velodrome" in word for word in words) else shlex.join(deployed(words))


def deployed(words: Sequence[str], server: Server | None = None) -> list[str]:
    """Return the words of a command line (`python -m server …`) without the options that only a race needs.

    `server` is what its stack declares of the server; None: that is looked up in the catalog.
    """
    if server is None and len(words) > 2 and words[1] == "-m":
        server = catalog.servers().get(words[2])
    left_out = server.has_value if server is not None else {}
    found: list[str] = []
    is_value = False
    for word in words:
        option, equals, _ = word.partition("=")
        if option in left_out:
            is_value = left_out[option] and not equals
        elif not is_value:
            found.append(word)
        else:
            is_value = False
    return found


def circumstances(measured: Measurement, server: Server | None) -> str:
    """Return for what a command line was measured, to stand as a comment above it: CPUs, memory, access log."""
    shared = ", which the load generator shared" if measured.shared_share >= SHARED_NOTED else ""
    limit = measured.trial.limits.memory_bytes
    memory = f" and at most {quantity.memory(limit)}" if limit is not None else ""
    log = ""
    if server is not None:
        known = server.access_log.removeprefix("off, ") if server.access_log != "none" else ""
        log = f" Access log off, as measured{f'; {known}' if known else ''}."
    scope, semicolon, more = measured.scope.partition(";")
    return f"Measured {scope}{shared}{memory}{semicolon}{more}.{log}"


def noted(pasted: str, measured: Measurement | None, server: Server | None) -> str:
    """Return what is pasted below a comment that says for what it was measured; as it is where it starts nothing."""
    if measured is None or not starts_something(pasted):
        return pasted
    return f"# {circumstances(measured, server)}\n{pasted}"


def starts_something(pasted: str) -> bool:
    """Return whether lines to paste start a server; else they only say where to look."""
    return bool(pasted) and not pasted.rpartition("\n")[2].startswith("velodrome ")


def _port_of(command: Sequence[str]) -> str | None:
    """Return the port a command listens on, wherever it stands."""
    for flag, word in pairwise(command):
        if flag in ("--port", "-p") and word.isdigit():
            return word
    text = " ".join(command)
    match = re.search(r"\bport=(\d+)", text)
    if match:
        return match[1]
    address = _ADDRESS.search(text)
    return address[2] if address else None
