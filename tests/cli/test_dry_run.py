"""`--dry-run` says what would be started, where and for how long, and starts nothing."""

from pathlib import Path

from tests.cli.running import velodrome

SHOP = """
def application(environ, start_response):
    raise SystemExit("served")
"""


def test_a_comparison_is_shown_with_its_servers_loads_and_length_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    words = ["--stack", "waitress", "--rate", "70", "--blocks", "2", "--setup", "touch begun", "--dry-run"]
    shown = velodrome(tmp_path, "compare", "shop:application", *words)
    assert shown.returncode == 0, shown.stderr
    for fact in ("2 server sessions", "4 loads", "2 blocks", "shop:application/waitress", "open-70", "CPU "):
        assert fact in shown.stdout
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"shop.py"}


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
