"""The exit-code matrix: whatever the machine refuses, a command ends with 3 and one sentence that names the cause.

Never with 1, which would say that a claim or a threshold failed, and never with a traceback.
"""

import json
import os
import pwd
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

import velodrome

Ended = subprocess.CompletedProcess[str]
Found = TypeVar("Found")
PACKAGE = Path(velodrome.__file__).parent
VELODROME = (sys.executable, "-m", "velodrome")
ROOT = os.geteuid() == 0
STRANGER = 61234
"""A user that the system has no entry of."""

APP = """\
def app(environ, start_response):
    start_response("200 OK", [("Content-Length", "2"), ("Content-Type", "text/plain")])
    return [b"ok"]
"""
STUDY = """\
title = "A third party, over a link"
contestants = ["io-generators"]
blocks = 2
[[questions]]
name = "calls"
recipe = "third-party-200ms"
LINK
loads = [{connections = 2, duration = "1s", drain = "0.3s"}]
"""


def mounts() -> bool:
    """Whether a command can have file systems of its own here."""
    if not ROOT:
        return False
    tried = subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False
    )
    return tried.returncode == 0


MOUNTS = mounts()
own_mounts = pytest.mark.skipif(not MOUNTS, reason="file systems of its own need root and unshare")
as_root = pytest.mark.skipif(not ROOT, reason="another user needs root")


def ended(words: Sequence[str], where: Path, *, small: str = "", **variables: str) -> Ended:
    """Run a command in a folder; `small` are commands of a shell before it, in a mount namespace of its own."""
    argv = list(words)
    if small:
        argv = ["unshare", "-m", "sh", "-c", f'{small} && exec "$@"', "sh", *argv]
    env = {**os.environ, "VELODROME_CACHE": str(where / "cache"), **variables}
    return subprocess.run(argv, cwd=where, env=env, capture_output=True, text=True, check=False, timeout=110)


def one_sentence(found: Ended, *facts: str, code: int = 3) -> str:
    """Return what a command printed in the end: one line of velodrome's, with these facts in it."""
    assert found.returncode == code, (found.returncode, found.stdout, found.stderr)
    sentences = [line for line in found.stderr.splitlines() if line.startswith("velodrome: ")]
    assert len(sentences) == 1, found.stderr
    for text in ("Traceback", "Exception ignored"):
        assert text not in found.stderr, found.stderr
    for fact in facts:
        assert fact in sentences[0], (fact, sentences[0])
    return sentences[0]


@pytest.fixture
def where(tmp_path: Path) -> Path:
    (tmp_path / "plain.py").write_text(APP)
    return tmp_path


RUN = ("run", "first-lap", "--quick")
COMPARE = ("compare", "plain:app")


@dataclass(frozen=True)
class Fault:
    """What is wrong with the machine, and what has to be named."""

    name: str
    facts: tuple[str, ...]
    small: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()


CACHE_FAULTS = (
    Fault(
        "no such place",
        ("/proc/nowhere", os.strerror(2), "VELODROME_CACHE"),
        variables={"VELODROME_CACHE": "/proc/nowhere"},
    ),
    Fault(
        "a file in its place",
        ("/dev/null", os.strerror(20), "VELODROME_CACHE"),
        variables={"VELODROME_CACHE": "/dev/null/x"},
    ),
    Fault(
        "read-only",
        ("/mnt/kept", os.strerror(30), "VELODROME_CACHE"),
        "mount -t tmpfs -o ro tmpfs /mnt",
        {"VELODROME_CACHE": "/mnt/kept"},
    ),
    Fault(
        "full",
        ("/mnt/kept", os.strerror(28), "VELODROME_CACHE"),
        "mount -t tmpfs -o size=300k tmpfs /mnt",
        {"VELODROME_CACHE": "/mnt/kept"},
    ),
)


QUICK = {"no such place", "full"}


def each_of(commands: Sequence[Sequence[str]]) -> list[object]:
    return [
        pytest.param(
            words,
            fault,
            id=f"{' '.join(words)}-{fault.name}",
            marks=() if words is RUN and fault.name in QUICK else pytest.mark.exhaustive,
        )
        for words in commands
        for fault in CACHE_FAULTS
    ]


CAPACITY = ("capacity", "--recipe", "hello", "--stack", "waitress")


@pytest.mark.parametrize(("words", "fault"), each_of((RUN, COMPARE, CAPACITY, (*COMPARE, "--setup", "true"))))
def test_a_cache_that_cannot_be_written_is_named(words: Sequence[str], fault: Fault, where: Path) -> None:
    if fault.small and not MOUNTS:
        pytest.skip("file systems of its own need root and unshare")
    found = ended((*VELODROME, *words), where, small=fault.small, **fault.variables)
    one_sentence(found, *fault.facts)


@as_root
@pytest.mark.parametrize("words", [RUN, pytest.param(COMPARE, marks=pytest.mark.exhaustive)], ids=" ".join)
def test_a_user_without_home_and_entry_is_told_of_both(words: Sequence[str], where: Path) -> None:
    where.chmod(0o755)
    prefix = ("setpriv", "--reuid", str(STRANGER), "--clear-groups", "env", "-i")
    seen = os.pathsep.join((str(PACKAGE.parent), sysconfig.get_path("purelib")))
    found = ended((*prefix, f"PYTHONPATH={seen}", readable_python(), "-m", "velodrome", *words), Path("/"))
    one_sentence(found, "HOME", "VELODROME_CACHE", str(STRANGER))


def test_what_needs_no_cache_does_without(where: Path) -> None:
    for words in (("studies",), ("stacks", "show", "uvicorn")):
        found = ended((*VELODROME, *words), where, VELODROME_CACHE="/proc/nowhere")
        assert found.returncode == 0, found.stderr


def test_where_nothing_takes_what_is_printed_that_is_named(where: Path) -> None:
    for words in (("studies",), ("load", "http://127.0.0.1:1/", "-z", "0.2s")):
        found = ended(("sh", "-c", 'exec "$@" > /dev/full', "sh", *VELODROME, *words), where)
        one_sentence(found, "standard output", os.strerror(28))


@pytest.mark.exhaustive
def test_an_output_that_is_closed_is_no_fault(where: Path) -> None:
    found = ended(("sh", "-c", 'exec "$@" >&-', "sh", *VELODROME, "studies"), where)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize(
    "words",
    [
        ("load", "http://127.0.0.1:1/"),
        pytest.param(RUN, marks=pytest.mark.exhaustive),
        pytest.param(("upstream",), marks=pytest.mark.exhaustive),
    ],
    ids=" ".join,
)
def test_an_installation_without_its_engine_is_named(words: Sequence[str], where: Path) -> None:
    torn = where / "torn" / "velodrome"
    torn.mkdir(parents=True)
    for part in PACKAGE.iterdir():
        if not part.name.startswith("_native.") or part.suffix == ".pyi":
            (torn / part.name).symlink_to(part)
    found = ended((*VELODROME, *words), where, PYTHONPATH=str(torn.parent))
    one_sentence(found, "velodrome._native", "pip install")
    by_api = "import velodrome as vd\ntry:\n    vd.load\nexcept vd.VelodromeError as error:\n    print(error.exit_code)"
    found = ended((sys.executable, "-c", by_api), where, PYTHONPATH=str(torn.parent))
    assert found.stdout == "3\n", found.stderr


def with_bug(raising: str, words: Sequence[str] = ("studies",)) -> tuple[str, ...]:
    """Return a command line of velodrome in which something is raised that nobody foresaw."""
    code = (
        "import sys, velodrome.plan.study_file as finding\n"
        "from velodrome.cli import main\n"
        "class PanicException(BaseException): pass\n"
        "def deep(): deep()\n"
        f"def failing(*_, **__): {raising}\n"
        "for name, value in list(vars(finding).items()):\n"
        "    if callable(value): setattr(finding, name, failing)\n"
        f"sys.argv = ['velodrome', *{list(words)!r}]\n"
        "main.main()\n"
    )
    return (sys.executable, "-c", code)


@pytest.mark.parametrize(
    ("raising", "named"),
    [
        ("raise KeyError('absent')", ("KeyError", "absent")),
        ("raise PanicException('index out of bounds')", ("PanicException", "index out of bounds")),
        *(
            pytest.param(*pair, marks=pytest.mark.exhaustive)
            for pair in (
                ("deep()", ("RecursionError",)),
                ("raise EOFError", ("EOFError",)),
                ("raise OSError(5, 'Input/output error', '/dev/sdz')", ("OSError", "/dev/sdz")),
            )
        ),
        ("raise BrokenPipeError(32, 'Broken pipe')", ("BrokenPipeError",)),
    ],
)
def test_a_bug_ends_with_3_and_its_traceback_is_in_the_file_that_is_named(
    raising: str, named: Sequence[str], where: Path
) -> None:
    sentence = one_sentence(ended(with_bug(raising), where), *named)
    crash = Path(sentence.partition("traceback is in ")[2].partition(";")[0])
    assert crash.parent == where / "cache" / "crashes"
    assert "Traceback" in crash.read_text()
    assert named[0] in crash.read_text()
    assert crash.stat().st_mode & 0o077 == 0


def test_memory_that_is_refused_is_no_bug(where: Path) -> None:
    one_sentence(ended(with_bug("raise MemoryError"), where), "memory", os.strerror(12))
    assert not (where / "cache" / "crashes").exists()


def test_a_traceback_that_the_cache_cannot_keep_goes_to_the_temporary_files(where: Path) -> None:
    (where / "scratch").mkdir()
    unwritable = {"VELODROME_CACHE": "/proc/nowhere", "TMPDIR": str(where / "scratch")}
    sentence = one_sentence(ended(with_bug("raise KeyError('absent')"), where, **unwritable), "KeyError")
    (crash,) = (where / "scratch").iterdir()
    assert str(crash) in sentence
    assert "Traceback" in crash.read_text()


@pytest.mark.exhaustive
@own_mounts
def test_a_traceback_that_nothing_can_keep_is_reported_as_lost(where: Path) -> None:
    nowhere = "mount -t tmpfs -o ro tmpfs /var/tmp && mount -t tmpfs -o ro tmpfs /tmp && cd /proc"
    found = ended(with_bug("raise KeyError('absent')"), where, small=nowhere, VELODROME_CACHE="/proc/nowhere")
    one_sentence(found, "KeyError", "could not be written")


@pytest.mark.exhaustive
def test_only_the_newest_tracebacks_are_kept(where: Path) -> None:
    crashes = where / "cache" / "crashes"
    crashes.mkdir(parents=True)
    for number in range(30):
        (crashes / f"velodrome-crash-20000101-0000{number:02}-1-1.txt").write_text("old")
    one_sentence(ended(with_bug("raise KeyError('absent')"), where), "KeyError")
    kept = sorted(path.name for path in crashes.iterdir())
    assert len(kept) == 20
    assert kept[0].startswith("velodrome-crash-20000101-000011")


def test_a_thread_that_fails_ends_the_command_with_3(where: Path) -> None:
    raising = (
        "\n    import threading, time\n"
        "    def fail(): raise KeyError('in a thread')\n"
        "    threading.Thread(target=fail).start()\n"
        "    time.sleep(60)"
    )
    found = ended(with_bug(raising), where)
    assert found.returncode == 3, found.stderr
    assert "Traceback" not in found.stderr
    assert "in a thread" in found.stderr
    assert len(list((where / "cache" / "crashes").iterdir())) == 1


def test_a_reader_that_goes_away_ends_a_race_as_it_ends_other_programs(where: Path) -> None:
    (where / "calls.toml").write_text(STUDY.replace("LINK", ""))
    who = pwd.getpwuid(os.geteuid()).pw_name  # else a line warns that everything runs as root, where it does
    words = (*VELODROME, "run", "./calls.toml", "--out", "out", "--wait", "--user", who)
    env = {**os.environ, "VELODROME_CACHE": str(where / "cache")}
    with subprocess.Popen(
        words, cwd=where, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as race:
        assert race.stdout is not None
        assert race.stderr is not None
        race.stdout.readline()
        race.stdout.close()
        sentence = race.stderr.read()
    assert (race.returncode, sentence) == (141, "")


def limited(option: str, words: Sequence[str], prefix: Sequence[str] = ()) -> tuple[str, ...]:
    return ("prlimit", option, *prefix, *words)


def test_too_few_open_files_for_a_load_are_reported_with_how_many_it_takes(where: Path) -> None:
    found = ended(limited("--nofile=64:64", (*VELODROME, "load", "http://127.0.0.1:1/", "-c", "100")), where)
    one_sentence(found, "64", "RLIMIT_NOFILE", "ulimit")


@pytest.mark.parametrize(
    "files",
    [
        10,
        *(
            pytest.param(n, marks=pytest.mark.exhaustive)
            for n in (7, 8, 9, 11, 12, 13, 14, 16, 20, 24, 32, 48, 64)
        ),
    ],
)
def test_too_few_open_files_for_a_race_are_named_or_fail_its_trials(files: int, where: Path) -> None:
    (where / "calls.toml").write_text(STUDY.replace("LINK", ""))
    words = (*VELODROME, "run", "./calls.toml", "--out", "out", "--wait")
    found = ended(limited(f"--nofile={files}:{files}", words), where)
    assert found.returncode in (0, 3), found.stderr
    assert "Traceback" not in found.stderr, found.stderr
    output = found.stderr + found.stdout
    if found.returncode == 3:
        assert any(sign in output for sign in (os.strerror(24), "ulimit -n", "RLIMIT_NOFILE")), output
    print(f"{files} open files: exit {found.returncode}")


@as_root
@pytest.mark.parametrize(
    "processes", [2, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in (1, 3, 4, 5, 6, 8, 12))]
)
def test_too_few_processes_are_named_or_fail_the_trials(processes: int, public: Path) -> None:
    python = readable_python()
    (public / "calls.toml").write_text(STUDY.replace("LINK", ""))
    words = (python, "-m", "velodrome", "run", "./calls.toml", "--out", "out", "--wait")
    user = ("setpriv", "--reuid", str(STRANGER), "--regid", str(STRANGER), "--clear-groups")
    seen = {"PYTHONPATH": os.pathsep.join((str(PACKAGE.parent), sysconfig.get_path("purelib")))}
    found = ended(
        (*user, *limited(f"--nproc={processes}:{processes}", words)), public, HOME=str(public), **seen
    )
    assert found.returncode in (0, 3), found.stderr
    assert "Traceback" not in found.stderr, found.stderr
    if found.returncode == 3:
        output = found.stderr + found.stdout
        assert os.strerror(11) in output or "ulimit -u" in output, output
    print(f"{processes} processes: exit {found.returncode}")


@pytest.fixture
def public() -> Iterator[Path]:
    """Yield a folder of the stranger's, which they can reach."""
    with tempfile.TemporaryDirectory(prefix="velodrome-stranger-", ignore_cleanup_errors=True) as folder:
        os.chown(folder, STRANGER, STRANGER)
        yield Path(folder)


def readable_python() -> str:
    """Return an interpreter that every user can run, of the version the engine is built for."""
    wanted = sys.version_info[:2]
    for path in (sys.executable, f"/usr/bin/python{wanted[0]}.{wanted[1]}"):
        tried = subprocess.run(
            ["setpriv", "--reuid", str(STRANGER), "--clear-groups", "sh", "-c", 'exec "$0" -c ""', path],
            capture_output=True,
            check=False,
        )
        if tried.returncode == 0:
            return path
    pytest.skip("no interpreter of this version that other users can run")


@pytest.mark.exhaustive
@own_mounts
def test_without_room_for_temporary_files_that_is_named(where: Path) -> None:
    (where / "calls.toml").write_text(STUDY.replace("LINK", ""))
    kept = "mount -t tmpfs tmpfs /mnt && cp calls.toml /mnt && mount -t tmpfs -o ro tmpfs /var/tmp"
    nowhere = (
        f"{kept} && mount -t tmpfs -o ro tmpfs /tmp && mkdir /mnt/ro && mount -t tmpfs -o ro tmpfs /mnt/ro"
    )
    words = (*VELODROME, "run", "/mnt/calls.toml", "--out", "/mnt/out", "--wait")
    found = ended(words, where, small=f"{nowhere} && cd /mnt/ro", VELODROME_CACHE="/mnt/kept", TMPDIR="/tmp")
    assert found.returncode == 3, found.stdout + found.stderr
    assert "Traceback" not in found.stderr
    assert "temporary" in found.stderr + found.stdout
    assert "TMPDIR" in found.stderr + found.stdout


@own_mounts
@pytest.mark.parametrize(
    ("kilobytes", "file", "fits"),
    [
        (4, "results.jsonl", set()),
        *(
            pytest.param(*case, marks=pytest.mark.exhaustive)
            for case in (
                (8, "results.jsonl", set()),
                (12, "report.html", set()),
                (20, "report.html", {"verdict.json"}),
                (40, "report.html", {"verdict.json", "report.md"}),
            )
        ),
    ],
)
def test_what_cannot_be_written_of_a_race_is_named_and_what_was_written_is_whole(
    kilobytes: int, file: str, fits: set[str], where: Path
) -> None:
    (where / "calls.toml").write_text(STUDY.replace("LINK", ""))
    words = (*VELODROME, "run", "./calls.toml", "--out", "/mnt/out", "--wait")
    small = f"mount -t tmpfs -o size={kilobytes}k tmpfs /mnt"
    keeping = (
        "sh",
        "-c",
        '"$@"; code=$?; mkdir kept; cp /mnt/out/* kept 2>/dev/null; exit $code',
        "sh",
    )
    found = ended((*keeping, *words), where, small=small)
    one_sentence(found, f"/mnt/out/{file}", os.strerror(28))
    kept = where / "kept"
    results = (kept / "results.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in results]
    raced = len(results) == 1 + 2
    assert raced == (file != "results.jsonl")
    # What has no room hides neither the verdict nor what is small enough.
    assert ("results" in found.stdout and "/mnt/out/results.jsonl" in found.stdout) == raced
    assert {path.name for path in kept.iterdir()} - {"results.jsonl"} == fits
    if "verdict.json" in fits:
        json.loads((kept / "verdict.json").read_text())


READ_ONLY_ROOT = "mount -o remount,bind,ro / && mount -t tmpfs tmpfs /mnt"


@own_mounts
@pytest.mark.parametrize(
    ("words", "variables", "facts"),
    [
        pytest.param(
            RUN,
            {"VELODROME_CACHE": ""},
            (".cache/velodrome", "VELODROME_CACHE"),
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            RUN,
            {"VELODROME_CACHE": "/mnt", "VELODROME_LOCK": "", "TMPDIR": "/mnt"},
            ("runs/", "results.jsonl"),
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            ("capacity", "--recipe", "hello", "--stack", "io-generators"),
            {"VELODROME_CACHE": "/mnt", "VELODROME_LOCK": "", "TMPDIR": "/usr"},
            ("/usr", "TMPDIR"),
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_a_root_that_is_read_only_is_named(
    words: Sequence[str], variables: Mapping[str, str], facts: Sequence[str], where: Path
) -> None:
    found = ended((*VELODROME, *words), where, small=READ_ONLY_ROOT, HOME="/root", **variables)
    one_sentence(found, os.strerror(30), *facts)


CALLS = {
    "load": "vd.load('plain:app', rate=10)",
    "compare": "vd.compare('plain:app')",
    "race": "vd.race('first-lap', quick=True)",
    "capacity": "vd.capacity('plain:app', stack='waitress')",
}


@pytest.mark.parametrize(
    "call", [pytest.param(call, marks=() if call == "load" else pytest.mark.exhaustive) for call in CALLS]
)
def test_python_gets_the_same_by_an_error_of_velodrome_s(call: str, where: Path) -> None:
    code = (
        "import resource, sys, velodrome as vd\n"
        f"def call():\n    try: {CALLS[call]}\n"
        "    except vd.VelodromeError as error: print(type(error).__name__, error.exit_code, error)\n"
        f"vd.{call}\ncall()\n"
        f"import os; os.environ['VELODROME_CACHE'] = {str(where / 'cache')!r}\n"
        "opened = len(os.listdir('/proc/self/fd'))\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 2, 4096))\n"
        "call()\n"
    )
    found = ended((sys.executable, "-c", code), where, VELODROME_CACHE="/proc/nowhere")
    assert found.returncode == 0, found.stderr
    first, second = found.stdout.splitlines()
    assert first.startswith("CacheError 3 ")
    assert "/proc/nowhere" in first
    assert second.startswith("ExhaustedError 3 ")
    assert os.strerror(24) in second


@pytest.mark.exhaustive
def test_a_test_gets_a_sentence_too(where: Path) -> None:
    (where / "test_shop.py").write_text("def test_it(velodrome):\n    velodrome.load('plain:app', rate=10)\n")
    words = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shop.py")
    found = ended(words, where, VELODROME_CACHE="/proc/nowhere")
    assert found.returncode == 1
    assert "test_shop.py:2: the cache /proc/nowhere" in found.stdout
    assert "Traceback" not in found.stdout


WHO = {
    "engine": ("drivers.engine_process", "velodrome", ("SIGKILL", "signal 9")),
    "third party": ("run.upstream_process", "third party", ("SIGKILL",)),
    "relay": ("run.relay_process", "relay", ("SIGKILL",)),
    "warden": ("warden.py", "warden", ("killed",)),
}


@pytest.mark.parametrize(
    "who",
    [
        "warden",
        *(pytest.param(who, marks=pytest.mark.exhaustive) for who in ("engine", "third party", "relay")),
    ],
)
def test_who_dies_in_mid_span_fails_that_trial_by_name_and_the_race_goes_on(who: str, where: Path) -> None:
    sign, name, how = WHO[who]
    if who == "relay" and not ROOT:
        pytest.skip("a link needs root")
    link = 'link = {rtt = "2ms", jitter = "0.1ms"}' if who == "relay" else ""
    (where / "calls.toml").write_text(STUDY.replace("LINK", link))
    words = (*VELODROME, "run", "./calls.toml", "--out", "out", "--wait")
    env = {**os.environ, "VELODROME_CACHE": str(where / "cache")}
    with subprocess.Popen(
        words, cwd=where, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as race:
        us = psutil.Process(race.pid)
        engine = until(lambda: children(us, "drivers.engine_process"), race)
        until(lambda: sends(engine[0]), race)
        victims = engine if who == "engine" else children(us, sign)
        if who == "warden":
            victims = [
                victim
                for victim in victims
                if any("io_generators" in " ".join(c.cmdline()) for c in victim.children())
            ]
        assert victims, who
        os.kill(victims[0].pid, signal.SIGKILL)
        out, _ = race.communicate(timeout=60)
    assert race.returncode == 0, out
    assert "Traceback" not in out
    _, first, second = map(json.loads, (where / "out" / "results.jsonl").read_text().splitlines())
    assert (first["kind"], second["kind"]) == ("failed", "measurement"), out
    assert first["failure"] == "load"
    assert name in first["reason"], first["reason"]
    assert any(phrase in first["reason"] for phrase in how), first["reason"]


def sends(engine: psutil.Process) -> bool:
    """Whether a load generator has connections, in whatever network it is."""
    links = [os.readlink(path) for path in Path(f"/proc/{engine.pid}/fd").iterdir() if path.is_symlink()]
    sockets = {link[8:-1] for link in links if link.startswith("socket:[")}
    table = Path(f"/proc/{engine.pid}/net/tcp").read_text().splitlines()[1:]
    return any(row.split()[3] == "01" and row.split()[9] in sockets for row in table)


def children(of: psutil.Process, sign: str) -> list[psutil.Process]:
    found = []
    for process in of.children(recursive=True):
        try:
            if any(sign in word for word in process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def until(look: Callable[[], Found | None], race: subprocess.Popen[str]) -> Found:
    """Return what is looked for as soon as it is there, while the race runs."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit and race.poll() is None:
        try:
            if found := look():
                return found
        except (psutil.NoSuchProcess, OSError):
            pass
        time.sleep(0.01)
    raise AssertionError("it never came")
