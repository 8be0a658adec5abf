"""What a server needs beside an app is ready-made and held to hashes; build code runs only where it is allowed, and
sees nothing of the user's.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tests.run.environments import packages
from tests.run.supervision.ends import lives
from tests.waiting import wait_until

from velodrome.guest import catalog
from velodrome.guest.client import Client
from velodrome.guest.stack import Process, Stack
from velodrome.model.app import App
from velodrome.model.errors import EnvironmentFailedError
from velodrome.run import cache
from velodrome.run.environments import installing
from velodrome.run.environments import installing as record
from velodrome.run.environments.environment import FOLDER, for_client, hashes, overlay_for
from velodrome.run.environments.installing import LIMIT, installer_environment, run_uv
from velodrome.run.environments.interpreter import find_interpreter

CANARY = "canary-8d1f0c"
SEES = """import json, os
with open({seen!r}, "w") as file:
    json.dump(dict(os.environ), file)"""


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An index of the test's own, an empty cache, and secrets in the environment."""
    monkeypatch.setenv("VELODROME_CACHE", str(tmp_path / "cache"))
    for name, value in packages.of_index(tmp_path / "index").items():
        monkeypatch.setenv(name, value)
    for name in (
        "DATABASE_URL",
        "AWS_SECRET_ACCESS_KEY",
        "PRIVATE_TOKEN",
        "UV_PUBLISH_TOKEN",
        "PIP_PASSWORD",
    ):
        monkeypatch.setenv(name, CANARY)
    monkeypatch.setenv("CFLAGS", "-O1")
    packages.wheel(tmp_path / "index", "pedal", "1.0", {"pedal.py": "", "pedal_more.py": "A = 1\n"})
    return tmp_path / "index"


@pytest.fixture
def app(index: Path, tmp_path: Path) -> App:
    """An app in an environment that has nothing."""
    where = tmp_path / "theirs"
    assert (
        run_uv(
            ("venv", "--no-project", f"--python={find_interpreter(None).path}", str(where)), tmp_path
        ).returncode
        == 0
    )
    return App("plain:application", "wsgi", str(where / "bin" / "python"), str(tmp_path))


def needing(*requires: str) -> Stack:
    return Stack("mine", "", "", "wsgi", "sync", lambda launch: Process(()), requires=requires)


def client(*requires: str) -> Client:
    return Client("tiny", "sqlite", "", lambda url: (lambda: None, lambda: None), requires=requires)  # type: ignore[arg-type, return-value]


def of(python: Path) -> dict[str, object]:
    return json.loads((python.parents[1] / record.RECORD).read_text())  # type: ignore[no-any-return]


def test_build_code_does_not_run_unless_that_is_allowed(index: Path, app: App, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    packages.sdist(index, "saddle", "2.0", SEES.format(seen=str(seen)))
    with pytest.raises(EnvironmentFailedError) as caught:
        overlay_for(needing("saddle==2.0"), app)
    assert "--allow-sdist" in caught.value.cure
    assert not seen.exists()


def test_a_new_release_that_is_source_only_is_passed_over_for_what_is_ready_made(
    index: Path, app: App, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    packages.wheel(index, "frame", "1.0", {"frame.py": ""}, needs=("pedal>=1",))
    packages.sdist(index, "pedal", "2.0", SEES.format(seen=str(seen)))
    made = overlay_for(needing("frame==1.0"), app)
    assert made.packages["pedal"] == "1.0"
    assert not seen.exists()


def test_where_it_is_allowed_build_code_sees_no_secret(index: Path, app: App, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    packages.sdist(index, "saddle", "2.0", SEES.format(seen=str(seen)))
    made = overlay_for(needing("saddle==2.0"), app, allow_sdist=True)
    assert made.packages["saddle"] == "2.0"
    there = json.loads(seen.read_text())
    assert CANARY not in seen.read_text()
    assert there["CFLAGS"] == "-O1"
    with pytest.raises(EnvironmentFailedError):
        overlay_for(
            needing("saddle==2.0"), app
        )  # what was built once is not used where building is not allowed


def test_where_uv_itself_may_not_build_that_is_the_cure(index: Path, app: App) -> None:
    packages.sdist(index, "saddle", "2.0", "")
    with (index / "uv.toml").open("a") as settings:
        settings.write("[pip]\nno-build = true\n")
    makes: tuple[Callable[[], object], ...] = (
        lambda: overlay_for(needing("saddle==2.0"), app, allow_sdist=True),
        lambda: for_client(client("saddle==2.0")),
    )
    for make in makes:
        with pytest.raises(EnvironmentFailedError) as caught:
            make()
        assert "no-build" in caught.value.cure
        assert "--allow-sdist" not in caught.value.cure


def test_a_recipe_s_environment_is_built_without_secrets_too(index: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    packages.sdist(index, "saddle", "2.0", SEES.format(seen=str(seen)))
    assert for_client(client("saddle==2.0")).packages["saddle"] == "2.0"
    assert CANARY not in seen.read_text()


def test_installers_see_what_reaches_an_index_and_compilers_where_they_build(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (
        "HTTPS_PROXY",
        "SSL_CERT_FILE",
        "UV_DEFAULT_INDEX",
        "XDG_CACHE_HOME",
        "CC",
        "SECRET",
        "UV_PYTHON",
    ):
        monkeypatch.setenv(name, "x")
    plain, building = installer_environment(builds=False), installer_environment(builds=True)
    assert {"PATH", "HTTPS_PROXY", "SSL_CERT_FILE", "UV_DEFAULT_INDEX", "XDG_CACHE_HOME"} <= set(plain)
    assert not {"CC", "SECRET", "UV_PYTHON"} & set(plain)
    assert set(building) - set(plain) >= {"CC"}
    assert "SECRET" not in building


def test_what_no_shipped_lock_has_a_hash_of_is_recorded_and_reported(
    app: App, capsys: pytest.CaptureFixture[str]
) -> None:
    made = overlay_for(needing("pedal==1.0"), app)
    assert of(made.python)["unhashed"] == ["pedal==1.0"]
    assert "pedal==1.0" in capsys.readouterr().err


def test_a_file_of_a_locked_version_that_is_another_is_refused(index: Path, app: App) -> None:
    (pin,) = [line for line in catalog.stack("waitress").requires if line.startswith("waitress==")]
    assert hashes()["waitress", pin.partition("==")[2]]
    packages.wheel(index, "waitress", pin.partition("==")[2], {"waitress/__init__.py": "forged = True\n"})
    for stack in (needing(pin), needing(pin, "pedal==1.0")):  # also beside what has no hash
        with pytest.raises(EnvironmentFailedError) as caught:
            overlay_for(stack, app)
        assert "hash mismatch" in str(caught.value).lower()


def test_all_that_locks_cover_is_installed_with_hashes() -> None:
    every = hashes()
    for path in FOLDER.glob("*.txt"):
        assert path.read_text().count("--hash=") <= sum(map(len, every.values()))
    assert all(digest.startswith("sha256:") for found in every.values() for digest in found)
    assert ("waitress", "3.0.2") in every


HANGS = """import time, os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open({pid_file!r}, "w") as file:
    file.write(str(os.getpid()))
time.sleep(300)"""
INSTALLS = """
import sys
from velodrome.guest.client import Client
from velodrome.run.environments.environment import for_client
print(for_client(Client("tiny", "sqlite", "", None, requires=tuple(sys.argv[1:]))).python, flush=True)
"""


def locks(path: Path) -> bool:
    """Whether a lock can be had: nobody holds it."""
    number = cache.lock_file(path)
    if number is not None:
        os.close(number)
    return number is not None


def test_a_build_that_hangs_is_ended_and_named(
    index: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    packages.sdist(index, "saddle", "2.0", HANGS.format(pid_file=str(tmp_path / "pid")))
    monkeypatch.setenv(LIMIT, "2s")
    with pytest.raises(EnvironmentFailedError) as caught:
        for_client(client("saddle==2.0"))
    assert "saddle==2.0" in caught.value.reason
    assert "2 s" in caught.value.reason
    assert LIMIT in caught.value.cure
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_the_lock_outlives_a_killed_velodrome_as_long_as_its_installer_lives_and_who_waits_says_for_whom(
    index: Path, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    packages.sdist(index, "saddle", "2.0", HANGS.format(pid_file=str(pid_file)))
    code = [sys.executable, "-c", INSTALLS, "saddle==2.0"]
    with subprocess.Popen(code) as first:
        wait_until(pid_file.exists, 20)
        wait_until(pid_file.read_text, 20)
        building = psutil.Process(int(pid_file.read_text()))
        (locked,) = (tmp_path / "cache" / "envs").glob("*.lock")
        with subprocess.Popen(code, stderr=subprocess.PIPE, text=True) as second:
            assert second.stderr is not None
            sentence = second.stderr.readline()
            assert f"process {first.pid} of " in sentence
            assert "tiny" in sentence
            second.send_signal(signal.SIGINT)
            second.stderr.read()
        # Who would end the build sleeps, so that it surely outlives who had it made.
        wardens = [
            parent for parent in building.parents() if any("warden.py" in word for word in parent.cmdline())
        ]
        assert wardens
        for warden in wardens:
            warden.suspend()
        first.kill()
        first.wait()
        assert lives(building)
        assert not locks(locked)
        for warden in wardens:
            warden.resume()
        wait_until(lambda: locks(locked), 20)
        assert not lives(building), "who comes next may write where this one still writes"


STUDY = """
title = "Hangs"
contestants = [{stack = "mine"}]
[[questions]]
name = "at-once"
recipe = "hello"
loads = [{connections = 4, duration = "0.6s"}]
"""
MINE = """
from velodrome.guest.stack import Process, Stack
stack = Stack('mine', 'Mine', 'mine', 'wsgi', 'sync', lambda launch: Process(()), requires=('saddle==2.0',))
"""


@pytest.mark.measured
@pytest.mark.parametrize(
    "words",
    ["compare plain:application --stack ./mine.py --allow-sdist", "run ./study.toml --stack ./mine.py"],
)
def test_ctrl_c_ends_an_installation_within_two_seconds(index: Path, tmp_path: Path, words: str) -> None:
    pid_file = tmp_path / "pid"
    packages.wheel(index, "urllib3", "2.8.0", {"urllib3.py": ""})  # of the recipe's interface
    packages.sdist(index, "saddle", "2.0", HANGS.format(pid_file=str(pid_file)))
    (tmp_path / "plain.py").write_text("def application(environ, start_response): ...\n")
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "study.toml").write_text(STUDY)
    with subprocess.Popen(
        [sys.executable, "-m", "velodrome", *words.split()], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as running:
        wait_until(lambda: pid_file.exists() and pid_file.read_text(), 30)
        building = int(pid_file.read_text())
        running.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, sentence = running.communicate(timeout=20)
        assert time.monotonic() - began < 2.0
        assert running.returncode == 130, sentence
    wait_until(lambda: not psutil.pid_exists(building), 2.0)


def test_a_waiter_that_waits_for_ever_gives_up_and_names_whom(
    index: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = for_client(client("pedal==1.0")).python.parents[1]
    (made / record.RECORD).unlink()
    monkeypatch.setenv(LIMIT, "0.5s")
    with (
        installing._lock_environment(made.with_suffix(".lock"), "somebody"),
        pytest.raises(EnvironmentFailedError, match=f"process {os.getpid()} of"),
    ):
        for_client(client("pedal==1.0"))
