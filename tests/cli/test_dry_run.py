"""`--dry-run` says what would be started, where and for how long, and starts nothing."""

import json
from pathlib import Path

from tests.cli.running import velodrome
from tests.shop_repository import slower

SHOP = """
def application(environ, start_response):
    raise SystemExit("served")
"""


def test_a_comparison_is_shown_with_its_servers_loads_and_length_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    words = ["--stack", "waitress", "--rate", "70", "--blocks", "2", "--setup", "touch begun", "--dry-run"]
    shown = velodrome(tmp_path, "compare", "shop:application", *words)
    assert shown.returncode == 0, shown.stderr
    assert "the rate of an open loop" not in shown.stdout
    for fact in ("2 server sessions", "4 loads", "2 blocks", "shop:application/waitress", "open-70", "CPU "):
        assert fact in shown.stdout
    assert "with 1 and 2 workers before it is recommended" in shown.stdout
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"shop.py"}


def test_a_rate_that_only_the_race_finds_is_announced_with_how_it_is_found(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    shown = velodrome(tmp_path, "compare", "shop:application", "--stack", "waitress", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    for fact in ("first a look: 1 server session", "the rate of an open loop", "70 %", "half of the best"):
        assert fact in shown.stdout
    assert "open-" not in shown.stdout


def test_of_a_study_that_is_shown_only_what_is_chosen_would_start(tmp_path: Path) -> None:
    words = ["--quick", "--only", "hello/waitress", "--link", "rtt=40ms", "--dry-run"]
    shown = velodrome(tmp_path, "run", "first-lap", *words)
    assert shown.returncode == 0, shown.stderr
    assert "hello-rtt40ms/waitress" in shown.stdout
    assert "1 server session" in shown.stdout
    assert "uvicorn" not in shown.stdout
    assert not list(tmp_path.iterdir())


def test_every_study_of_a_group_is_shown(tmp_path: Path) -> None:
    shown = velodrome(tmp_path, "run", "articles", "--quick", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count("CPUs ") > 3


def test_a_search_shows_the_loads_it_begins_with_and_how_it_goes_on(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    words = ["--stack", "waitress", "--slo", "p99 < 50ms", "--setup", "touch begun", "--dry-run", "--json"]
    words += ["--budget", "90s"]
    shown = velodrome(tmp_path, "capacity", "shop:application", *words)
    assert shown.returncode == 0, shown.stderr
    plan = json.loads(shown.stdout)
    (session,) = plan["sessions"]
    assert [load["load"] for load in session["loads"]] == ["closed-1", "closed-32"]
    assert len(plan["environments"]) == 1
    assert "40 loads at most" in "".join(plan["adaptive"])
    assert "20, 50, 80, 95 %" in "".join(plan["adaptive"])
    assert "120, 150 %" in "".join(plan["adaptive"])
    assert plan["budget_s"] == 90
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"shop.py"}


def test_a_tuning_shows_the_first_load_of_each_stack_once_and_its_budget(tmp_path: Path) -> None:
    words = ["--recipe", "hello", "--stack", "uvicorn*", "--budget", "3m", "--dry-run"]
    plan = json.loads(velodrome(tmp_path, "tune", *words, "--json").stdout)
    stacks = [session["stack"] for session in plan["sessions"]]
    assert len(stacks) > 1
    assert len(stacks) == len(set(stacks)) == len(plan["environments"])
    assert plan["budget_s"] == 180
    assert "budget 3 min" in velodrome(tmp_path, "tune", *words).stdout


def test_a_diff_of_revisions_shows_its_blocks_and_that_more_may_follow(tmp_path: Path) -> None:
    folder = slower(tmp_path / "shop")
    words = ["HEAD~1", "HEAD", "--app", "shop:app", "--stack", "waitress", "--dry-run", "--format", "json"]
    undecided = json.loads(velodrome(folder, "diff", *words).stdout)
    assert len(undecided["sessions"]) == 2 * 4
    assert undecided["adaptive"]
    fixed = json.loads(velodrome(folder, "diff", *words, "--blocks", "1").stdout)
    assert [session["question"] for session in fixed["sessions"]] == ["before", "after"]
    assert not fixed["adaptive"]
    assert not (folder / "runs").exists()
