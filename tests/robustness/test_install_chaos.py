"""Installation, disturbed: killed at any moment beside another velodrome that waits, a damaged file, an index that does
not answer, a disk that is full. What counts as whole is whole.

The packages are made here, so that no network is needed.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.run.environments import packages

from velodrome.run import cache
from velodrome.run.environments import installing as record

NAMES = [f"part{number}" for number in range(6)]
MODULES = 25
"""Of each package: enough files that a kill falls among them."""
REQUIRES = tuple(f"{name}==1.0" for name in NAMES)
SEED = 13
INSTALL = """
import sys
from velodrome.guest.client import Client
from velodrome.model.errors import VelodromeError
from velodrome.run.environments.environment import for_client
try:
    print(for_client(Client("chaos", "sqlite", "", None, requires=tuple(sys.argv[1:]))).python, flush=True)
except VelodromeError as error:
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    sys.exit(error.exit_code)
"""
IMPORT_ALL = f"import {', '.join(f'{name}.module{MODULES - 1}' for name in NAMES)}; print('whole')"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An index with packages of a few files, and an empty cache."""
    for name, value in packages.of_index(tmp_path / "index").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("VELODROME_CACHE", str(tmp_path / "cache"))
    for name in NAMES:
        files = {f"{name}/module{number}.py": f"NUMBER = {number}\n" * 200 for number in range(MODULES)}
        packages.wheel(tmp_path / "index", name, "1.0", {f"{name}/__init__.py": "", **files})
    return tmp_path / "index"


def installing(**variables: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", INSTALL, *REQUIRES],
        stdout=pipe,
        stderr=pipe,
        text=True,
        env={**os.environ, **variables},
    )


def whole(root: Path) -> Iterator[Path]:
    """Yield the environments that count as whole, by the record alone."""
    for home in (root / "envs").glob("[0-9a-f]*"):
        if home.is_dir() and record.read_record(home) is not None:
            yield home


def imports(home: Path) -> bool:
    done = subprocess.run(
        [record.python_of(home), "-I", "-c", IMPORT_ALL], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() == "whole"


@pytest.mark.parametrize(
    "kills", [4, pytest.param(50, marks=[pytest.mark.exhaustive, pytest.mark.timeout(900)])]
)
def test_whatever_moment_an_installer_is_killed_at_what_counts_as_whole_is_whole(
    index: Path, tmp_path: Path, kills: int
) -> None:
    root = tmp_path / "cache"
    with installing() as plain:
        began = time.monotonic()
        assert plain.wait(60) == 0
    takes = time.monotonic() - began
    moments = random.Random(SEED)
    before = after = waited = 0
    for _ in range(kills):
        shutil.rmtree(root)
        shutil.rmtree(index / "uv")  # uv's own cache: cold, so that kills fall while that is filled too
        with installing() as first:
            until = time.monotonic() + moments.uniform(0.15, 1.05) * takes
            second = None
            while first.poll() is None and time.monotonic() < until:
                if second is None and list((root / "envs").glob("*.lock")):
                    second = installing()  # once the first has the lock, or nearly
                time.sleep(0.005)
            first.kill()
            first.wait()
        found = [imports(home) for home in whole(root)]
        assert all(found), "it counts as whole at the moment of the kill"
        before, after = before + (not found), after + bool(found)
        if second is None:
            second = installing()
        with second:
            out, sentence = second.communicate(timeout=60)
        assert second.returncode == 0, sentence
        waited += f"process {first.pid} of" in sentence
        assert Path(out.strip()).exists()
        (home,) = whole(root)
        assert imports(home)
        assert next(record.differences(home, record.record_of(home) or {}, hashes=True), None) is None
        cache.tidy(print)
        left = [path.name for path in (root / "envs").iterdir() if path.name.startswith(".")]
        assert left == []
    print(
        f"\n{kills} kills in {takes:.2f} s of installation: {before} before it was whole, {after} after; "
        f"{waited} times the second named whom it waits for; every environment whole"
    )
    assert before, "no kill fell into the installation"


def test_a_random_damaged_file_is_noticed_and_mended(index: Path, tmp_path: Path) -> None:
    with installing() as plain:
        assert plain.wait(60) == 0
    (home,) = whole(tmp_path / "cache")
    recorded = json.loads((home / record.RECORD).read_text())
    files = [name for name, was in recorded["files"].items() if len(was) > 1 and was[0] > 0]
    drawn = random.Random(SEED).sample(files, 40)
    for name in drawn:
        path = home / name
        content, was = path.read_bytes(), path.stat()
        path.unlink()  # uv's cache and other environments have it under other names
        path.write_bytes(content[: len(content) // 2])
        assert name in record.damage(home)
        path.write_bytes(content)
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
        assert record.damage(home) == ""
    (home / drawn[0]).unlink()
    with installing() as again:
        _, sentence = again.communicate(timeout=60)
    assert again.returncode == 0
    assert f"{drawn[0]} is missing" in sentence
    assert imports(home)
    print(f"\n{len(drawn)} files of {len(files)} truncated, each noticed")


def test_an_index_that_does_not_answer_is_named(tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/simple"
    with installing(
        VELODROME_CACHE=str(tmp_path / "cache"),
        UV_CACHE_DIR=str(tmp_path / "uv"),
        UV_DEFAULT_INDEX=url,
        UV_HTTP_RETRIES="0",
    ) as ended:
        _, sentence = ended.communicate(timeout=60)
    assert ended.returncode == 3
    assert sentence.startswith("EnvironmentFailedError")
    assert url in sentence
    assert "index can be reached" in sentence
    assert [path for path in (tmp_path / "cache" / "envs").iterdir() if path.is_dir()] == []


def _may_mount() -> bool:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    tried = subprocess.run(
        ["unshare", "-m", "sh", "-c", "mount -t tmpfs tmpfs /mnt"], capture_output=True, check=False
    )
    return tried.returncode == 0


@pytest.mark.skipif(not _may_mount(), reason="only root mounts a small disk")
@pytest.mark.parametrize("kilobytes", [40, 120, 400, 1200])
def test_a_full_disk_is_a_sentence_and_nothing_half_made_stays(
    index: Path, tmp_path: Path, kilobytes: int
) -> None:
    """From too small for an empty environment to too small for its bytecode."""
    small = tmp_path / "small"
    small.mkdir()
    script = (
        f"mount -t tmpfs -o size={kilobytes}k tmpfs {small} && VELODROME_CACHE={small} "
        f'{sys.executable} -c "$INSTALL" {" ".join(REQUIRES)}; code=$?; ls -A {small}/envs; exit $code'
    )
    ended = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "INSTALL": INSTALL},
    )
    assert ended.returncode == 3, ended.stderr
    assert ended.stderr.startswith("EnvironmentFailedError")
    assert "No space left on device" in ended.stderr or "os error 28" in ended.stderr
    assert "VELODROME_CACHE" in ended.stderr
    assert {Path(line).suffix for line in ended.stdout.splitlines()} <= {".lock", ".failed"}
