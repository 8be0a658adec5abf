"""Every command in a folder whose files have the names of modules: nothing of it is imported by any process.

The files write down who imported them. What may is the app's own process, where the folder is the app's (`--cwd`).
Two things are Python's own, done before velodrome has begun, and counted apart: with an entry of PYTHONPATH that means
the current folder the interpreter itself imports `sitecustomize` from there; and `python -m velodrome` looks for the
package there first, as `-m` does, so there is none in the folders that it is tried in.
"""

import json
import os
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.cli.stored_runs import write
from tests.judge.regression.made import CLOSED_Q, rates, stored
from tests.run.link.possible import NEEDS_LINK
from tests.shop_repository import slower

from velodrome.run.machine import measuring_lock

MODULES = ("json", "signal", "threading", "socket", "random", "typing", "__future__", "math", "subprocess")
REAL = ("json", "random", "signal")
AT_START = ("sitecustomize", "usercustomize")
"""The interpreter imports these by itself, from wherever it finds them first."""
WRITES = """
with open({seen!r}, "a") as seen, open("/proc/self/cmdline") as line:
    seen.write({name!r} + "\\t" + " ".join(line.read().split(chr(0))) + "\\n")
"""
AND_IS_THE_REAL_ONE = """
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from os import __file__ as beside
spec = PathFinder.find_spec(__name__, [beside.rpartition("/")[0]])
sys.modules[__name__] = module_from_spec(spec)
spec.loader.exec_module(sys.modules[__name__])
"""
APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]
"""
SCRIPT = (str(Path(sysconfig.get_path("scripts")) / "velodrome"),)
MODULE = (sys.executable, "-m", "velodrome")

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/cmdline").exists(), reason="who imports is read in /proc"
)


@dataclass(frozen=True)
class Way:
    """How velodrome is started."""

    command: tuple[str, ...]
    path: str | None = None
    """PYTHONPATH; None: it is not set."""

    @property
    def package(self) -> bool:
        """Whether there may be a package `velodrome` in the folder: whether Python itself would not run that."""
        return self.command is SCRIPT and not self.path


WAYS = {
    "velodrome": Way(SCRIPT),
    "python -m velodrome": Way(MODULE),
    "PYTHONPATH= velodrome": Way(SCRIPT, ""),
    "PYTHONPATH= python -m velodrome": Way(MODULE, ""),
    "PYTHONPATH=. velodrome": Way(SCRIPT, "."),
    "PYTHONPATH=. python -m velodrome": Way(MODULE, "."),
    "PYTHONPATH=: velodrome": Way(SCRIPT, ":"),
}
EVERY_WAY = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
BY_SCRIPT = WAYS["velodrome"]


@dataclass(frozen=True)
class Import:
    """Somebody imported something."""

    name: str
    by: str
    """Its command line."""


class Hostile:
    """A folder full of modules."""

    def __init__(self, folder: Path, seen: Path) -> None:
        self.folder, self.seen = folder, seen
        folder.mkdir(exist_ok=True)

    def fill(self, way: Way, *, real: bool = False) -> None:
        """Write the files; with `real` they are what they are called, for an app that lives with them."""
        for name in REAL if real else (*MODULES, *AT_START):
            text = WRITES.format(seen=str(self.seen), name=name)
            (self.folder / f"{name}.py").write_text(text + AND_IS_THE_REAL_ONE if real else text)
        if way.package and not real:
            (self.folder / "velodrome").mkdir()
            text = WRITES.format(seen=str(self.seen), name="velodrome")
            (self.folder / "velodrome" / "__init__.py").write_text(text)

    def imports(self, way: Way) -> list[Import]:
        """Return who imported what, but for what Python does before velodrome has begun."""
        if not self.seen.exists():
            return []
        found = [Import(*line.split("\t")) for line in self.seen.read_text().splitlines()]
        own = " ".join(way.command)
        return [
            imported
            for imported in found
            if not (way.path and imported.name in AT_START and own in imported.by)
        ]


@pytest.fixture
def hostile(tmp_path: Path) -> Hostile:
    return Hostile(tmp_path / "hostile", tmp_path / "seen")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder with an app, and nothing else in it."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "plain.py").write_text(APP)
    return tmp_path / "elsewhere"


class Ok(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *words: object) -> None:
        """Nothing: nobody reads it."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Ok)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


def environment(way: Way, seen: Path) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    path = {} if way.path is None else {"PYTHONPATH": way.path}
    # What is measured is not looked at: nobody has to wait for it.
    return {**kept, **path, measuring_lock.VARIABLE: str(seen.with_name("lock"))}


def run(
    way: Way, hostile: Hostile, *words: str, codes: tuple[int, ...] = (0,), longest_s: float = 110.0
) -> None:
    """Run a command there, and see that nothing was imported."""
    if not (hostile.folder / "json.py").exists():
        hostile.fill(way)
    ran = subprocess.run(
        [*way.command, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=hostile.folder,
        env=environment(way, hostile.seen),
        timeout=longest_s,
    )
    sentence = ran.stdout + ran.stderr
    assert hostile.imports(way) == [], sentence
    assert ran.returncode in codes, sentence
    files = len([*hostile.folder.rglob("*.py")])
    print(f"{' '.join(words)}: {files} files named like modules, none imported")


@EVERY_WAY
def test_a_load(way: Way, hostile: Hostile, url: str) -> None:
    """Its generator is a process of its own."""
    run(way, hostile, "load", url, "-n", "50", "-c", "2")


@pytest.mark.parametrize("way", [WAYS["velodrome"], WAYS["PYTHONPATH=. python -m velodrome"]], ids=str)
def test_a_simulated_third_party(way: Way, hostile: Hostile) -> None:
    hostile.fill(way)
    with subprocess.Popen(
        [*way.command, "upstream"],
        stdout=subprocess.PIPE,
        cwd=hostile.folder,
        env=environment(way, hostile.seen),
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://")
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
    assert hostile.imports(way) == []


LISTING = (
    ("stacks",),
    ("stacks", "show", "uvicorn"),
    ("recipes",),
    ("recipes", "show", "hello"),
    ("studies",),
    ("drivers",),
)


@pytest.mark.parametrize("words", LISTING[::2], ids=" ".join)
def test_what_lists_in_the_hardest_way(words: tuple[str, ...], hostile: Hostile) -> None:
    run(WAYS["PYTHONPATH=. velodrome"], hostile, *words)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("diff", "before", "after"), id="diff"),
        pytest.param(("judge", "before"), id="judge", marks=pytest.mark.exhaustive),  # it draws, 5 s of a CPU
    ],
)
def test_what_tells_of_stored_results(words: tuple[str, ...], hostile: Hostile) -> None:
    for name, value in (("before", 1000.0), ("after", 1001.0)):
        write(hostile.folder / name, stored(rates([value, value + 1, value - 1, value + 2]), CLOSED_Q))
    run(WAYS["PYTHONPATH=. python -m velodrome"], hostile, *words)


OWN: Mapping[str, str] = {
    "the load generator": """
from velodrome.model.load import Closed, Load
from velodrome.run.drivers.driver import Target
from velodrome.run.drivers.velodrome import VelodromeDriver
facts = VelodromeDriver().run(Load(Closed(2), duration_s=0.1), Target(URL), lambda event: True)
assert facts.ok, facts
""",
    "a third party": """
from velodrome.run import third_party
with third_party.start() as third:
    assert third.port
""",
    "idle connections": """
from velodrome.run.idle_clients import hold_idle
with hold_idle(2, URL) as idle:
    assert idle.facts().opened == 2
""",
    "another load generator": """
from velodrome.run.drivers.foreign import spawn
assert spawn(("/bin/echo", "done"), span_s=5).output == "done\\n"
""",
    "what runs an interpreter": """
import sys
from pathlib import Path
from velodrome.run.environments import environment, guest_tree
from velodrome.run.environments.environment import Environment
from velodrome.run.environments.interpreter import theirs
tree = guest_tree.export()
assert theirs(sys.executable, tree).packages
assert float(environment.turn_ns(Environment(Path(sys.executable), "3", {}, False), tree)) > 0
""",
}


@pytest.mark.parametrize("program", OWN.values(), ids=OWN)
def test_each_process_of_velodromes_own(program: str, hostile: Hostile, url: str) -> None:
    """As a library starts it, in a folder whose `signal.py` would break it."""
    hostile.fill(BY_SCRIPT)
    for name in ("signal", "json", "socket"):
        with (hostile.folder / f"{name}.py").open("a") as file:
            file.write("raise RuntimeError('of the app')\n")
    ran = subprocess.run(
        [sys.executable, "-P", "-c", f"URL = {url!r}\n{program}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=hostile.folder,
        env=environment(BY_SCRIPT, hostile.seen),
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    assert hostile.imports(BY_SCRIPT) == []


@pytest.mark.parametrize("way", [WAYS["velodrome"], WAYS["python -m velodrome"]], ids=str)
def test_a_folder_that_is_gone_has_nothing_in_it(way: Way, tmp_path: Path, url: str) -> None:
    (tmp_path / "gone").mkdir()
    removed = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    ran = subprocess.run(
        [
            "/bin/sh",
            "-c",
            removed,
            "sh",
            str(tmp_path / "gone"),
            *way.command,
            "load",
            url,
            "-n",
            "5",
            "-c",
            "1",
        ],
        capture_output=True,
        text=True,
        check=False,
        env=environment(way, tmp_path / "seen"),
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.exhaustive
@EVERY_WAY
@pytest.mark.parametrize("words", LISTING, ids=" ".join)
def test_what_lists(words: tuple[str, ...], way: Way, hostile: Hostile) -> None:
    run(way, hostile, *words)


def only(kind: str) -> tuple[str, ...]:
    return ("run", "first-lap", "--quick", "--blocks", "1", "--only", kind, "--out", "out")


SHORT = ("--blocks", "1", "-z", "0.5s")
RACES: Mapping[str, tuple[str, ...]] = {
    "run": only("third-party/waitress"),
    "profile": (*only("hello/waitress"), "--profile"),
    "experiment": ("run", "articles/io-models", "--only", "switches", "--out", "out"),
    "experiment that starts a server": (
        "run",
        "articles/gunicorn-gevent",
        "--only",
        "greenlets",
        "--out",
        "out",
    ),
    "experiment that starts a Python": (
        "run",
        "articles/grpc-concurrency",
        "--only",
        "same-stub",
        "--out",
        "out",
    ),
    "capacity": (
        "capacity",
        "plain:app",
        "--cwd",
        "ELSEWHERE",
        "--stack",
        "waitress",
        "--slo",
        "p50 < 0.001ms",
        "-z",
        "0.5s",
    ),
    "compare": (
        "compare",
        "plain:app",
        "--cwd",
        "ELSEWHERE",
        "--stack",
        "waitress",
        "--stack",
        "gunicorn-gthread",
        *SHORT,
    ),
    "tune": (
        "tune",
        "plain:app",
        "--cwd",
        "ELSEWHERE",
        "--stack",
        "waitress",
        "--slo",
        "p95 < 200ms",
        "--budget",
        "20s",
    ),
}
EITHER = pytest.mark.parametrize(
    "way", [WAYS["velodrome"], WAYS["PYTHONPATH=. python -m velodrome"]], ids=["velodrome", "PYTHONPATH=. -m"]
)


def assert_it_was_done(out: Path) -> None:
    """A server that does not start, or an experiment that fails, would import nothing either."""
    _, *results = [json.loads(line) for path in out.rglob("results.jsonl") for line in path.open()]
    assert results
    assert [result for result in results if result["kind"] == "failed" or result.get("failed")] == []


@pytest.mark.exhaustive
@pytest.mark.timeout(400)
@EITHER
@pytest.mark.parametrize("words", RACES.values(), ids=RACES)
def test_what_races(words: tuple[str, ...], way: Way, hostile: Hostile, elsewhere: Path) -> None:
    given = [str(elsewhere) if word == "ELSEWHERE" else word for word in words]
    # Whether it finds what is sought does not matter; an SLO that nothing meets ends a search soonest.
    run(way, hostile, *given, codes=(0, 1, 4) if words[0] in ("capacity", "tune") else (0,), longest_s=390)
    if "out" in words:
        assert_it_was_done(hostile.folder / "out")


@pytest.mark.exhaustive
@NEEDS_LINK
def test_a_race_over_a_link(hostile: Hostile) -> None:
    run(BY_SCRIPT, hostile, *only("third-party-rtt5ms/waitress"), "--link", "rtt=5ms")
    assert_it_was_done(hostile.folder / "out")


@pytest.mark.exhaustive
def test_two_revisions(hostile: Hostile, tmp_path: Path) -> None:
    shop = slower(tmp_path / "shop")
    words = ("--app", "shop:app", "--cwd", str(shop), "--stack", "waitress")
    run(BY_SCRIPT, hostile, "diff", "HEAD~1", "HEAD", *words, *SHORT)


OF_THE_APP = ("-m velodrome.guest.apps.looking ", "-m velodrome.guest.stacks.waitress ", "-m gunicorn ")


@pytest.mark.parametrize(
    ("app", "code", "processes"),
    [
        pytest.param("plain:nothing", 2, 1, id="until it is looked at"),
        pytest.param("plain:app", 0, 3, id="whole", marks=pytest.mark.exhaustive),
    ],
)
def test_where_the_folder_is_the_apps_only_the_apps_own_process_imports_from_it(
    app: str, code: int, processes: int, hostile: Hostile
) -> None:
    hostile.fill(BY_SCRIPT, real=True)
    (hostile.folder / "plain.py").write_text(APP)
    ran = subprocess.run(
        [*BY_SCRIPT.command, "compare", app, "--stack", "waitress", "--stack", "gunicorn-gthread", *SHORT],
        capture_output=True,
        text=True,
        check=False,
        cwd=hostile.folder,
        env=environment(BY_SCRIPT, hostile.seen),
        timeout=110,
    )
    assert ran.returncode == code, ran.stderr
    found = hostile.imports(BY_SCRIPT)
    assert [imported for imported in found if not any(words in imported.by for words in OF_THE_APP)] == []
    whose = {words for imported in found for words in OF_THE_APP if words in imported.by}
    assert len(whose) == processes


def test_the_files_tell_who_imports_them(hostile: Hostile) -> None:
    """Or none of these tests could fail."""
    hostile.fill(WAYS["python -m velodrome"])
    execute = partial(subprocess.run, check=True, cwd=hostile.folder, capture_output=True)
    execute([sys.executable, "-m", "this", "x"])
    execute([sys.executable, "-P", "-c", "import json, signal, threading, socket, random, typing"])
    assert hostile.imports(BY_SCRIPT) == []
    for name in ("signal", "velodrome"):
        path = {**environment(BY_SCRIPT, hostile.seen), "PYTHONPATH": str(hostile.folder)}
        subprocess.run([sys.executable, "-c", f"import {name}"], check=True, cwd=hostile.folder, env=path)
    assert [imported.name for imported in hostile.imports(BY_SCRIPT)][:2] == ["sitecustomize", "signal"]
