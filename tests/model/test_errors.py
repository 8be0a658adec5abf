"""Every message that velodrome composes from facts, one golden file per family: review sentences there."""

import errno
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

import pytest

from velodrome.model import errors
from velodrome.model.errors import VelodromeError, apps, cluster, lab, load, usage
from velodrome.model.files import Problem

LINES = ("Traceback (most recent call last):", "ConnectionRefusedError: [Errno 111] Connection refused")
CURE = "Install it: apt install wrk"

USAGE: Sequence[VelodromeError] = (
    usage.UnknownNameError("stack", "guvicorn", ["gunicorn", "uvicorn", "waitress"]),
    usage.UnknownNameError("study", "nothing-like-it", ["first-lap"]),
    usage.BadOptionError("--rate", "-5", "write requests per second above 0"),
    usage.CredentialsInUrlError("http://me:word@127.0.0.1:8000/cart"),
    usage.MisplacedOptionError("--ws-mode", "http://127.0.0.1:8000/", "ws"),
    usage.MisplacedOptionError("--streams", "http://127.0.0.1:8000/", "grpc", "--http2"),
    usage.NeedlessOptionError(["--setup"], "a recipe needs no other process"),
    usage.NeedlessOptionError(["--setup", "--env"], "a recipe needs no other process"),
    usage.WithoutAgentsError(["--keys", "--send"]),
    usage.RequestsFileError("requests.toml", [f"request {n}: 'FETCH' is no method" for n in range(12)]),
    usage.AccessLogError("access.log", "line 1 is in no known format"),
    usage.OpenApiError("api.yaml", "it describes no operation"),
    usage.TooLargeError("api.yaml", "#/paths/~1items/get", "2 000 000 values"),
    usage.RequestLineError("GET cart", "a path begins with /"),
    usage.NoSourceError("velodrome requests --access-log access.log > requests.toml"),
    usage.TwoSourcesError(["--access-log", "--openapi"]),
    usage.UnknownKnobError("waitress", "worker", ["threads"]),
    usage.NoStudiesError("./grp/"),
    usage.BrokenPluginError("stack", "mine", "line 3: invalid syntax"),
    usage.StudyFileError("mine.toml", [Problem(12, 5, "rate: -5 is no rate"), Problem(3, 1, "no questions")]),
    usage.NothingSelectedError("helo/uvicorn", ["hello/uvicorn", "hello/waitress"]),
    usage.MissingLibraryError("pandas"),
    usage.UntrustedError("mine.toml", ["executes './serve.sh' (contestant old)"]),
    usage.UnknownLoadMetricError("p99th", ["p99", "p99.9", "errors"]),
    usage.NeverMeasuredError("tls.p99 < 3ms", "tls.p99", ["sent", "lag", "first"], ["rate", "errors", "cpu"]),
    usage.ConditionError("p99 > 50", 6, "50 needs a unit, such as 50ms"),
    usage.ConditionError("p99 < 50", 6, "50 needs a unit, such as 50ms"),
    usage.SloError("p99 > 50ms and errors < 1%", "p99 > 50ms", "at most"),
    usage.ThresholdError("p99 +", "write a metric and by how much it may become worse"),
    usage.InsufficientDataError("rate: 4 900/s to 5 100/s, and the limit is 5 000/s", "load longer"),
)

APPS: Sequence[VelodromeError] = (
    apps.AppRaisesError("shop:app", LINES, "Start the database before: --setup 'docker compose up -d'"),
    apps.AppEndsError("shop:app", "sys.exit(2)"),
    apps.AppEndsError("shop:app", "sys.exit(2)", LINES),
    apps.AppHangsError("shop:app", 20),
    apps.AppHangsError("shop:app", 20, LINES),
    apps.AppNameError("shop:ap", "shop", "ap", ["app", "db"]),
    apps.AppNameError("shop", "shop", "", [f"name{n}" for n in range(10)]),
    apps.AppNameError("shop", "shop", "", []),
    apps.AppNameError("shop:app.x", "shop", "x", [], "app"),
    apps.AppNameError("shop:site.ap", "shop", "ap", ["app", "db"], "site"),
    apps.AppPathError("shop/", "there is no such file"),
    apps.AppUnfitError("shop:make", "the coroutine function make", [], awaited=True),
    apps.AppUnfitError("shop:make", "the function make", ["settings", "debug="]),
    apps.AppUnfitError("shop:make", "the function make", ["settings"]),
    apps.AppUnfitError("shop:app", "a dict", []),
    apps.SameAppError("shop:app", "shop:app"),
    apps.SameAppError("shop:app", "./shop.py:app"),
    apps.AppFolderError("/srv/shop", "there is no such folder"),
    apps.AppInterpreterError("/usr/bin/python3.6", "3.6.9", "3.8"),
    apps.AppVariableError("SECRET", "it is not set here"),
    apps.EnvFileError("shop.env", 3, "it has no ="),
    apps.HeaderFileError("headers.txt", 3, "it has no colon"),
    apps.HeaderError("X Y", "a name has no spaces"),
    apps.WithheldHeaderError("GET /cart", "Authorization"),
    apps.WithheldRequestError("POST /login", "body"),
    apps.WithheldAnswerError("PAY_URL"),
    apps.NoStackFitsError("shop:app", ["wsgi"], ["uvicorn"], ["gunicorn-sync", "waitress"]),
    apps.NoStackFitsError("shop:app", ["rsgi"], [], []),
    apps.AppNotServedError("shop:app", "uvicorn", "it does not answer", LINES),
    apps.AppNotServedError("shop:app", "uvicorn", "it accepts connections and does not finish a response"),
    apps.TooSlowError("shop:app", 6.1, 259.0, 270.0),
    *(
        apps.AppAnswersWrongError("shop:app", "uvicorn", reason, lines, third_parties)
        for reason, lines, third_parties in (
            ("GET /: status 404", (), ()),
            ("GET /: status 400", (), ()),
            ("GET /: status 401", (), ()),
            ("GET /: status 500", LINES, ()),
            ("GET /: status 500", LINES, ("PAY_URL", "MAIL_URL")),
            ("GET /old: status 301, which leads to «/new»", (), ()),
            ("GET /: status 301, which leads to «https://shop.example/»", (), ()),
            ("grpc-status 12", (), ()),
        )
    ),
    apps.CommandFailedError("--setup", "make db", "exit status 2", LINES),
    apps.TeardownInterruptedError("make clean", 3),
    apps.TeardownInterruptedError("make clean", 3, "stopped; 4 of 9 trials are kept."),
    apps.AppNotFoundError("<Flask 'shop'>"),
    apps.AppInTestError("<Flask 'shop'>", "tests/test_shop.py", "app"),
    apps.AppInProgramError("<Flask 'shop'>", "/srv/try_it.py", "app"),
    apps.GitError("rev-parse HEAD~1", "not a git repository"),
    apps.RevisionError("HEAD~9", "git knows no such revision"),
    apps.NotFromRevisionError("shop:app", "HEAD~1", "/srv/shop/__init__.py"),
)

LOAD: Sequence[VelodromeError] = (
    load.LoadRefusedError("refusing to load 10.0.0.1: not loopback"),
    load.EngineError("this machine has no room for 70 000 connections"),
    load.IdleError("10 of 20 000 were refused", LINES),
    load.NothingAnsweredError("http://127.0.0.1:1/", "connection refused"),
    load.NothingAnsweredError("http://127.0.0.1:1/", ""),
    load.DriverMissingError("wrk", CURE),
    load.DriverTooOldError("wrk", "/usr/bin/wrk", "3.9", "4.0", CURE),
    load.DriverTooOldError("wrk", "/usr/bin/wrk", "", "4.0", CURE),
    load.UnknownDriverError("wrq", ["ab", "wrk"]),
    load.UnfitLoadError("wrk", "rate", 500, "it has only a closed loop"),
    load.DriverError("velodrome", 1, LINES),
    load.DriverError("velodrome", -11, ()),
    load.DriverTimedOutError("wrk", 5, ()),
    load.DriverTimedOutError("wrk", 5, (), "Lower the number of connections"),
    load.DriverStoppedError("wrk"),
    load.DriverFailedError("wrk", 1, LINES),
    load.DriverFailedError("wrk", -9, (), "Lower the number of connections"),
    load.DriverOutputError("wrk", "4.2.0", "no line «Requests/sec»", LINES),
    load.MostlyFailedError("wrk", 9500, 10000, ["bad_status"]),
    load.MostlyFailedError("wrk", 9500, 10000, []),
    load.NothingAskedError("wrk", 10),
)

LAB: Sequence[VelodromeError] = (
    lab.UvMissingError(),
    lab.InterpreterNotFoundError("3.6", "uv finds none"),
    lab.EnvironmentFailedError("bjoern", "it does not build", "apt install libev-dev", ["fatal: ev.h"]),
    lab.EnvironmentFailedError("bjoern", "it does not build", "apt install libev-dev"),
    lab.CalibrationError("/usr/bin/python3", "it ended with exit status 1"),
    *(
        lab.StartRefusedError(stage, what, number)
        for stage, what, number in (
            ("fork", "", errno.EAGAIN),
            ("fork", "", errno.EMFILE),
            ("group", "/sys/fs/cgroup/velodrome", errno.EACCES),
            ("affinity", "7", errno.EINVAL),
            ("rlimit", "RLIMIT_AS", errno.EPERM),
            ("user", "nobody", errno.EPERM),
            ("cwd", "/srv/shop", errno.ENOENT),
            ("exec", "/srv/python", errno.ENOENT),
            ("warden", "", 0),
            ("session", "", errno.EPERM),
        )
    ),
    lab.LimitError("cpus = 9", "velodrome may use 2 (0, 1)", "Give a number from 1 to 2"),
    lab.NoPortError("127.0.0.1", 20),
    lab.ServerNotReadyError("uvicorn", "it did not start", LINES),
    lab.NoServerError("uvicorn", "it died", LINES, tried=True),
    lab.NoServerError("uvicorn", "uvicorn cannot run here."),
    lab.ProfilerError("permission denied.", "Run velodrome as root"),
    lab.AccountError("shop", "there is no such user on this machine", "see: getent passwd"),
    lab.UpstreamError("its process ended", LINES),
    lab.CompanionMissingError(
        "mariadb", "MariaDB", "mariadbd is not on PATH", "mariadb-server", "mysql://u@h/db"
    ),
    lab.CompanionMissingError("mongodb", "MongoDB", "velodrome starts none", "", "mongodb://h/db"),
    lab.CompanionFailedError("MariaDB", "it ended", LINES),
    lab.ProgramError("velodrome.guest.hops", "exit status 1", LINES),
    *(
        lab.LinkRefusedError(stage, number, what)
        for stage, number, what in (
            ("system", 0, ""),
            ("namespace", errno.EPERM, ""),
            ("device", errno.ENOENT, ""),
            ("congestion", errno.ENOENT, "bbr"),
            ("address", errno.EPERM, "the address 10.0.0.1"),
        )
    ),
    lab.LinkError("rtt40ms", "its relay has died", LINES),
    lab.BusyError("study first-lap, process 17", 0),
    lab.BusyError("", 30),
    lab.LockError("/tmp/velodrome.lock", "it is a folder"),
    lab.RaceInterruptedError("runs/mine", 4, 9),
    lab.NothingMeasuredError("runs/mine/results.jsonl"),
    lab.ClaimsFailedError("articles/io-models", ["G5a"]),
    lab.ClaimsFailedError("articles/io-models", ["G5a", "G6"]),
    lab.OutputError("runs/mine", "no space left on device"),
    lab.OutputPathError("--csv", "/out.csv", "permission denied"),
    lab.ResultsError("runs/mine/results.jsonl", 7, "it is no JSON"),
    lab.ResultsError("runs/mine", 0, "no such file"),
    lab.ResultsInUseError("runs/mine"),
    lab.ResultsExistError("runs/mine"),
    lab.StudyChangedError("runs/mine", ["the seed changed", "the loads changed"]),
    lab.DifferentMachinesError(["2 CPUs and 4 CPUs"]),
    lab.OtherStudyError("runs/a", "first-lap", "runs/b", "shop"),
    lab.SameTrialsError("runs/a", "runs/b"),
    lab.SameTrialsError("runs/a", "runs/a"),
    lab.OtherClaimsError("first-lap", "runs/a", "shop"),
    lab.UnreadableVerdictError("runs/mine/verdict.json", "it is cut short"),
    lab.NotTwoSidesError(["mine"], [], []),
    lab.OtherRequestsError("shop:app", ("a", "GET /cart", "POST /cart"), ("b", "GET /")),
    lab.OtherArrivalsError("hello", "open-500", ("a", "constant"), ("b", "poisson")),
    lab.NotTwoSidesError(["a", "b"], ["hello/uvicorn"], []),
    lab.CacheError("/home/me/.cache/velodrome", errno.EACCES),
    lab.CacheError("/home/me/.cache/velodrome", errno.ENOSPC),
    lab.NoHomeError(1000),
    lab.ScratchError("/tmp", "no space left on device"),
    lab.FullError(["/tmp", "/home"], "no space left on device"),
    lab.FullError([], "no space left on device"),
    lab.ExhaustedError("open files", 1024, "too many open files"),
    lab.ExhaustedError("memory", None, "cannot allocate memory"),
    lab.TerminalError("standard output", "no space left on device"),
    lab.BrokenInstallationError("scipy", "no module named 'scipy'"),
    lab.UnforeseenError("KeyError", "'x'", "/home/me/.cache/velodrome/crashes/1.txt"),
    lab.UnforeseenError("KeyError", "", "", "no space left on device"),
)

CLUSTER: Sequence[VelodromeError] = (
    cluster.ClusterMissingError("No module named 'distributed'"),
    cluster.ClusterAddressError("http://host/", 64),
    cluster.SshError("10.0.0.2", "its key is not among the known hosts", "Connect once with ssh 10.0.0.2"),
    cluster.ClusterKeysError("/etc/velodrome/host.pem", "it expired on 2026-01-01"),
    cluster.KeysThereError("/etc/velodrome/ca.key"),
    cluster.PlainTcpError("tcp://10.0.0.1:8786"),
    cluster.CoordinatorError("tls://10.0.0.1:8786", "ConnectionRefusedError: Connection refused"),
    cluster.AgentLostError("eu-1", "tls://10.0.0.2:40001", "silent for 1.5 s"),
    cluster.AgentLostError("eu-1", "tls://10.0.0.2:40001", "silent for 1.5 s", last=True),
    cluster.AgentEndedError("tls://10.0.0.1:8786"),
    cluster.AgentRefusedError("eu-1", "it carries another load; wait until that has ended"),
    cluster.AgentsDifferError("version", {"eu-1": "0.1.0", "us-1": "0.2.0"}),
    cluster.NoAgentsError("tls://10.0.0.1:8786"),
    cluster.TooFewCpusError(200_000.0, 3, 8.4, 2),
    cluster.AgentsRefuseRaceError("eu-1", "there is no folder /srv/shop. Copy the app there"),
    cluster.PlacingError("--server-on", "eu-9", "no agent is called so; there are: eu-1 (10.0.0.2)"),
    cluster.PlacingError("--server-on", "", "eu-1 and eu-2 have the role server; name one of them with it"),
    cluster.SendingError(
        "/srv/shop", "data.bin is a link to /data, outside of it", "Have git ignore the link"
    ),
    cluster.LoadElsewhereError("agent eu-1 does not take the load: it carries another load."),
    cluster.AgentsGoneError("runs/x/results.jsonl", 12, 24, "eu-1: silent for 5 s"),
    cluster.ExaminationRefusedError("eu-1", "there is no app shop:app in /srv/shop", 2),
    cluster.ExaminersGoneError(3, 12, "eu-1: silent for 5 s"),
    cluster.NoAgentsError("tls://10.0.0.1:8786", "load", {"eu-1": "server,third-party"}),
    cluster.AgentStartError("PermissionError: [Errno 13] Permission denied: '/root/velodrome'"),
)

FAMILIES: Mapping[str, tuple[ModuleType, Sequence[VelodromeError]]] = {
    "usage": (usage, USAGE),
    "apps": (apps, APPS),
    "load": (load, LOAD),
    "lab": (lab, LAB),
    "cluster": (cluster, CLUSTER),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_messages_of_a_family_read_well(family: str, golden: Callable[[str, str], None]) -> None:
    text = "".join(
        f"{type(error).__name__} (exit code {error.exit_code})\n{error}\n\n" for error in FAMILIES[family][1]
    )
    golden(f"errors-{family}.txt", text)


def test_every_error_is_in_one_of_them_and_can_be_imported_by_its_name() -> None:
    shown = {"UsageError", "VelodromeError"}
    for module, made in FAMILIES.values():
        names = {type(error).__name__ for error in made}
        assert all(getattr(module, name).__module__ == module.__name__ for name in names)
        shown |= names
    assert shown == set(errors.__all__)
    assert all(issubclass(getattr(errors, name), VelodromeError) for name in errors.__all__)


def test_a_sentence_is_one_line_and_leaves_out_what_a_program_printed() -> None:
    for _, made in FAMILIES.values():
        for error in made:
            assert "\n" not in error.sentence
    assert not any(line in lab.CompanionFailedError("MariaDB", "it ended", LINES).sentence for line in LINES)
