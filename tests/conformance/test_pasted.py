"""What is pasted is what was measured: it starts as it stands, answers rightly, costs the same, ends when stopped."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest
from tests.conformance import pasting
from tests.conformance.pasting import (
    PASTED,
    REQUEST,
    Running,
    Shop,
    as_pasted,
    as_raced,
    await_it,
    make_shop,
    running,
)
from tests.conformance.wire import Wire

from velodrome.guest.stack import LOGGING, SUPERVISION, KnobValue, Launch, Stack
from velodrome.judge.statistics import Comparison, Sample
from velodrome.model.load import Closed, Load
from velodrome.model.quantity import Interval
from velodrome.report.recommendation import Wishes, files
from velodrome.run.drivers.driver import LoadEvent, Target
from velodrome.run.drivers.velodrome import VelodromeDriver
from velodrome.run.environments import environment
from velodrome.run.machine import measuring_lock
from velodrome.run.measuring.sampler import Sampler
from velodrome.run.servers import Server, fresh_port

STARTED_DAILY = ("uvicorn", "waitress")
"""One process, and a program that is written."""
UNITS_DAILY = ("gunicorn-gthread", "robyn")
"""One that notifies, and one that ends on another signal."""
BEHIND_DAILY, LOADED_DAILY = ("gunicorn-gthread",), ("uvicorn",)
TIMES = 40
LINES = 10_000
"""More than is logged."""
PORT = 8000
MORE = 1.10
"""So many times the CPU a request, surely, is another setting; an access log takes 1.2 to 1.8 (`Server.access_log`)."""
BLOCKS, LOAD = 3, Load(Closed(16), duration_s=0.8, warmup_s=0.3)

Make = Callable[..., Shop]


def str_of(stack: Stack) -> str:
    """Return what a stack is called in the name of a test."""
    return stack.name


def of_stacks(daily: tuple[str, ...], *more: pytest.MarkDecorator) -> pytest.MarkDecorator:
    """Return every stack, those that are not for each day marked so."""
    return pytest.mark.parametrize(
        "stack",
        [
            pytest.param(stack, id=name, marks=[*more, *(() if name in daily else (pytest.mark.exhaustive,))])
            for name, stack in PASTED.items()
        ],
    )


@pytest.fixture
def make(python_of: Callable[[Stack], Path], tmp_path: Path) -> Make:
    """Makes the app in an environment of a stack."""

    def made(stack: Stack, **knobs: KnobValue) -> Shop:
        python_of(stack)  # says why it cannot be had
        return make_shop(tmp_path / "shop", stack, environment.environment_for(stack), knobs)

    return made


@pytest.mark.parametrize("stack", [stack for stack in PASTED.values() if stack.script is None], ids=str_of)
def test_what_is_pasted_has_the_options_that_were_measured_and_no_others(
    stack: Stack, tmp_path: Path
) -> None:
    """Those of a program that is written are arguments in it: what it costs is compared below."""
    knobs: Mapping[str, KnobValue] = {"workers": 2} if "workers" in stack.knobs else {}
    shop = Shop(tmp_path, stack, environment.Environment(Path("python"), "3", {}, locked=False), knobs)
    raced = stack.command(Launch("127.0.0.1", PORT, "shop:app", stack.settings(knobs))).argv
    pasted = shlex.split(shop.pasted(PORT).rpartition("\n")[2])[1:]
    assert set(pasted) <= set(raced)
    given = stack.server.race_only if stack.server is not None else ()
    race_only = dict(given) if isinstance(given, Mapping) else {}  # each difference has its reason
    left_out = {word.partition("=")[0] for word in set(raced) - set(pasted)}
    assert left_out <= set(race_only)
    assert {race_only[option] for option in left_out} <= {SUPERVISION, LOGGING}


@pytest.mark.parametrize("stack", PASTED.values(), ids=PASTED)
def test_the_signal_of_the_unit_is_that_of_the_race(stack: Stack) -> None:
    raced = stack.command(Launch("127.0.0.1", PORT, "shop:app", stack.settings({})))
    assert stack.server is not None
    assert raced.stop_signal == stack.server.stop_signal


@of_stacks(STARTED_DAILY)
def test_it_starts_as_it_stands_answers_rightly_and_logs_no_request(stack: Stack, make: Make) -> None:
    port = fresh_port()
    with as_pasted(make(stack), port) as program:
        at_start = len(program.last_lines(LINES))
        for _ in range(TIMES):
            check_answer(port)
        every = program.last_lines(LINES)
        assert len(every) < at_start + TIMES / 2, "\n".join(["it logs each request:", *every])


@of_stacks(LOADED_DAILY, pytest.mark.measured)
def test_it_costs_what_was_measured(stack: Stack, make: Make, tree: Path) -> None:
    ratio = cost_of(make(stack), tree, as_pasted)
    assert ratio.low < MORE, f"pasted it takes {ratio.low:.2f} to {ratio.high:.2f} times the CPU"
    assert ratio.high > 1 / MORE, f"pasted it takes {ratio.low:.2f} to {ratio.high:.2f} times the CPU"


@pytest.mark.measured
@pytest.mark.exhaustive
def test_an_access_log_that_was_not_measured_would_be_seen(make: Make, tree: Path) -> None:
    @contextmanager
    def logging(shop: Shop, port: int) -> Iterator[Running]:
        words = shlex.split(shop.pasted(port).rpartition("\n")[2])
        with running([word for word in words if word != "--no-access-log"], shop, {}) as program:
            await_it(program, port)
            yield program

    assert cost_of(make(PASTED["uvicorn"]), tree, logging).low > MORE


@of_stacks(UNITS_DAILY)
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_the_unit_starts_it_says_when_it_is_ready_and_ends_it(
    stack: Stack, workers: int, make: Make, tmp_path: Path
) -> None:
    if workers > 1 and "workers" not in stack.knobs:
        pytest.skip(f"{stack.name} has one process")
    several: Mapping[str, KnobValue] = {"workers": 2} if workers == 2 else {}
    shop, port = make(stack, **several), fresh_port()
    unit = settings_of(artefacts(shop, port)["app.service"])
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as notified:
        notified.bind(str(tmp_path / "notify"))
        notified.settimeout(pasting.BOOT_S)
        variables = dict(variable.split("=", 1) for variable in map(unquoted, unit.get("Environment", [])))
        variables["NOTIFY_SOCKET"] = str(tmp_path / "notify")
        with running(words_of(unit["ExecStart"][0]), shop, variables) as program:
            if unit["Type"] == ["notify"]:
                assert says_ready(notified)
            await_it(program, port)
            check_answer(port)
            if unit["Type"] != ["notify"]:
                notified.setblocking(False)
                assert not says_ready(notified)
            program.settle()
            number = signal.Signals[unit["KillSignal"][0]]
            _, status = program.stop(number, unit["KillMode"] == ["control-group"])
            # By itself, or by the signal: systemd takes both for success where it sent it.
            assert status in (0, -number, 128 + number), program.output()


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze: apt install systemd"
)
@of_stacks(UNITS_DAILY)
def test_systemd_takes_the_unit_and_finds_it_safe(stack: Stack, make: Make, tmp_path: Path) -> None:
    unit = tmp_path / "app.service"
    unit.write_text(artefacts(make(stack), PORT)["app.service"])
    for words in (["verify"], ["security", "--offline=true", "--threshold=20"]):
        finished = subprocess.run(
            ["systemd-analyze", *words, unit], capture_output=True, text=True, check=False
        )
        assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr
        assert unit.name not in finished.stderr, finished.stderr


@pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx: apt install nginx-light")
@of_stacks(BEHIND_DAILY)
def test_nginx_takes_its_lines_and_answers_through_them(stack: Stack, make: Make, tmp_path: Path) -> None:
    shop, port, front = make(stack), fresh_port(), fresh_port()
    lines = artefacts(shop, port)["nginx.conf"].replace("listen 80;", f"listen 127.0.0.1:{front};")
    own = f"error_log {tmp_path}/error.log;\npid {tmp_path}/nginx.pid;\ndaemon off;\nevents {{ }}\n"
    conf = tmp_path / "nginx.conf"
    conf.write_text(f"{own}http {{\naccess_log off;\n{lines}\n}}\n")
    finished = subprocess.run(["nginx", "-t", "-c", conf], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    with as_pasted(shop, port), running(["nginx", "-c", str(conf)], shop, {}) as proxy:
        await_it(proxy, front)
        for _ in range(TIMES):
            check_answer(front)


@of_stacks(("gunicorn-sync",))
def test_the_check_of_the_container_tells_whether_it_answers(stack: Stack, make: Make) -> None:
    shop, port = make(stack), fresh_port()
    check = re.search(r"^HEALTHCHECK .* CMD (\[.*\])$", artefacts(shop, port)["Dockerfile"], re.MULTILINE)
    assert check is not None
    words = [str(shop.environment.python), *json.loads(check[1])[1:]]
    with as_pasted(shop, port):
        assert subprocess.run(words, capture_output=True, check=False).returncode == 0
    assert subprocess.run(words, capture_output=True, check=False).returncode != 0


@of_stacks(("gunicorn-sync",))
def test_the_container_has_a_user_and_what_was_measured(stack: Stack, make: Make) -> None:
    found = artefacts(make(stack), PORT)
    steps = [line.split()[0] for line in found["Dockerfile"].splitlines() if line and line[0].isupper()]
    assert steps.index("USER") > steps.index("COPY")
    assert steps[-1] == "CMD"
    assert isinstance(json.loads(found["Dockerfile"].splitlines()[-1].removeprefix("CMD ")), list)
    pins = {line.partition("==")[0] for line in found["requirements.txt"].splitlines()}
    assert {re.split("[=;<>\\[]", line)[0].lower() for line in stack.requires} <= pins


@pytest.mark.parametrize("stack", [PASTED["gunicorn-gthread"]], ids=str_of)
def test_the_configuration_file_says_what_the_command_line_does(stack: Stack, make: Make) -> None:
    shop = make(stack)
    assert stack.server is not None
    assert stack.server.configuration is not None
    command = last(shop.pasted(PORT))
    artefacts(shop, PORT)
    short = stack.server.configuration(tuple(shlex.split(command))).command

    def shown(words: Sequence[str]) -> list[str]:
        finished = subprocess.run(
            [str(shop.environment.python), *words[1:], "--print-config"],
            cwd=shop.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        ignored = ("config ", "wsgi_app ", "default_proc_name ")  # where it read them
        return [line for line in finished.stdout.splitlines() if not line.startswith(ignored)]

    # An empty file in the place of the one that lies in the folder.
    words = shlex.split(command)
    assert shown(short) == shown([*words[:3], "--config=/dev/null", *words[3:]])


def check_answer(port: int) -> None:
    with Wire(port) as wire:
        answer = wire.request("GET", b"")
    assert answer.status == 200
    assert answer.body == pasting.BODY.encode()


def says_ready(notified: socket.socket) -> bool:
    """Return whether a server says that it is ready, among what it says; how long it has is the socket's time-out."""
    try:
        while b"READY=1" not in notified.recv(4096).split(b"\n"):
            pass
    except (BlockingIOError, TimeoutError):
        return False
    return True


def artefacts(shop: Shop, port: int) -> dict[str, str]:
    """Return the files to paste, written where the app is."""
    command = shop.pasted(port)
    wishes = Wishes(
        cpus=1,
        python=str(shop.environment.python),
        folder=str(shop.folder),
        stack=shop.stack,
        knobs=shop.stack.settings(shop.knobs),
        measured="Measured for 1 CPU.",
        version=shop.environment.version,
        packages=shop.environment.packages,
    )
    made = {file.name: file.text.replace(f":{PORT}", f":{port}") for file in files(last(command), wishes)}
    made = {name: text.replace(f"', {PORT}", f"', {port}") for name, text in made.items()}
    for name, text in {**made, **written(command)}.items():
        (shop.folder / name).write_text(text)
    return made


def last(pasted: str) -> str:
    return pasted.rpartition("\n")[2]


def written(pasted: str) -> dict[str, str]:
    """Return the file that the pasted lines write, if any."""
    found = re.search(r"^cat > (\S+) <<'END'\n(.*?)\nEND$", pasted, re.MULTILINE | re.DOTALL)
    return {found[1]: found[2]} if found else {}


def settings_of(unit: str) -> dict[str, list[str]]:
    """Return the settings of a unit, by name."""
    found: dict[str, list[str]] = {}
    for line in unit.splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def unquoted(word: str) -> str:
    """Return a word as systemd reads it."""
    (read,) = shlex.split(word)
    return read.replace("%%", "%")


def words_of(line: str) -> list[str]:
    """Return the words of an ExecStart= line as systemd reads them (systemd.service(5))."""
    return [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(line)]


def cost_of(
    shop: Shop, tree: Path, other: Callable[[Shop, int], AbstractContextManager[Running | Server]]
) -> Interval:
    """Return how many times the CPU of the race `other` takes for a request, from blocks in turns, on one CPU."""
    served: dict[str, Callable[[int], AbstractContextManager[Running | Server]]] = {
        "raced": lambda port: as_raced(shop, tree, port),
        "pasted": lambda port: other(shop, port),
    }
    costs: dict[str, dict[int, float]] = {name: {} for name in served}
    with measuring_lock.alone("what is pasted beside what was measured", wait_s=None):
        for block in range(BLOCKS):
            for name in sorted(served, reverse=bool(block % 2)):
                costs[name][block] = _cpu_us(served[name])
    pair = Comparison([Sample(name, found) for name, found in costs.items()]).pair("pasted", "raced")
    assert pair is not None
    return pair.ratio


def _cpu_us(serve: Callable[[int], AbstractContextManager[Running | Server]]) -> float:
    """Serve on the first CPU, load from the last, and return the CPU time of an answer."""
    port, every = fresh_port(), sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, every[:1])  # those that are started inherit it
    try:
        with serve(port) as program:
            os.sched_setaffinity(0, every)
            root = program.process.pid if isinstance(program, Running) else program.pid
            sampler = Sampler(root, port, LOAD.duration_s)
            sampler.rest()

            def on(event: LoadEvent) -> bool:
                sampler.on(event)
                return True

            with sampler:
                target = Target.of_requests(f"http://127.0.0.1:{port}/", (REQUEST,))
                facts = VelodromeDriver(every[-1:]).run(LOAD, target, on)
            assert facts.answers > 100, facts
            return sampler.result(boot_s=0.0).server.cpu_s * 1e6 / facts.answers
    finally:
        os.sched_setaffinity(0, every)
