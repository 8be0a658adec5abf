"""How a load ends that does not run to its end in peace: the server is killed or hangs, or somebody presses Ctrl-C."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SERVER = Path(__file__).with_name("counting_server.py")
# What is started in the background has SIGINT ignored, and hands that on.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from velodrome.cli.main import main; main()"
)
SILENT = re.compile(r"The target gave no correct response after [12] s of 3 s, ")


class Server:
    """One in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.url = f"http://127.0.0.1:{self._line()}/"

    def _line(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def await_answers(self, count: int) -> None:
        while self._line() < count:
            pass

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def await_something_unread(self, deadline_s: float = 20.0) -> None:
        """Wait until a request has arrived that the server, which is stopped, has not read."""
        port = int(self.url.rsplit(":", 1)[1].rstrip("/"))
        until = time.monotonic() + deadline_s
        while not _unread(port):
            assert time.monotonic() < until
            time.sleep(0.005)


def _unread(port: int) -> bool:
    """Whether a connection of this port holds bytes that its owner has not read (see proc_net_tcp in the kernel)."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(
        row[1].endswith(f":{port:04X}") and row[3] == "01" and not row[4].endswith(":00000000")
        for row in rows
    )


@contextmanager
def server() -> Iterator[Server]:
    with subprocess.Popen([sys.executable, str(SERVER)], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Server(process)
        finally:
            process.kill()


def begin(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, "load", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def under_conditions(*words: str, end: int) -> tuple[int, dict[str, dict[str, object]], str]:
    """Let a server have `end` in the middle; return exit code, conditions by name and the sentence on the limit."""
    expressions = ("errors > 90%", "errors > 100000", "rate < 1/s", "p90 > 30s")
    given = [word for condition in expressions for word in ("--fail-if", condition)]
    with server() as target, begin(target.url, *words, *given, "--json") as load:
        target.await_answers(200)
        target.send(end)
        out, _ = load.communicate(timeout=30)
    document = json.loads(out)
    conditions = {condition["condition"]: condition for condition in document["conditions"]}
    return load.returncode, conditions, document["limit"]["sentence"]


def test_a_server_that_is_killed_fails_every_condition_though_few_requests_failed() -> None:
    code, conditions, sentence = under_conditions("-c", "4", "-z", "3s", end=signal.SIGKILL)
    assert code == 1
    assert SILENT.match(sentence)
    assert {name for name, condition in conditions.items() if condition["holds"]} == set(conditions)
    because = conditions["errors > 90%"]["because"]
    assert isinstance(because, list)
    assert because[0]["value"] < 0.9
    assert because[0]["but"].startswith("the target gave no correct response after ")


def test_so_does_one_that_hangs_and_of_which_no_request_failed() -> None:
    code, conditions, sentence = under_conditions("-c", "4", "-z", "3s", "--drain", "0s", end=signal.SIGSTOP)
    assert code == 1
    assert SILENT.match(sentence)
    assert conditions["errors > 100000"]["holds"] is True


def test_without_conditions_a_server_that_is_killed_is_reported() -> None:
    with server() as target, begin(target.url, "-R", "400", "-z", "3s") as load:
        target.await_answers(200)
        target.send(signal.SIGKILL)
        out, _ = load.communicate(timeout=30)
    assert load.returncode == 0
    assert SILENT.search(out)


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_first_interrupt_ends_a_load_and_what_was_measured_is_reported(form: str, tmp_path: Path) -> None:
    rows, log = tmp_path / "load.csv", tmp_path / "load.hlog"
    words = ["-R", "200", "-z", "60s", "--csv", str(rows), "--hdr", str(log)]
    with server() as target, begin(target.url, *words, *(["--json"] if form == "json" else [])) as load:
        # There is something to report from the first tick on, which is late where the machine is busy.
        target.await_answers(600)
        load.send_signal(signal.SIGINT)
        out, errors = load.communicate(timeout=30)
    assert load.returncode == 130, errors
    if form == "text":
        assert "Interrupted after" in out
        assert "from when due" in out
    else:
        document = json.loads(out)
        assert document["notes"][0].startswith("Interrupted after")
        assert document["ok"] >= 590
        assert 2.9 < document["duration_s"] < 30
    assert rows.read_text().startswith("at_s,")
    assert "Tag=due" in log.read_text()


def test_a_second_interrupt_ends_everything_at_once() -> None:
    with server() as target, begin(target.url, "-R", "200", "-z", "60s") as load:
        target.await_answers(200)
        # What is in flight is waited for after the first; before there is something, there is nothing to wait for.
        target.send(signal.SIGSTOP)
        target.await_something_unread()
        while load.poll() is None:
            load.send_signal(signal.SIGINT)
            try:
                load.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                continue
        out, errors = load.communicate(timeout=30)
    assert (load.returncode, out) == (130, "")
    assert errors.endswith("velodrome: interrupted\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_right_after_the_first_request_ends_a_load_as_later_ones_do(number: signal.Signals) -> None:
    with server() as target, begin(target.url, "-R", "200", "-z", "60s") as load:
        target.await_answers(1)
        load.send_signal(number)
        _, errors = load.communicate(timeout=30)
    assert load.returncode == 130, errors
