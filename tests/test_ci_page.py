"""The workflow of docs/ci.md: it is whole, its options exist, and its steps run as a runner runs them."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.shop_repository import commit, git

pytestmark = pytest.mark.integration
PAGE = Path(__file__).parents[1] / "docs" / "ci.md"


def workflows() -> list[Any]:
    # BaseLoader: `on` is a word.
    return [yaml.load(text, yaml.BaseLoader) for text in blocks()]


def blocks() -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


def test_every_input_is_declared_and_used_and_the_caller_gives_what_there_is() -> None:
    reusable, caller = workflows()
    inputs = reusable["on"]["workflow_call"]["inputs"]
    assert set(re.findall(r"inputs\.([\w-]+)", blocks()[0])) == set(inputs)
    secrets = reusable["on"]["workflow_call"]["secrets"]
    assert set(re.findall(r"secrets\.([\w-]+)", blocks()[0])) == set(secrets)
    assert set(caller["jobs"]["speed"]["secrets"]) <= set(secrets)
    given = caller["jobs"]["speed"]["with"]
    assert set(given) <= set(inputs)
    assert {name for name, declaration in inputs.items() if declaration.get("required")} <= set(given)
    assert caller["jobs"]["speed"]["uses"].startswith("./.github/workflows/velodrome.yml")


def test_nothing_of_a_callers_is_pasted_into_a_script_and_every_script_is_one() -> None:
    for step in every_step():
        script = step.get("run", "")
        assert "${{" not in script
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def every_step() -> list[Any]:
    jobs = [job for workflow in workflows() for job in workflow["jobs"].values()]
    return [step for job in jobs for step in job.get("steps", ())]


def test_every_action_is_named_by_its_commit_with_the_version_beside_it() -> None:
    used = re.findall(r"uses: (\S+@\S+)(.*)", blocks()[0])
    assert len(used) == len([step for step in every_step() if "uses" in step])
    for action, comment in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment)


def test_no_checkout_keeps_the_token() -> None:
    checkouts = [step for step in every_step() if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert all(step["with"]["persist-credentials"] == "false" for step in checkouts)


def test_the_job_whose_token_writes_has_no_code_of_the_pull_request() -> None:
    reusable, caller = workflows()
    assert reusable["permissions"] == caller["permissions"] == {}
    jobs = reusable["jobs"]
    assert jobs["diff"]["permissions"] == {"contents": "read"}
    (writes,) = (job for job in jobs.values() if "write" in job["permissions"].values())
    assert writes["permissions"] == {"pull-requests": "write"}
    assert not [step for step in writes["steps"] if step.get("uses", "").startswith("actions/checkout@")]
    assert not re.search(
        r"python|pip|velodrome|bash |\./", "".join(step.get("run", "") for step in writes["steps"])
    )
    assert set(caller["jobs"]["speed"]["permissions"]) == {"contents", "pull-requests"}


def test_secrets_go_into_files_that_are_taken_away_and_never_into_a_command_line() -> None:
    (race,) = (step for step in every_step() if step.get("id") == "race")
    named = {name for name, value in race["env"].items() if "secrets." in value}
    assert named == {"VARIABLES", "HEADERS"}
    uses = [line for line in race["run"].splitlines() if re.search(r"\$(VARIABLES|HEADERS)\b", line)]
    assert len(uses) == len(named)
    assert all(line.startswith("printf ") and ' > "$secrets/' in line for line in uses)
    assert race["run"].index("umask 077") < race["run"].index("mktemp")
    assert "trap 'rm -rf" in race["run"]


def test_everything_is_installed_by_hash_and_as_wheels() -> None:
    installed = re.findall(r"pip\"? install .*", "".join(step.get("run", "") for step in every_step()))
    assert installed
    assert all("--require-hashes --only-binary :all:" in line for line in installed)


def test_every_option_that_it_gives_exists() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "velodrome", "diff", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"},
    ).stdout
    (race,) = (step for step in every_step() if step.get("id") == "race")
    options = set(re.findall(r"(?<=\s)--[a-z-]+", race["run"]))
    assert options
    assert {option for option in options if option not in shown} == set()


@pytest.mark.exhaustive
@pytest.mark.measured
@pytest.mark.parametrize(("seconds", "passes"), [(0.03, False), (0.002, True)], ids=["slower", "the same"])
def test_its_steps_tell_a_slower_pull_request_from_one_that_is_not(
    tmp_path: Path, seconds: float, passes: bool
) -> None:
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    made(origin, seconds)
    run("git", "clone", "--quiet", str(origin), str(clone))
    run("git", "-C", str(clone), "checkout", "--quiet", "origin/change")
    run(sys.executable, "-m", "venv", "--without-pip", str(clone / ".venv"))
    tools = tmp_path / "velodrome" / "bin"
    tools.mkdir(parents=True)
    (tools / "velodrome").write_text(f'#!/bin/sh\nexec {sys.executable} -P -m velodrome "$@"\n')
    (tools / "velodrome").chmod(0o755)
    output = tmp_path / "output"
    env = {
        **os.environ,
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_BASE_REF": "main",
        "GITHUB_OUTPUT": str(output),
        "APP": "shop:app",
        "REQUEST": "GET /",
        "RATE": "40",
        "THRESHOLD": "p50 +50%",
        "BUDGET": "45s",
        "VARIABLES": "SHOP_NAME=blue green\n",
        "HEADERS": "Host: shop.example\nAuthorization: Bearer s3cret\n",
    }
    _, _, _, race, junit, _, last = workflows()[0]["jobs"]["diff"]["steps"]
    step(race["run"], clone, env)
    stored = (clone / "speed" / "results.jsonl").read_text()
    assert '"Authorization"' in stored
    assert "s3cret" not in stored
    code = output.read_text().strip().removeprefix("code=")
    assert (clone / "speed.md").read_text().startswith("### ")
    step(junit["run"], clone, env)
    assert "<testsuite" in (clone / "speed.xml").read_text()
    ended = subprocess.run(["bash", "-e", "-c", last["run"]], env=env | {"CODE": code}, check=False)
    if code == "4":
        assert ended.returncode == 0
        report = (clone / "speed.md").read_text()
        pytest.skip(f"this machine was too busy to tell within {env['BUDGET']}: {report}")
    assert code == ("0" if passes else "1")
    assert (ended.returncode == 0) == passes


def step(script: str, folder: Path, env: dict[str, str]) -> None:
    subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=env, check=True, timeout=110)


def run(*words: str) -> None:
    subprocess.run(words, check=True)


def made(origin: Path, seconds: float) -> None:
    """Make a repository with a branch `change` in which the app waits so long."""
    origin.mkdir()
    git(origin, "init", "--quiet", "-b", "main")
    for branch, waits in (("main", 0.002), ("change", seconds)):
        if branch != "main":
            git(origin, "checkout", "--quiet", "-b", branch)
        commit(origin, branch, waits, end=f"# {branch}\n")
