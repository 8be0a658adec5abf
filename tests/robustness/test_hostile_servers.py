"""Servers that mean harm, loaded by `velodrome load` with 1 GB of memory: it always ends, with a documented code.

No traceback, no text that a terminal obeys, memory bounded; and Ctrl-C ends it within 2 s, wherever it is.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from tests.robustness.hostile_server import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    ESCAPES,
    GOAWAY,
    GREETING,
    GRPC_HEAD,
    HEAD,
    HEADERS,
    HPACK_BOMB,
    OK_HEAD,
    PING,
    PRIORITY,
    RESET,
    SETTINGS,
    WINDOW,
    Talk,
    again,
    failure,
    field,
    files,
    forever,
    frame,
    on_request,
    once,
    read_request,
    reflecting,
    resetting,
    serving,
    slowly,
    stay,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory and its limit are Linux'")

ADDRESS_SPACE = 1 << 30
MOST_MB = 400
"""Resident, of a load whose server tries to make it keep 1 GB and more."""
LONGEST_S = 30.0
"""Far more than all time-outs together, on a machine where others work too."""
CTRL_C_S = 2.0
"""Of what is the load's own: where others work on the same CPUs, it waits for one as well."""
AT_ONCE = 4
PROGRAM = (
    "import resource, signal\n"
    f"resource.setrlimit(resource.RLIMIT_AS, ({ADDRESS_SPACE}, {ADDRESS_SPACE}))\n"
    # What is started in the background has SIGINT ignored, and hands that on.
    "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from velodrome.cli.main import main; main()"
)
SHORT = ("-n", "4", "-c", "2", "--timeout", "400ms", "--drain", "100ms")
PATIENT = ("-n", "4", "-c", "2", "--timeout", "9s")
LONG = ("-z", "60s", "-c", "2", "--timeout", "40s", "--drain", "30s")
UPGRADE = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"


@dataclass(frozen=True)
class Case:
    """A hostile server, and how it is loaded."""

    talk: Talk
    scheme: str = "http"
    options: Sequence[str] = ()
    says: str = "timeout"
    """Words of the reason, or of several with a | between: what ended it is what was meant to."""
    code: int = 1
    """Nothing is right; 2: refused before the first request; 0: it is right all the same."""
    quick: bool = False
    waits: bool = True
    """A load of a minute is under way after a moment: else the command has ended by itself, as it should."""


def _upgraded(after: bytes, before: bytes = b"") -> Talk:
    """Accept a WebSocket by its rules, and then keep none."""

    def talk(connection: socket.socket) -> None:
        import base64  # noqa: PLC0415 - of this server alone
        import hashlib  # noqa: PLC0415

        lines = read_request(connection).split(b"\r\n")
        key = next(line[19:] for line in lines if line.lower().startswith(b"sec-websocket-key: "))
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        connection.sendall(UPGRADE + b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n" + before)
        while True:
            connection.sendall(after)

    return talk


def _h2(kind: int, flags: int, stream: int, payload: bytes = b"", head: bytes = b"") -> Talk:
    """Say a frame without an end, on the first request, whose answer may have begun."""
    return on_request(head, frame(kind, flags, stream, payload))


BEGUN = frame(HEADERS, END_HEADERS, 1, OK_HEAD)
GRPC_BEGUN = frame(HEADERS, END_HEADERS, 1, GRPC_HEAD)


HTTP2 = ("--http2",)
CHAT = ("--message", "hello")


@cache
def _tiny_files() -> bytes:
    return files(*(field(1, b"%d" % number) for number in range(400_000)))


@cache
def _empty_messages() -> bytes:
    return files(field(1, b"x.proto") + b"\x22\x00" * (7 << 20))


def _described_by(made: Callable[[], bytes]) -> Talk:
    """Describe calls with what is made once, before the load."""

    def talk(connection: socket.socket) -> None:
        reflecting(made())(connection)

    return talk


CASES = {
    # HTTP/1.1
    "a header without an end": Case(forever(HEAD + b"X: ", b"a"), quick=True, says="longer than 65536 bytes"),
    "headers without an end": Case(forever(HEAD, b"X-A: b\r\n"), says="more than 100 header lines"),
    "a body in chunks without an end": Case(
        forever(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"5\r\nhello\r\n"), quick=True
    ),
    "a chunk of all there is": Case(
        forever(HEAD + b"Transfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n", b"x")
    ),
    "a chunk's extension without an end": Case(
        forever(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", b"a=b;"), says="are longer than 65536"
    ),
    "1 GB announced and never sent": Case(once(HEAD + b"Content-Length: 1000000000\r\n\r\nx"), quick=True),
    "1 TB announced and sent": Case(forever(HEAD + b"Content-Length: 1000000000000\r\n\r\n", b"x")),
    "a body without an end": Case(forever(HEAD + b"\r\n", b"x")),
    "a length beyond all": Case(again(HEAD + b"Content-Length: 99999999999999999999\r\n\r\n"), says="not a"),
    "100 Continue without an end": Case(forever(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), quick=True),
    "a redirect to itself": Case(
        again(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"), says="status 302"
    ),
    "cookies without number": Case(
        again(
            HEAD
            + b"".join(b"Set-Cookie: c%d=%s\r\n" % (n, b"v" * 100) for n in range(90))
            + b"Content-Length: 0\r\n\r\n"
        ),
        options=("--cookies",),
        code=0,
        says="all answered right",
    ),
    "large cookies in each answer": Case(
        again(HEAD + b"Set-Cookie: a=" + b"v" * 60_000 + b"\r\nContent-Length: 0\r\n\r\n"),
        options=("--cookies",),
        code=0,
        says="all answered right",
    ),
    "a byte a second": Case(slowly(HEAD + b"Content-Length: 5\r\n\r\nhello", 1.0)),
    "a reset in the middle": Case(
        resetting(HEAD + b"Content-Length: 500\r\n\r\nhello"), quick=True, says="amid the answer"
    ),
    "no answer": Case(stay, quick=True),
    "bytes that mean nothing": Case(forever(b"", bytes(range(256))), says="not HTTP/1"),
    "answers nobody asked for": Case(
        forever(b"", HEAD + b"Content-Length: 2\r\n\r\nok"),
        says="more than the answer",
    ),
    "a status line that a terminal obeys": Case(
        again(b"HTTP/1.1 \x1b]0;OWNED\x07 \x9b2J\r\n\r\n"), says="x1b]0;OWNED"
    ),
    # TLS
    "TLS garbage": Case(once(b"\x16\x03\x03\xff\xff" + b"\xff" * 70_000), "https", says="does not speak TLS"),
    "plain text in place of TLS": Case(once(HEAD + b"\r\n"), "https", says="does not speak TLS"),
    "a handshake that stalls": Case(stay, "https", quick=True),
    "a handshake of a byte a second": Case(slowly(b"\x16\x03\x03\x40\x00\x02" + b"\0" * 500, 1.0), "https"),
    "TLS alerts without an end": Case(
        forever(b"", b"\x15\x03\x03\x00\x02\x01\x00"), "https", says="TooManyWarningAlerts"
    ),
    # HTTP/2
    "SETTINGS without an end": Case(
        forever(GREETING, GREETING),
        options=HTTP2,
        quick=True,
        says="refused the request twice|floods|timeout",
    ),
    "large SETTINGS without an end": Case(
        _h2(SETTINGS, 0, 0, b"\x00\x03\x00\x00\x00\x01" * 2_000), options=HTTP2, says="floods|timeout"
    ),
    "PING without an end": Case(_h2(PING, 0, 0, b"12345678"), options=HTTP2, says="floods"),
    "CONTINUATION without an end": Case(
        on_request(frame(HEADERS, 0, 1, OK_HEAD), frame(CONTINUATION, 0, 1, b"\x00\x01a\x01b" * 1_000)),
        options=HTTP2,
        quick=True,
        says="header block is longer",
    ),
    "empty CONTINUATION without an end": Case(
        on_request(frame(HEADERS, 0, 1, OK_HEAD), frame(CONTINUATION, 0, 1)), options=HTTP2, says="floods"
    ),
    "an HPACK bomb": Case(
        on_request(frame(HEADERS, END_HEADERS, 1, OK_HEAD + HPACK_BOMB)),
        options=HTTP2,
        quick=True,
        says="when unpacked",
    ),
    "empty DATA without an end": Case(_h2(DATA, 0, 1, head=BEGUN), options=HTTP2, says="floods"),
    "DATA beyond the window": Case(_h2(DATA, 0, 1, b"x" * 16_384, BEGUN), options=HTTP2),
    "PRIORITY without an end": Case(_h2(PRIORITY, 0, 3, b"\0\0\0\0\x10"), options=HTTP2, says="floods"),
    "resets without an end": Case(_h2(RESET, 0, 1, b"\0\0\0\x08"), options=HTTP2, says="reset the stream"),
    "windows beyond all": Case(
        _h2(WINDOW, 0, 0, b"\x7f\xff\xff\xff"), options=HTTP2, says="made a window larger"
    ),
    "a frame of 16 MB": Case(
        on_request(b"\xff\xff\xff\0\0\0\0\0\1" + b"x" * 70_000),
        options=HTTP2,
        says="DATA frame of 16777215 bytes",
    ),
    "GOAWAY that a terminal obeys": Case(
        on_request(frame(GOAWAY, 0, 0, b"\0\0\0\0\0\0\0\x0b" + ESCAPES.encode())),
        options=HTTP2,
        says="refused the request twice",
    ),
    "headers of a stream nobody opened": Case(
        _h2(HEADERS, END_HEADERS | END_STREAM, 8_191, OK_HEAD), options=HTTP2, says="never begun"
    ),
    # WebSockets
    "a frame of 2^63 bytes": Case(
        _upgraded(b"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"), "ws", CHAT, quick=True, says="larger than"
    ),
    "a message without an end": Case(
        _upgraded(b"\x00\x02ab" * 10_000, b"\x02\x02ab"), "ws", CHAT, says="larger than|timeout"
    ),
    "pings without an end": Case(_upgraded(b"\x89\x04ping" * 10_000), "ws", CHAT, quick=True, says="floods"),
    "a handshake without an end": Case(
        forever(UPGRADE, b"X: y\r\n"), "ws", CHAT, says="longer than 65536 bytes"
    ),
    "a farewell that a terminal obeys": Case(
        _upgraded(b"\x88%c\x03\xe8%s" % (len(ESCAPES.encode()) + 2, ESCAPES.encode())),
        "ws",
        CHAT,
        says="x1b]0;OWNED",
    ),
    # gRPC reflection, before the first call
    "400 000 files": Case(
        _described_by(_tiny_files),
        "grpc",
        code=2,
        quick=True,
        waits=False,
        says="parts",
    ),
    "7 million empty messages": Case(
        _described_by(_empty_messages),
        "grpc",
        code=2,
        quick=True,
        waits=False,
        says="parts",
    ),
    "a description without an end": Case(
        on_request(GRPC_BEGUN, frame(DATA, 0, 1, b"\0\0\xf0\0\0" + b"x" * 16_000)),
        "grpc",
        code=2,
        waits=False,
        says="parts",
    ),
    "files that each need another": Case(
        reflecting(*(files(field(1, b"f%d" % n) + field(3, b"f%d" % (n + 1))) for n in range(300))),
        "grpc",
        code=2,
        waits=False,
        says="deep",
    ),
    "an error that a terminal obeys": Case(
        reflecting(failure(13, ESCAPES)), "grpc", code=2, quick=True, waits=False, says="u{1b}]0;OWNED"
    ),
    "a file name that a terminal obeys": Case(
        reflecting(files(field(1, b"a.proto") + field(3, ESCAPES.encode())), failure(5, "")),
        "grpc",
        code=2,
        waits=False,
        says="u{1b}]0;OWNED",
    ),
    "no description": Case(stay, "grpc", code=2, quick=True, says="in time"),
    "a description of a byte a second": Case(
        slowly(GREETING + GRPC_BEGUN * 20, 1.0), "grpc", code=2, says="in time"
    ),
    "a description over TLS that stalls": Case(stay, "grpcs", code=2, says="in time"),
    "a description over TLS of a byte a second": Case(
        slowly(b"\x16\x03\x03\x40\x00\x02" + b"\0" * 500, 1.0), "grpcs", code=2, says="in time"
    ),
    "PING in place of a description": Case(
        on_request(GRPC_BEGUN, frame(PING, 0, 0, b"12345678")), "grpc", code=2, waits=False, says="floods"
    ),
}
QUICK = {name: case for name, case in CASES.items() if case.quick}
STALLING = (
    "1 GB announced and never sent",
    "no answer",
    "a handshake that stalls",
    "SETTINGS without an end",
    "a frame of 2^63 bytes",
    "no description",
)
"""Where Ctrl-C is pressed in the quick half, and not only there."""


@dataclass(frozen=True)
class Ended:
    """How a load came to its end."""

    name: str
    code: int
    took_s: float
    waited_s: float
    """Of it, for a CPU."""
    mb: float
    """Resident at most."""
    output: str

    def figures(self) -> str:
        took = f"{self.took_s:5.2f} s ({self.waited_s:.2f} s for a CPU)"
        return f"{self.name:45} exit {self.code:3} after {took}, {self.mb:4.0f} MB"


class Load:
    """A `velodrome load` that runs, with little memory."""

    def __init__(self, name: str, words: Sequence[str], before: Sequence[str] = ()) -> None:
        command = [*before, sys.executable, "-c", PROGRAM, "load", *words]
        self.name, self.mb, self.waited_s = name, 0.0, 0.0
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.began = time.monotonic()
        self._parts: list[bytes] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as out:
            self._parts.append(out.read())

    def end(self, within_s: float) -> Ended:
        """Wait for its end, looking at its memory; kill it where that does not come. What it took is from now on."""
        began = time.monotonic()
        self._look()
        waited = self.waited_s
        while self.process.poll() is None:
            if time.monotonic() - began > within_s:
                self.process.kill()
                self.process.wait()
                pytest.fail(f"{self.name}: no end within {within_s:g} s")
            self._look()
            time.sleep(0.01)
        took = time.monotonic() - began
        self._reader.join()
        output = b"".join(self._parts).decode(errors="surrogateescape")
        return Ended(self.name, self.process.returncode, took, self.waited_s - waited, self.mb, output)

    def _look(self) -> None:
        of = Path(f"/proc/{self.process.pid}")
        try:
            lines = (of / "status").read_text().splitlines()
            waits = [int((task / "schedstat").read_text().split()[1]) for task in (of / "task").iterdir()]
        except (OSError, IndexError):  # it has ended meanwhile
            return
        peak = next((line.split()[1] for line in lines if line.startswith("VmHWM:")), "0")
        self.mb = max(self.mb, int(peak) / 1024)
        # Of threads that end their counts go: what was seen of all stays.
        self.waited_s = max(self.waited_s, sum(waits) / 1e9)


def _words(name: str, case: Case, port: int, how: Sequence[str], transport: str) -> list[str]:
    path = "a.B/C" if case.scheme.startswith("grpc") else ""
    url = f"{case.scheme}://127.0.0.1:{port}/{path}"
    insecure = ("--insecure",) if case.scheme in ("https", "grpcs") else ()
    return [url, *how, *case.options, *insecure, "--transport", transport]


def _harmless(ended: Ended) -> None:
    for sign in ("Traceback", "panicked", "memory allocation"):
        assert sign not in ended.output, f"{ended.name}: {ended.output[-2000:]}"
    shown = ended.output.replace("\n", "")
    obeyed = [letter for letter in shown if not letter.isprintable()]
    assert not obeyed, f"{ended.name}: {obeyed[:10]!r} in {ended.output[-2000:]!r}"
    assert len(ended.output) < 50_000, ended.name
    assert ended.mb < MOST_MB, ended.figures()


def _to_its_end(name: str, transport: str = "auto") -> Ended:
    case = CASES[name]
    with serving(case.talk) as peer:
        # What is to be read to its end and refused has the time for it.
        how = SHORT if case.waits else PATIENT
        ended = Load(name, _words(name, case, peer.port, how, transport)).end(LONGEST_S)
    _harmless(ended)
    assert ended.code == case.code, f"{ended.figures()}: {ended.output[-2000:]}"
    output = " ".join(ended.output.split())
    assert any(words in output for words in case.says.split("|")), f"{ended.figures()}: {output[-2000:]}"
    return ended


def _interrupted(name: str, transport: str = "auto") -> Ended:
    """Press Ctrl-C a moment after the first connection."""
    case = CASES[name]
    with serving(case.talk) as peer:
        load = Load(name, _words(name, case, peer.port, LONG, transport))
        assert peer.connected.wait(LONGEST_S), name
        return _after_ctrl_c(load)


def _after_ctrl_c(load: Load, moment_s: float = 0.5) -> Ended:
    deadline = time.monotonic() + moment_s
    while time.monotonic() < deadline:
        assert load.process.poll() is None, f"{load.name} ended by itself: {load.end(1).output[-2000:]}"
        time.sleep(0.01)
    load.process.send_signal(signal.SIGINT)
    ended = load.end(LONGEST_S)
    assert ended.code == 130, f"{ended.figures()}: {ended.output[-2000:]}"
    assert ended.took_s - ended.waited_s <= CTRL_C_S, ended.figures()
    _harmless(ended)
    return ended


def _all(what: Callable[[str], Ended], names: Sequence[str]) -> None:
    _tiny_files(), _empty_messages()  # before anything waits for them
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(what, names))
    print(*(ended.figures() for ended in found), sep="\n")
    slowest, largest = max(found, key=lambda ended: ended.took_s), max(found, key=lambda ended: ended.mb)
    print(f"{len(found)} servers; slowest {slowest.took_s:.2f} s ({slowest.name}), ", end="")
    print(f"largest {largest.mb:.0f} MB ({largest.name})")


def test_hostile_servers_end_no_load_but_by_its_rules() -> None:
    _all(_to_its_end, list(QUICK))


def test_ctrl_c_ends_a_load_of_a_hostile_server_within_two_seconds() -> None:
    _all(_interrupted, STALLING)


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.parametrize("transport", ["epoll", "io_uring"])
def test_every_hostile_server_ends_no_load_but_by_its_rules(transport: str) -> None:
    _all(lambda name: _to_its_end(name, transport), list(CASES))


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.parametrize("transport", ["epoll", "io_uring"])
def test_ctrl_c_ends_a_load_of_every_hostile_server_within_two_seconds(transport: str) -> None:
    _all(lambda name: _interrupted(name, transport), [name for name, case in CASES.items() if case.waits])


@pytest.mark.parametrize("scheme", ["http", "grpc", "ws"])
def test_ctrl_c_ends_a_load_of_a_full_unix_socket(scheme: str, tmp_path: Path) -> None:
    place = str(tmp_path / "full.sock")
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(place)
        listener.listen(0)
        while True:  # until its queue is full
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.setblocking(False)
            try:
                client.connect(place)
            except BlockingIOError:
                break
        chat = CHAT if scheme == "ws" else ()
        load = Load(f"a full unix socket, {scheme}", [f"{scheme}://x/a.B/C", "--unix", place, *LONG, *chat])
        print(_after_ctrl_c(load, 1.0).figures())


def test_ctrl_c_ends_the_wait_for_the_last_answers() -> None:
    with serving(stay) as peer:
        words = ("-z", "200ms", "-c", "2", "--timeout", "50s", "--drain", "50s")
        load = Load("the drain", [f"http://127.0.0.1:{peer.port}/", *words])
        print(_after_ctrl_c(load, 1.0).figures())


def _name_server(stack: ExitStack, tmp_path: Path) -> tuple[list[str], socket.socket]:
    """Return what a command runs in where no name server answers, and the socket that hears its questions."""
    if os.geteuid():
        pytest.skip("root may give a process a name server of its own")
    listener = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    address = f"127.{os.getpid() % 200 + 20}.0.53"
    try:
        listener.bind((address, 53))
    except OSError as error:
        pytest.skip(f"no name server can be played here: {error}")
    settings = tmp_path / "resolv.conf"
    settings.write_text(f"nameserver {address}\noptions timeout:30 attempts:5\n")
    script = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
    inside = ["unshare", "--mount", "sh", "-c", script, str(settings)]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespace of mounts can be made here")
    return inside, listener


@pytest.mark.parametrize(("scheme", "more"), [("http", ()), ("grpc", ()), ("http", ("--idle", "2"))])
def test_ctrl_c_ends_a_load_whose_name_server_is_silent(
    scheme: str, more: Sequence[str], tmp_path: Path
) -> None:
    with ExitStack() as stack:
        inside, listener = _name_server(stack, tmp_path)
        words = [f"{scheme}://silent.test/a.B/C", *LONG, "--allow-target", "silent.test", *more]
        load = Load(f"a silent name server, {scheme} {' '.join(more)}", words, inside)
        listener.settimeout(LONGEST_S)
        listener.recv(4096)
        print(_after_ctrl_c(load).figures())


@pytest.mark.exhaustive
def test_a_silent_name_server_is_given_up(tmp_path: Path) -> None:
    with ExitStack() as stack:
        inside, _ = _name_server(stack, tmp_path)
        words = ["http://silent.test/", *SHORT, "--allow-target", "silent.test"]
        ended = Load("a silent name server", words, inside).end(LONGEST_S)
        print(ended.figures())
        assert ended.code == 2
        assert "silent.test" in ended.output
        assert ended.took_s - ended.waited_s < 13
