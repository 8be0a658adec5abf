"""Environments: made once, whole or not at all, from the lock where it covers."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from velodrome.guest import catalog
from velodrome.guest.stack import Process, Stack
from velodrome.model.errors import EnvironmentFailedError
from velodrome.run.environments import environment, installing
from velodrome.run.environments.environment import available, environment_for


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of the test's own; uv keeps what it has downloaded in its own."""
    monkeypatch.setenv("VELODROME_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def small() -> Stack:
    """A stack that ships whose environment is small."""
    return catalog.stack("waitress")


def unlocked(*requires: str, **changed: Any) -> Stack:
    stack = Stack("theirs", "", "", "wsgi", "sync", lambda launch: Process(()), requires=requires)
    return dataclasses.replace(stack, **changed)


def home(made: environment.Environment) -> Path:
    return made.python.parents[1]


def imported(python: Path, code: str) -> str:
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def test_it_has_the_pinned_packages_and_nothing_of_the_host(small: Stack) -> None:
    made = environment_for(small)
    assert {f"{name}=={version}" for name, version in made.packages.items()} == set(catalog.requires(small))
    assert made.locked
    assert imported(made.python, "import waitress; print('yes')") == "yes"
    assert imported(made.python, "import velodrome") == "ModuleNotFoundError: No module named 'velodrome'"
    assert imported(made.python, "import platform; print(platform.python_version())") == made.version


def test_it_is_compiled_when_it_is_made_not_when_a_server_first_starts(small: Stack) -> None:
    packages = next((home(environment_for(small)) / "lib").glob("python*")) / "site-packages"
    assert list((packages / "waitress" / "__pycache__").glob("*.pyc"))


def test_the_second_time_it_is_there_already(small: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    first = environment_for(small)
    monkeypatch.setattr(environment, "_make", None)
    assert environment_for(small) == first


def test_stacks_with_the_same_requirements_share_one(small: Stack) -> None:
    other = dataclasses.replace(small, name="other")
    assert environment_for(other) == environment_for(small)


def test_of_many_that_want_it_at_once_one_makes_it(small: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    make = environment._make

    def counted(*arguments: Any) -> Mapping[str, Any]:
        made.append(arguments)
        return make(*arguments)

    monkeypatch.setattr(environment, "_make", counted)
    with ThreadPoolExecutor(6) as pool:
        all_of_them = list(pool.map(lambda _: environment_for(small), range(6)))
    assert len(made) == 1
    assert all_of_them == all_of_them[:1] * 6


def test_one_whose_making_was_interrupted_is_made_anew(small: Stack) -> None:
    first = environment_for(small)
    (home(first) / "velodrome.json").unlink()
    (home(first) / "left over").touch()
    assert environment_for(small) == first
    assert not (home(first) / "left over").exists()


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (lambda file: file.write_bytes(file.read_bytes()[:-1]), "bytes instead of"),
        (lambda file: file.write_bytes(b""), "has 0 bytes instead of"),
        (lambda file: file.unlink(), "is missing"),
        (lambda file: os.utime(file, (1, 1)), "was changed"),
    ],
)
@pytest.mark.parametrize(
    "name",
    [
        "waitress/server.py",
        pytest.param("waitress/__pycache__/server.*.pyc", marks=pytest.mark.exhaustive),
        pytest.param("waitress-*/RECORD", marks=pytest.mark.exhaustive),
    ],
)
def test_one_of_which_a_file_is_not_as_it_was_made_is_made_anew_and_that_is_reported(
    small: Stack, name: str, harm: Callable[[Path], object], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first = environment_for(small)
    (file,) = next((home(first) / "lib").glob("python*/site-packages")).glob(name)
    own = file.read_bytes()
    file.unlink()  # uv's cache has the same file under another name
    file.write_bytes(own)
    harm(file)
    assert environment_for(small) == first
    errors = capsys.readouterr().err
    assert sentence in errors
    assert "waitress is installed again" in errors
    assert installing.damage(home(first)) == ""
    assert imported(first.python, "import waitress.server; print('yes')") == "yes"


def test_all_of_it_is_on_the_disk_before_it_is_called_whole_and_whole_before_it_has_its_name(
    small: Stack, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a power cut may leave is what was there at some moment before the next of these."""
    seen = []

    def named() -> list[str]:
        return [path.name for path in (cache / "envs").glob("[0-9a-f]*") if path.is_dir()]

    sync, sync_folder = installing.sync, installing.sync_folder

    def all_synced(folder: Path) -> None:
        seen.append(("all", (folder / installing.RECORD).exists(), named()))
        sync(folder)

    def folder_synced(folder: Path) -> None:
        seen.append(("names", (folder / installing.RECORD).exists(), named()))
        sync_folder(folder)

    monkeypatch.setattr(installing, "sync", all_synced)
    monkeypatch.setattr(installing, "sync_folder", folder_synced)
    made = home(environment_for(small))
    assert seen == [("all", False, []), ("names", True, []), ("names", False, [made.name])]


def test_links_into_uv_s_cache_are_no_environment_when_that_is_emptied(
    small: Stack, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_LINK_MODE", "symlink")
    made = home(environment_for(small))
    (linked,) = (made / "lib").glob("python*/site-packages/waitress/server.py")
    linked.unlink()
    linked.symlink_to(cache / "gone")
    assert "server.py" in installing.damage(made)


def test_a_file_that_came_later_is_no_damage(small: Stack) -> None:
    first = environment_for(small)
    (home(first) / "lib" / "later.pyc").touch()
    assert installing.damage(home(first)) == ""


def test_it_can_be_used_from_where_it_was_put(small: Stack) -> None:
    made = environment_for(small)
    script = home(made) / "bin" / "waitress-serve"
    done = subprocess.run([script, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert ".building" not in script.read_text()
    assert [path.name for path in home(made).parent.iterdir() if path.is_dir()] == [home(made).name]


def test_one_whose_interpreter_has_gone_is_made_anew(small: Stack) -> None:
    first = environment_for(small)
    first.python.unlink()
    assert environment_for(small) == first
    assert imported(first.python, "print(1)") == "1"


def test_a_stack_without_requirements_has_a_clean_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "requires", lambda stack, served=None: ())
    made = environment_for(unlocked())
    assert made.packages == {}
    assert imported(made.python, "print(1)") == "1"


def test_a_study_s_version_takes_the_place_of_the_pinned_one(small: Stack) -> None:
    (pin,) = [line for line in small.requires if line.startswith("waitress==")]
    made = environment_for(small, None, {"waitress": "3.0.1"})
    assert pin != "waitress==3.0.1"
    assert made.packages["waitress"] == "3.0.1"
    assert not made.locked
    assert home(made) != home(environment_for(small))


def test_what_no_lock_covers_is_resolved_from_the_pinned_requirements() -> None:
    made = environment_for(unlocked("h11==0.16.0"))
    assert not made.locked
    assert made.packages["h11"] == "0.16.0"
    assert json.loads((home(made) / "velodrome.json").read_text())["requires"] == [
        "h11==0.16.0",
        *catalog.requires(unlocked()),
    ]


def test_packages_that_cannot_be_had_are_reported_with_the_last_lines_and_the_cure(cache: Path) -> None:
    impossible = unlocked("waitress==0.0.999")
    assert available(impossible) is None
    with pytest.raises(EnvironmentFailedError) as caught:
        environment_for(impossible)
    message = str(caught.value)
    assert message.startswith(
        "theirs cannot run here: its packages could not be installed. The last lines of uv:\n"
    )
    assert "waitress==0.0.999" in message
    assert message.endswith("Cure: correct the stack's requires, or choose another interpreter")
    assert [path.suffix for path in (cache / "envs").iterdir() if path.is_dir()] == []
    assert available(impossible) == (
        "the last time, its packages could not be installed. "
        "Cure: correct the stack's requires, or choose another interpreter. The next run tries again"
    )


def test_a_requirement_cannot_be_an_option_of_uv() -> None:
    with pytest.raises(EnvironmentFailedError):
        environment_for(unlocked("--help"))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"systems": ("plan9",)}, f"it runs on plan9, not on {sys.platform}. Cure: another machine"),
        (
            {"cpu_features": ("fpu", "avx9000")},
            "its packages are compiled for CPUs with avx9000. Cure: another machine",
        ),
        ({"python": (3, 99)}, "it needs Python 3.99 or newer, not {version}. Cure: --python 3.99"),
        ({"interface": "cgi"}, "its interface 'cgi' does not exist. Cure: one of: {interfaces}"),
    ],
)
def test_a_stack_that_cannot_run_here_says_why_and_is_not_installed(
    changed: dict[str, Any], why: str, cache: Path
) -> None:
    stack = unlocked(**changed)
    version = ".".join(map(str, sys.version_info[:3]))
    assert available(stack) == why.format(version=version, interfaces=", ".join(sorted(catalog.interfaces())))
    with pytest.raises(EnvironmentFailedError):
        environment_for(stack)
    assert not (cache / "envs").exists()


def test_versions_that_a_study_sets_may_run_on_older_interpreters_than_the_pinned_ones() -> None:
    new = unlocked("waitress==3.0.2", python=(3, 99))
    with pytest.raises(EnvironmentFailedError, match=r"it needs Python 3\.99 or newer"):
        environment_for(new)
    assert environment_for(new, packages={"waitress": "2.1.2"}).packages["waitress"] == "2.1.2"
