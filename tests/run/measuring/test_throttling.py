"""Control groups in a made-up /proc: whoever is kept from the CPU by a group above is, however far above it is."""

from pathlib import Path

import pytest

from velodrome.run.measuring.kernel import Throttling

pytestmark = pytest.mark.unit


def machine(folder: Path, kind: str, options: str, groups: str) -> Path:
    """Return a /proc in which a file system of groups is mounted at `folder`/groups."""
    mount, proc = folder / "groups", folder / "proc"
    (mount / "shop" / "web").mkdir(parents=True)
    (proc / "self").mkdir(parents=True)
    (proc / "7").mkdir()
    (proc / "self" / "mountinfo").write_text(f"30 20 0:1 / {mount} rw - {kind} none {options}\n")
    (proc / "7" / "cgroup").write_text(groups)
    return proc


def test_of_version_2_what_a_quota_above_costs_counts(tmp_path: Path) -> None:
    proc = machine(tmp_path, "cgroup2", "rw", "0::/shop/web\n")
    web = tmp_path / "groups" / "shop" / "web"
    (web / "cpu.stat").write_text("usage_usec 12\nthrottled_usec 0\n")
    (web.parent / "cpu.stat").write_text("usage_usec 12\nthrottled_usec 1500000\n")
    (web.parent.parent / "cpu.stat").write_text("usage_usec 12\n")
    assert Throttling(7, proc).seconds() == pytest.approx(1.5)


def test_version_1_tells_nanoseconds(tmp_path: Path) -> None:
    proc = machine(tmp_path, "cgroup", "rw,cpu,cpuacct", "3:cpu,cpuacct:/shop/web\n0::/\n")
    (tmp_path / "groups" / "shop" / "web" / "cpu.stat").write_text(
        "nr_throttled 3\nthrottled_time 250000000\n"
    )
    assert Throttling(7, proc).seconds() == pytest.approx(0.25)


def test_without_a_quota_anywhere_nothing_is_reported(tmp_path: Path) -> None:
    proc = machine(tmp_path, "cgroup2", "rw", "0::/shop/web\n")
    assert Throttling(7, proc).seconds() is None
    assert Throttling(8, proc).seconds() is None, "there is no such process"


@pytest.mark.parametrize(("kind", "options"), [("cgroup2", "rw"), ("cgroup", "rw,cpu")])
def test_both_versions_count_the_periods_of_a_quota_and_those_in_which_it_was_spent(
    kind: str, options: str, tmp_path: Path
) -> None:
    proc = machine(tmp_path, kind, options, "3:cpu:/shop/web\n0::/shop/web\n")
    web = tmp_path / "groups" / "shop" / "web"
    (web / "cpu.stat").write_text("nr_periods 40\nnr_throttled 12\nthrottled_time 1\nthrottled_usec 1\n")
    (web.parent / "cpu.stat").write_text("usage_usec 1\n")
    assert Throttling(7, proc).periods() == (40, 12)
    (web / "cpu.stat").write_text("usage_usec 1\n")
    assert Throttling(7, proc).periods() is None
