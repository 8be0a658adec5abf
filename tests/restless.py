"""A machine that is not always ours: tests that measure are tried again, and no others.

What is wrong with velodrome comes out of every attempt; what a host takes from a virtual machine (steal) comes and
goes. Tests that measure are tried again at any failure, and are set aside when the host took CPUs in every attempt: no
figure of such moments shows anything, so velodrome says «insufficient data», and so do these. They never say it of a
quiet machine, nor a larger part of them than a tenth or than the host took of the CPUs meanwhile. A test that does not
measure has one attempt: it waits for what is to happen, with a deadline, and no figure of time decides it. All that was
tried again is listed at the end.
"""

import os
from collections.abc import Generator

import pytest

from velodrome.run.measuring import kernel
from velodrome.run.validity.lab import STEAL_TOLD

ATTEMPTS = 3
SET_ASIDE_AT_MOST = 0.1
"""Part of the tests that measure. In an hour in which the host took an eighth, 4 of 75 failed at the first attempt; in
one in which it took half, 3 of 74 failed at all three."""

_BEGAN = pytest.StashKey[kernel.Counters]()  # of the session, of an attempt
_STOLEN = pytest.StashKey[list[float]]()
_SET_ASIDE = pytest.StashKey[list[str]]()


def stolen(before: kernel.Counters, after: kernel.Counters) -> float:
    """Return the share of all CPUs that the host took in between; 0 where the kernel does not tell."""
    seconds = (after.at_ns - before.at_ns) * 1e-9
    if before.steal_s is None or after.steal_s is None or not seconds:
        return 0.0
    return (after.steal_s - before.steal_s) / seconds / (os.cpu_count() or 1)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_BEGAN] = kernel.read()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in (
        [] if config.option.usepdb else filter(measures, items)
    ):  # a debugger stops at the first failure
        item.add_marker(pytest.mark.flaky(reruns=ATTEMPTS - 1))


def measures(item: pytest.Item) -> bool:
    return item.get_closest_marker("measured") is not None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_BEGAN] = kernel.read()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not report.failed:
        return report
    attempts = item.stash.setdefault(_STOLEN, [])
    attempts.append(stolen(item.stash[_BEGAN], kernel.read()))
    shares = ", ".join(f"{share:.1%}" for share in attempts)
    report.sections.append(("the host took of the CPUs, each time", shares))
    if call.excinfo and measures(item) and len(attempts) == ATTEMPTS and min(attempts) >= STEAL_TOLD:
        item.config.stash.setdefault(_SET_ASIDE, []).append(item.nodeid)
        report.outcome = "skipped"
        why = f"in {ATTEMPTS} attempts the host took {shares} of the CPUs; the last: {call.excinfo.exconly()}"
        report.longrepr = (str(item.path), item.location[1] or 0, f"insufficient data: {why}")
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    if len(session.config.stash.get(_SET_ASIDE, [])) > _at_most(session):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _at_most(session: pytest.Session) -> float:
    part = max(SET_ASIDE_AT_MOST, stolen(session.config.stash[_BEGAN], kernel.read()))
    return max(1.0, part * sum(map(measures, session.items)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = terminalreporter.config.stash.get(_SET_ASIDE, [])
    if lines:
        terminalreporter.write_line(
            f"{len(lines)} set aside, because the host took CPUs in every attempt; a larger part of those that measure "
            f"than {SET_ASIDE_AT_MOST:.0%}, or than it took of the CPUs meanwhile, fails the session."
        )
