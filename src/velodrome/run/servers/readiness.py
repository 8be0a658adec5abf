"""A server is ready when it has given a right answer, whole; not when its port opens."""

import http.client
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from velodrome.model.measurement import FailureKind
from velodrome.run import answer_check
from velodrome.run.answer_check import UNFINISHED, Partly, Wrong
from velodrome.run.drivers.driver import Target
from velodrome.run.supervision.ward import Exit

PAUSE_S = 0.01
"""Between two tries: boot times are told to about this."""
PATIENCE_S = 2.0
"""For one try, on top of what the recipe takes; doubled each time, for servers whose first answer is slow."""
GRACE_S = 1.0
"""An answer must stay wrong this long to count: a master may answer before its workers are up."""
SHOWN_BYTES = 200
EXTRA_BYTES = 65_536
"""Read of an answer beyond its right length; an endless one is wrong long before."""


@dataclass(frozen=True)
class Ready:
    """The server answers rightly; `boot_s` from its start to the end of its first right answer."""

    boot_s: float
    wrong: str = ""
    """What of a mix it answers wrongly, although enough is right; empty: nothing."""


@dataclass(frozen=True)
class NotReady:
    """It does not, and why."""

    failure: FailureKind
    reason: str


def await_right_answer(
    target: Target,
    exited: Callable[[], Exit | None],
    started: float,
    deadline_s: float,
    answer_s: float = 0.0,
) -> Ready | NotReady:
    """Ask until a right answer comes, the server has died, keeps answering wrongly, or time is up.

    `started` is on the clock of `time.monotonic`; `deadline_s` counts from then; `answer_s` is how long the
    recipe takes at least.
    """
    until = started + deadline_s
    patience = PATIENCE_S + answer_s
    first_wrong = 0.0
    last = ""
    while True:
        now = time.monotonic()
        answer = _ask(target, max(0.05, min(patience, until - now)))
        if answer is None or isinstance(answer, Partly):
            return Ready(time.monotonic() - started, answer.what if answer else "")
        if (died := exited()) is not None:
            return NotReady(FailureKind.START, f"its process ended before it answered: {died.sentence}")
        if isinstance(answer, Wrong):
            first_wrong = first_wrong or time.monotonic()
            if time.monotonic() - first_wrong > GRACE_S:
                return NotReady(FailureKind.WRONG_ANSWER, answer.what)
        else:
            last, first_wrong = answer, 0.0
            if time.monotonic() - now >= patience:
                patience *= 2
        if time.monotonic() >= until:
            if isinstance(answer, Wrong):
                return NotReady(FailureKind.WRONG_ANSWER, answer.what)
            return NotReady(FailureKind.NEVER_ANSWERED, f"no answer within {deadline_s:g} s: {last}")
        time.sleep(PAUSE_S)


def _ask(target: Target, timeout_s: float) -> str | Wrong | Partly | None:
    """Ask once on a fresh connection: None for a right answer, a wrong one, or why there is none."""
    if target.call is not None:
        return answer_check.ask_grpc(target, target.call, timeout_s)
    if target.chat is not None:
        return answer_check.ask_chat(target, target.chat, timeout_s)
    if target.mix:
        return answer_check.ask_mix(target, timeout_s)
    return _ask_http(target, timeout_s)


def _ask_http(target: Target, timeout_s: float) -> str | Wrong | None:
    parts = urlsplit(target.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=timeout_s)
    # A socket's own timeout begins anew with each byte: a server that trickles would hold us for ever.
    late = threading.Event()
    alarm = threading.Timer(timeout_s, _cut, (connection, late))
    alarm.daemon = True
    try:
        connection.connect()
        alarm.start()
        headers = {"Connection": "close", **dict(target.headers)}
        connection.request(target.method, target.path, target.body or None, headers)
        judged = _judge(target, connection.getresponse())
        return UNFINISHED if late.is_set() else judged  # what was cut looks like a short answer
    except (http.client.HTTPException, OSError) as error:
        return _why(error, late.is_set())
    finally:
        alarm.cancel()
        connection.close()


def _cut(connection: http.client.HTTPConnection, late: threading.Event) -> None:
    late.set()
    with suppress(OSError, AttributeError):  # it may be closed or closing
        connection.sock.shutdown(socket.SHUT_RDWR)


def _why(error: Exception, late: bool) -> str | Wrong:
    if late or isinstance(error, TimeoutError):
        return UNFINISHED
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens on its port"
    if isinstance(error, http.client.RemoteDisconnected):
        return "it closes the connection without an answer"
    if isinstance(error, http.client.IncompleteRead):
        return Wrong(f"its answer breaks off after {len(error.partial)} bytes")
    if isinstance(error, http.client.HTTPException):
        return Wrong(f"what it answers is not HTTP: {_shown(str(error).encode())}")
    return f"the connection breaks ({error})"


def _judge(target: Target, response: http.client.HTTPResponse) -> Wrong | None:
    wanted = target.expect_body
    most = EXTRA_BYTES + (len(wanted) if wanted is not None else 0)
    body = response.read(most)
    if response.length and len(body) < most:
        return Wrong(f"its answer breaks off after {len(body)} of {len(body) + response.length} bytes")
    status = response.status
    right = 200 <= status < 300 if target.expect_status is None else status == target.expect_status
    if not right:
        asked = "2xx" if target.expect_status is None else str(target.expect_status)
        place = response.getheader("Location", "").encode() if 300 <= status < 400 else b""
        leads = f", and leads to {_shown(place)}" if place else ""
        return Wrong(f"it answers {_told(target)}status {status}, not {asked}{leads}: {_shown(body)}")
    if wanted is None or body == wanted:
        return None
    if len(body) != len(wanted):
        return Wrong(f"it answers {len(body)} bytes, not {len(wanted)}: {_shown(body)}")
    at = next(index for index, pair in enumerate(zip(body, wanted, strict=True)) if pair[0] != pair[1])
    return Wrong(f"its answer differs from byte {at} on: {_shown(body[at:])}")


def _told(target: Target) -> str:
    """Return what was asked, where that is not what every server is asked."""
    return "" if (target.method, target.path) == ("GET", "/") else f"{target.method} {target.path} with "


def _shown(data: bytes) -> str:
    """Return the first bytes as printable ASCII; reports still escape it for their own format."""
    text = data[:SHOWN_BYTES].decode("ascii", "backslashreplace")
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
    return f"«{shown}»" if len(data) <= SHOWN_BYTES else f"«{shown}…»"
