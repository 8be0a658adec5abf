"""INT, TERM, HUP, and one after the other, at each point of a command: it ends soon, in order, and takes all down.

Seconds are from the signal until nothing is measured any more (`--teardown` begins) and until the command has ended.
"""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from tests.waiting import eventually

VELODROME = (sys.executable, "-m", "velodrome")
TOKEN = "VELODROME_SIGNAL_TEST"
INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
STOPS_S = 2.0
"""From a signal until nothing is measured."""
ENDS_S = 6.0
"""And until the command has ended, where what the user has run at the end takes a moment."""
LEAVES_S = 15.0
APART_S = 0.15
"""Between a signal and the next, as of somebody who is impatient."""

PLAIN = """\
def app(environ, start_response):
    start_response("200 OK", [("Content-Length", "2"), ("Content-Type", "text/plain")])
    return [b"ok"]
"""
HANGS_WHEN_IMPORTED = "import pathlib, time\npathlib.Path('looked').touch()\ntime.sleep(60)\n" + PLAIN
NEVER_ANSWERS = """\
import pathlib, time
def app(environ, start_response):
    pathlib.Path('called').touch()
    time.sleep(60)
"""


def no_longer_ignored() -> None:
    """Undo what whoever started the tests ignores: a shell in the background, nohup."""
    for number in (INT, TERM, HUP):
        signal.signal(number, signal.SIG_DFL)


STARTED: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def none_outlives_its_test() -> Iterator[None]:
    """A command that a failed test left would hold the lock of the machine, and the tests after it would wait."""
    yield
    while STARTED:
        process = STARTED.pop()
        if process.poll() is None:
            process.kill()
            process.wait(20)


class Running:
    """A command in a process and a group of its own, in which every process that it starts can be recognised."""

    def __init__(self, where: Path, *words: str, ignoring: int = 0, env: Mapping[str, str]) -> None:
        self.where, self.token = where, secrets.token_hex(8)
        self.signalled = self.ended = 0.0

        def before() -> None:
            no_longer_ignored()
            if ignoring:
                signal.signal(ignoring, signal.SIG_IGN)

        self.process = subprocess.Popen(
            (*VELODROME, *words),
            cwd=where,
            env={**os.environ, TOKEN: self.token, **env},
            stdout=(where / "output").open("w"),
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=before,  # noqa: PLW1509 - no thread of ours holds a lock meanwhile
        )
        STARTED.append(self.process)

    def until(self, there: Callable[[], object]) -> None:
        limit = time.monotonic() + 60
        while not there():
            assert self.process.poll() is None, self.output
            assert time.monotonic() < limit, self.output
            time.sleep(0.01)

    def signal(self, *numbers: int) -> None:
        """Send signals, one after the other; Ctrl-C and a hang-up reach the whole group, as those of a terminal."""
        self.signalled = time.time()
        for number in numbers:
            if number == TERM:
                self.process.send_signal(number)
            else:
                os.killpg(self.process.pid, number)
            if number is not numbers[-1]:
                time.sleep(APART_S)

    def end(self) -> int:
        """Return the exit code, and how long it took is known."""
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.ended = time.time()
        return code

    @property
    def output(self) -> str:
        return (self.where / "output").read_text()

    def left(self) -> list[str]:
        """Return what still lives of it: wardens and our own by the token, servers by their home."""
        found = []
        for process in psutil.process_iter():
            try:
                env = process.environ()
                ours = env.get(TOKEN) == self.token or f"velodrome-{self.process.pid}-" in env.get("HOME", "")
                if ours and process.pid != self.process.pid and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(" ".join(process.cmdline()))
            except (psutil.Error, OSError):
                continue
        return found

    def children(self, sign: str) -> list[psutil.Process]:
        found = []
        for process in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if any(sign in word for word in process.cmdline()):
                    found.append(process)
            except psutil.Error:
                continue
        return found


def kept_in(cache: Path) -> dict[str, str]:
    return {"VELODROME_CACHE": str(cache)}


def assert_nothing_is_left(running: Running) -> None:
    assert eventually(lambda: not running.left(), LEAVES_S), running.left()
    assert not list(Path("/tmp").glob(f"velodrome-{running.process.pid}-*"))


@contextmanager
def index_that_never_answers() -> Iterator[dict[str, str]]:
    """Yield the variables by which uv turns to a package index that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/simple"
        yield {"UV_DEFAULT_INDEX": url, "UV_HTTP_TIMEOUT": "300"}


@dataclass(frozen=True)
class Point:
    """A point of a command, at which a signal comes."""

    name: str
    app: str
    words: Sequence[str]
    there: Callable[[Running], object]
    teardown: str = "touch torn"
    install: bool = False


COMPARE = ("compare", "plain:app", "--stack", "waitress", "--blocks", "1", "--wait", "--out", "out")
LONG = (*COMPARE, "-z", "60s")


def exists(name: str) -> Callable[[Running], object]:
    return lambda running: (running.where / name).exists()


def loaded(running: Running) -> object:
    """Whether the engine sends: the rehearsal is over once there are results to be written."""
    engines = running.children("engine_process") if (running.where / "out").exists() else []
    try:
        return [engine for engine in engines if engine.net_connections()]
    except psutil.Error:
        return []


POINTS = (
    Point("setup", PLAIN, (*LONG, "--setup", "touch began; sleep 60"), exists("began")),
    Point("look", HANGS_WHEN_IMPORTED, LONG, exists("looked")),
    Point("install", PLAIN, LONG, lambda running: running.children("uv"), install=True),
    Point("readiness", NEVER_ANSWERS, LONG, exists("called")),
    Point("load", PLAIN, LONG, loaded),
)
SIGNALS: dict[str, tuple[int, ...]] = {
    "INT": (INT,),
    "TERM": (TERM,),
    "HUP": (HUP,),
    "INT+INT": (INT, INT),
    "INT+TERM": (INT, TERM),
}
QUICK = {("setup", "HUP"), ("install", "INT"), ("load", "INT+INT")}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keep what is installed once for all of these."""
    return tmp_path_factory.mktemp("cache")


def both(quick: set[tuple[str, str]], points: Sequence[str]) -> list[object]:
    return [
        pytest.param(
            point,
            which,
            marks=() if (point, which) in quick else pytest.mark.exhaustive,
            id=f"{point}-{which}",
        )
        for point in points
        for which in SIGNALS
    ]


@pytest.mark.parametrize(("point", "which"), both(QUICK, [point.name for point in POINTS]))
def test_a_signal_ends_it_soon_and_takes_down_what_was_set_up(
    point: str, which: str, tmp_path: Path, cache: Path
) -> None:
    at = next(candidate for candidate in POINTS if candidate.name == point)
    (tmp_path / "plain.py").write_text(at.app)
    own = cache
    with index_that_never_answers() as deaf:
        variables: dict[str, str] = {}
        if at.install:
            own = tmp_path / "cache"
            variables = {**deaf, "UV_CACHE_DIR": str(tmp_path / "uv")}
        running = Running(
            tmp_path, *at.words, "--teardown", at.teardown, env={"VELODROME_CACHE": str(own), **variables}
        )
        running.until(lambda: at.there(running))
        running.signal(*SIGNALS[which])
        code = running.end()
    assert code == 130, running.output
    assert "Traceback" not in running.output, running.output
    stopped_s = (tmp_path / "torn").stat().st_mtime - running.signalled
    ended_s = running.ended - running.signalled
    print(
        f"{which} at {point}: measuring stopped after {stopped_s:.2f} s, the command ended after {ended_s:.2f} s"
    )
    assert_nothing_is_left(running)
    assert stopped_s < STOPS_S
    assert ended_s < ENDS_S


TEARDOWN = "touch tearing; sleep 2; touch torn"


@pytest.mark.parametrize(
    "which",
    [
        pytest.param(which, marks=() if which == "INT+TERM" else pytest.mark.exhaustive)
        for which in (*SIGNALS, "HUP+HUP")
    ],
)
@pytest.mark.parametrize(
    "begun_by", ["a signal", pytest.param("the end of the race", marks=pytest.mark.exhaustive)]
)
def test_a_teardown_runs_to_its_end_whatever_two_signals_come(
    which: str, begun_by: str, tmp_path: Path, cache: Path
) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    numbers = {**SIGNALS, "HUP+HUP": (HUP, HUP)}[which]
    words = LONG if begun_by == "a signal" else (*COMPARE, "-z", "0.5s")
    setup = ("--setup", "touch began; sleep 60") if begun_by == "a signal" else ()
    running = Running(tmp_path, *words, *setup, "--teardown", TEARDOWN, env=kept_in(cache))
    if begun_by == "a signal":
        running.until((tmp_path / "began").exists)
        running.signal(numbers[0])
        numbers = numbers[1:]
    running.until((tmp_path / "tearing").exists)
    running.signal(*numbers)
    assert running.end() == 130, running.output
    assert (tmp_path / "torn").exists(), running.output
    assert "Traceback" not in running.output
    assert "--teardown" in running.output
    assert_nothing_is_left(running)


@pytest.mark.parametrize("third", [INT, pytest.param(TERM, marks=pytest.mark.exhaustive)])
def test_a_third_interrupt_ends_a_teardown_and_says_so(third: int, tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    teardown = "touch tearing; sleep 60; touch torn"
    words = (*LONG, "--setup", "touch began; sleep 60", "--teardown", teardown)
    running = Running(tmp_path, *words, env=kept_in(tmp_path / "cache"))
    running.until((tmp_path / "began").exists)
    running.signal(INT)
    running.until((tmp_path / "tearing").exists)
    running.signal(INT)
    running.until(lambda: "1 more" in running.output)
    assert running.process.poll() is None
    running.signal(third)
    assert running.end() == 130
    assert running.ended - running.signalled < ENDS_S
    assert not (tmp_path / "torn").exists()
    sentence = running.output.splitlines()[-1]
    assert sentence.startswith("velodrome: ")
    assert teardown in sentence
    assert "number 3" in sentence
    assert_nothing_is_left(running)


def test_a_hang_up_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    words = (
        *LONG,
        "--setup",
        "touch began; until test -e go; do sleep 0.05; done; exit 7",
        "--teardown",
        "true",
    )
    running = Running(tmp_path, *words, ignoring=HUP, env=kept_in(tmp_path / "cache"))
    running.until((tmp_path / "began").exists)
    running.signal(HUP)
    (tmp_path / "go").touch()
    assert running.end() == 3, running.output
    assert "exit 7" in running.output


@pytest.mark.parametrize(
    "which",
    [pytest.param(which, marks=() if which == "HUP" else pytest.mark.exhaustive) for which in SIGNALS],
)
def test_a_diff_takes_its_revisions_away(which: str, tmp_path: Path, cache: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "plain.py").write_text(PLAIN)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        ran = subprocess.run(
            ["git", *who, *words], cwd=shop, env=clean, check=True, capture_output=True, text=True
        )
        return ran.stdout

    git("init", "--quiet")
    for number in range(2):
        (shop / "plain.py").write_text(f"{PLAIN}# {number}\n")
        git("add", ".")
        git("commit", "--quiet", "-m", str(number))
    words = (
        "diff",
        "HEAD~1",
        "HEAD",
        "--app",
        "plain:app",
        "--stack",
        "waitress",
        "-z",
        "60s",
        "--run",
        "../out",
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    env = {**kept_in(cache), "TMPDIR": str(scratch)}
    running = Running(shop, *words, "--wait", "--teardown", "touch torn", env=env)
    running.until(lambda: running.children("engine_process"))
    assert len([*scratch.glob("velodrome-*/revisions-*")]) == 1
    running.signal(*SIGNALS[which])
    assert running.end() == 130, running.output
    ended_s = running.ended - running.signalled
    print(f"{which} at diff: the command ended after {ended_s:.2f} s")
    assert (shop / "torn").exists()
    assert [*scratch.iterdir()] == []
    assert "Traceback" not in running.output
    assert_nothing_is_left(running)
    assert ended_s < ENDS_S


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(INT, id="INT", marks=pytest.mark.exhaustive),
        pytest.param(TERM, id="TERM", marks=pytest.mark.exhaustive),
        pytest.param(HUP, id="HUP", marks=pytest.mark.exhaustive),
    ],
)
def test_a_load_tells_what_it_measured(number: int, tmp_path: Path) -> None:
    third = Running(tmp_path, "upstream", "--latency", "5ms", env={})
    third.until(lambda: "http" in third.output)
    url = third.output.strip()
    (tmp_path / "load").mkdir()
    words = ("load", url, "-z", "60s", "-c", "2", "--csv", "seconds.csv")
    running = Running(tmp_path / "load", *words, env={})
    running.until(lambda: running.output)  # it shows how it goes
    running.signal(number)
    assert running.end() == 130, running.output
    ended_s = running.ended - running.signalled
    print(f"{signal.Signals(number).name} at load: ended after {ended_s:.2f} s")
    assert "p99" in running.output
    assert (tmp_path / "load" / "seconds.csv").exists()
    assert ended_s < STOPS_S
    third.signal(number)
    assert third.end() == 0, third.output
