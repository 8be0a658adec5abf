"""What a burst of new connections meets when the listen queue is shorter than it: resets, or seconds of waiting.

On Linux the length of the queue bounds two: connections whose handshake is done and that nobody has accepted, and
handshakes in progress. A SYN that finds the first full is dropped, and the client sends it again after 1 s, then 2 s
later. A client that finds the second full is answered with a cookie (`tcp_syncookies`): the client believes itself
connected and sends its request, and the server, which has kept nothing, drops that till there is room; it is sent
again at growing intervals. Where neither was full at first the last packet of the handshake may find no room: it is
dropped too, or answered with a reset if `tcp_abort_on_overflow` is set. `ListenOverflows` counts all of these. Other
systems reset at once.

`patience_s` is how long a burst may take: a SYN is sent at 0, 1, 3 and 7 s, and some come in with the last.
A link (`rtt_ms`) or settings of TCP (`ipv4`) need a network namespace, and are refused without the right to make it.
"""

import re
import selectors
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from velodrome.guest import catalog
from velodrome.model.claim import Fact, Setting
from velodrome.model.errors import BadOptionError
from velodrome.model.load import Link
from velodrome.run.environments.environment import Environment
from velodrome.run.experiments.experiment import Kind, Outcome
from velodrome.run.experiments.programs import VERSIONS, Served, environment_of, serve
from velodrome.run.lab import Lab
from velodrome.run.link import SETTINGS, Loopback, Site, between, enter
from velodrome.run.machine import netlink
from velodrome.run.measuring import kernel

PIECE = 65_536
LATE_S = 0.9
"""An answer that took this long had something tried again: the first SYN is repeated after 1 s (RFC 6298)."""


@dataclass
class Knock:
    """One connection of a burst."""

    outcome: str = "silent"
    """`answered`, `reset`, `refused`, or `silent`: no end within the patience."""
    connected_s: float | None = None
    """Till the handshake was done, seconds from the beginning of the burst."""
    ended_s: float | None = None
    unsent: bytes | memoryview = b""
    """What is left of its request."""

    @property
    def late(self) -> bool:
        """Whether it had to try again before it was answered, or was not."""
        return self.outcome != "answered" or self.ended_s is None or self.ended_s >= LATE_S


def burst(address: tuple[str, int], count: int, request: bytes, patience_s: float) -> Sequence[Knock]:
    """Connect `count` times at once, send `request` on each, read to the end of each connection."""
    began = time.monotonic()
    knocks = [Knock() for _ in range(count)]
    with ExitStack() as opened, selectors.DefaultSelector() as selector:
        for knock in knocks:
            connecting = opened.enter_context(
                socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
            )
            connecting.setblocking(False)
            connecting.connect_ex(address)
            selector.register(connecting, selectors.EVENT_WRITE, knock)
        while selector.get_map() and (left := began + patience_s - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                if _step(connection, key.data, request, time.monotonic() - began):
                    selector.unregister(connection)
                    connection.close()  # a server may wait for that before it takes the next connection in
                else:
                    sending = selectors.EVENT_WRITE if key.data.unsent else 0
                    selector.modify(connection, selectors.EVENT_READ | sending, key.data)
    return knocks


def _step(connection: socket.socket, knock: Knock, request: bytes, now_s: float) -> bool:
    """Go on with a connection that is ready; return whether it has ended."""
    try:
        if knock.connected_s is None:
            if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                knock.outcome, knock.ended_s = "refused", now_s
                return True
            knock.connected_s, knock.unsent = now_s, memoryview(request)
        if knock.unsent:
            with suppress(BlockingIOError):  # a large request takes more than the send buffer holds
                knock.unsent = knock.unsent[connection.send(knock.unsent) :]
        if connection.recv(PIECE):
            knock.outcome = "answered"
            return False
    except BlockingIOError:
        return False
    except ConnectionError:
        knock.outcome = "reset"
    knock.ended_s = now_s
    return True


REQUEST = b"GET / HTTP/1.1\r\nHost: velodrome\r\nConnection: close\r\n\r\n"
SHOWN = ("tcp_abort_on_overflow", "tcp_syncookies")
"""Settings of net.ipv4 that decide; reported with the facts."""
COUNTED = {
    "overflows": ("ListenOverflows", "server"),
    "drops": ("ListenDrops", "server"),
    "resets_in_handshake": ("EmbryonicRsts", "server"),
    "cookies": ("SyncookiesSent", "server"),
    "syns_again": ("TCPSynRetrans", "client"),
}
"""What the kernel counts: name of the fact, name of the counter, and whose end of a link it is read at."""


@dataclass(frozen=True)
class Tried:
    """What bursts on one length of the queue came to."""

    knocks: Sequence[Knock]
    counted: Mapping[str, int | None]
    limit: int | None
    """Of the queue, as the kernel has it; it holds one connection more."""


def run(settings: Mapping[str, Setting], lab: Lab) -> Outcome:
    """Try every length of the queue."""
    rtt_ms = float(settings["rtt_ms"])  # type: ignore[arg-type]
    backlogs, ipv4 = _texts(settings["backlogs"]), _texts(settings["ipv4"])
    made = environment_of(str(settings["stack"]), settings, lab)
    facts: dict[str, Fact] = {}
    parts = []
    with between(Link(rtt_ms=rtt_ms) if rtt_ms or ipv4 else None, cpus=lab.cpus) as site:
        with enter(site.server):
            for line in ipv4:
                _set(line)
            facts |= {name: _present(name) for name in SHOWN}
        for backlog in backlogs:
            tried = _try_backlog(_length(backlog), settings, made, site, lab)
            facts |= _facts(backlog, tried)
            parts.append(f"queue {backlog}: {_sentence(facts, backlog, float(settings['patience_s']))}")  # type: ignore[arg-type]
    sentence = f"{settings['bursts']} bursts of {settings['burst']} connections; {'; '.join(parts)}."
    return Outcome(facts, sentence)


def _texts(value: Setting) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def _length(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise BadOptionError("backlogs", text, 'write lengths of the queue, such as ["5", "1000"]')
    return int(text)


def _set(line: str) -> None:
    """Set a value of net.ipv4 in the present namespace, which is ours. Raises BadOptionError."""
    name, equals, value = line.partition("=")
    if not equals or not re.fullmatch("tcp_[a-z0-9_]+", name):
        raise BadOptionError("ipv4", line, 'write settings of TCP as ["tcp_abort_on_overflow=1"]')
    try:
        (SETTINGS / "ipv4" / name).write_text(value)
    except OSError as error:
        raise BadOptionError("ipv4", line, f"this kernel does not take it ({error.strerror})") from error


def _present(name: str) -> Fact:
    try:
        return float((SETTINGS / "ipv4" / name).read_text())
    except (OSError, ValueError):
        return None


def _try_backlog(
    backlog: int, settings: Mapping[str, Setting], made: Environment, site: Site | Loopback, lab: Lab
) -> Tried:
    served = Served(str(settings["stack"]), catalog.recipe("hello"), made, knobs={"backlog": backlog})
    many, times = int(settings["burst"]), int(settings["bursts"])  # type: ignore[arg-type]
    patience_s = float(settings["patience_s"])  # type: ignore[arg-type]
    knocks: list[Knock] = []
    with serve(served, lab, site) as server:
        address = server.serving.host, server.serving.port
        before = _counters(site)
        for _ in range(times):
            with enter(site.client):
                knocks += burst(address, many, REQUEST, patience_s)
        after = _counters(site)
        with enter(site.server):
            listeners = netlink.listening(server.serving.port)
    counted = {name: None if was is None else (after[name] or 0) - was for name, was in before.items()}
    return Tried(knocks, counted, listeners[0].send if listeners else None)


def _counters(site: Site | Loopback) -> dict[str, int | None]:
    found = {}
    for end, namespace in (("server", site.server), ("client", site.client)):
        with enter(namespace):
            found[end] = kernel.tcp_counters()
    return {name: found[end].get(counter) for name, (counter, end) in COUNTED.items()}


def _facts(backlog: str, tried: Tried) -> dict[str, Fact]:
    ended = [knock.ended_s for knock in tried.knocks if knock.ended_s is not None]
    counts = {
        **{
            outcome: sum(knock.outcome == outcome for knock in tried.knocks)
            for outcome in ("answered", "reset", "refused", "silent")
        },
        "late": sum(knock.late for knock in tried.knocks),
        "queue_limit": tried.limit,
        **tried.counted,
    }
    facts: dict[str, Fact] = {
        f"{name}.{backlog}": None if value is None else float(value) for name, value in counts.items()
    }
    facts[f"slowest_ms.{backlog}"] = max(ended) * 1000 if ended else None
    return facts


def _sentence(facts: Mapping[str, Fact], backlog: str, patience_s: float) -> str:
    def of(name: str) -> str:
        value = facts[f"{name}.{backlog}"]
        return "?" if value is None else f"{value:g}"

    resets = (facts[f"reset.{backlog}"] or 0) + (facts[f"refused.{backlog}"] or 0)  # type: ignore[operator]
    return (
        f"{resets:g} reset, {of('late')} a second late or more, {of('silent')} of them not answered within "
        f"{patience_s:g} s (the queue overflowed {of('overflows')} times, {of('cookies')} cookies were sent, "
        f"{of('syns_again')} SYNs sent again)"
    )


experiment = Kind(
    "backlog",
    "what does a burst of connections meet when the listen queue is shorter?",
    run,
    {
        **VERSIONS,
        "stack": "published-socketserver",
        "backlogs": ("5", "1000"),
        "burst": 100,
        "bursts": 2,
        "patience_s": 12.0,
        "rtt_ms": 0.0,
        "ipv4": (),
    },
    deadline_s=150.0,
)
