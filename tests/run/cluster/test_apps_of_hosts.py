"""Apps that only the agents' host has: the command runs where a file system without them is mounted over theirs."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.run.cluster.posing import HOST, agent

from velodrome.model.errors import ExaminationRefusedError
from velodrome.model.measurement import Measurement
from velodrome.run.cluster import coordinator
from velodrome.run.lab import OnHosts
from velodrome.run.racing import store
from velodrome.usecases.apps import AppSpec, only_hosts_have
from velodrome.usecases.events import Events
from velodrome.usecases.look_on_hosts import look_there
from velodrome.usecases.race import BY_ROLES

SECRET = "hunter22-hunter22"
APP = f"""
def app(environ, start):
    known = environ.get("HTTP_X_API_KEY") == {SECRET!r}
    start("200 OK" if known else "401 Unauthorized", [("Content-Length", "1")])
    return [b"x"]
"""
HIDDEN = 'mount -t tmpfs none "$1" && shift && exec "$@"'


def is_hidden_here(folder: Path) -> bool:
    """Whether a process can be run that sees nothing of a folder: it takes root, and namespaces of mounts."""
    try:
        seen = subprocess.run(
            ["unshare", "-m", "sh", "-c", HIDDEN, "sh", folder, "ls", folder],
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        return False
    return not seen.returncode and not seen.stdout


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an app that commands are not to see."""
    (tmp_path / "host" / "shop").mkdir(parents=True)
    (tmp_path / "host" / "shop" / "shop.py").write_text(APP)
    if not is_hidden_here(tmp_path / "host"):
        pytest.skip("needs root and unshare(1): run the tests as root on Linux")
    monkeypatch.setenv("VELODROME_LOCK", str(tmp_path / "measuring.lock"))
    return tmp_path / "host" / "shop"


@pytest.fixture
def address() -> Iterator[str]:
    with coordinator.coordinating(HOST, 0, 0) as found, agent(found, "a"):
        yield found


def velodrome(there: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command that does not see where the app is."""
    hides = ("unshare", "-m", "sh", "-c", HIDDEN, "sh", str(there.parent))
    about = ("--cwd", str(there), "-H", f"X-Api-Key: {SECRET}")
    return subprocess.run(
        [*hides, sys.executable, "-m", "velodrome", *words, *about],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TERM": "dumb"},
    )


def test_an_app_that_only_the_agents_host_has_is_looked_at_there(there: Path, address: str) -> None:
    ran = velodrome(there, "compare", "shop:app", "--stack", "waitress", "--dry-run", "--agents", address)
    assert ran.returncode == 0, ran.stderr
    assert f"waitress beside shop:app on {sys.executable}" in ran.stdout


@pytest.mark.exhaustive
def test_it_is_raced_there(there: Path, address: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("--stack", "waitress", "--blocks", "1", "--duration", "0.5", "--agents", address)
    ran = velodrome(there, "compare", "shop:app", *words, "--out", str(out))
    assert ran.returncode in (0, 4), ran.stderr
    run = store.read(out)
    assert run.trials
    for trial in run.trials:
        assert isinstance(trial, Measurement)
        assert trial.load.ok == trial.load.requests > 0
        assert trial.machine is not None
        assert trial.machine.name == "host-of-a"
    apps = [trial.trial.app for trial in run.trials if "~" not in trial.trial.question]
    assert apps
    assert all(app == run.header.study.questions[0].app for app in apps), (
        "requests are known again by their command"
    )
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())


def test_what_is_wrong_with_it_there_is_said_with_the_name_of_the_agent(address: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP)
    for app, cwd in (("shop:nosuch", tmp_path), ("shop:app", tmp_path / "none")):
        with pytest.raises(ExaminationRefusedError) as error:
            look_there([AppSpec(app, cwd=str(cwd))], address, None, BY_ROLES, Events())
        assert (error.value.name, error.value.exit_code) == ("a", 2)
    with agent(address, "b"), pytest.raises(ExaminationRefusedError) as error:
        look_there([AppSpec(app, cwd=str(cwd))], address, None, OnHosts(server="host-of-b"), Events())
    assert error.value.name == "b", "the host that is named to serve is the one that looks"


@pytest.mark.exhaustive
def test_it_is_tuned_there(there: Path, address: str, tmp_path: Path) -> None:
    words = ("--stack", "waitress", "--budget", "40s", "--agents", address, "--out", str(tmp_path / "run"))
    ran = velodrome(there, "tune", "shop:app", *words)
    assert ran.returncode in (0, 4), ran.stderr
    assert store.read(tmp_path / "run").trials


def test_a_missing_folder_is_an_error_where_agents_are_of_this_machine(tmp_path: Path) -> None:
    spec = AppSpec("shop:app", cwd=str(tmp_path / "none"))
    assert only_hosts_have(spec, "tls://10.0.0.1:8786")
    assert not only_hosts_have(spec, "2")
    assert not only_hosts_have(spec, "")
    assert not only_hosts_have(AppSpec("shop:app", cwd=str(tmp_path)), "tls://10.0.0.1:8786")
