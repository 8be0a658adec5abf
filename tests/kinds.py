"""Which kind a test is: `unit`, `integration` or `measured`.

A unit test starts no process; one that tries to fails with what it tried to start. Integration tests boot servers, run
commands or load what needs an engine or a browser. Measured tests put load on something and look at the figures, so
they run alone. A test is `integration` by its room, or by its mark; `measured` always by its mark; else it is `unit`.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

INTEGRATION_ROOMS = ("api", "cli", "conformance", "guest", "robustness", "run", "track", "truth", "usecases")
STARTS = ("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen")

_unit_under_way: list[str] = []


def pytest_configure(config: pytest.Config) -> None:
    sys.addaudithook(_refuse_processes)


def _refuse_processes(event: str, args: tuple[object, ...]) -> None:
    if _unit_under_way and event in STARTS:
        what = f"{_unit_under_way[-1]} is a unit test and starts a process ({event} {args[:2]!r:.200})"
        raise RuntimeError(f"{what}; mark it pytest.mark.integration")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        kinds = ("integration", "measured", "unit")
        if not any(item.get_closest_marker(kind) for kind in kinds):
            item.add_marker(
                pytest.mark.integration if room(item.path) in INTEGRATION_ROOMS else pytest.mark.unit
            )


def room(path: Path) -> str:
    """Return the folder of tests/ that a test file is in; empty for one beside them."""
    parts = path.parts
    inside = parts[len(parts) - parts[::-1].index("tests") :] if "tests" in parts else parts[-1:]
    return inside[0] if len(inside) > 1 else ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    unit = item.get_closest_marker("unit") is not None
    if unit:
        _unit_under_way.append(item.nodeid)
    try:
        return (yield)
    finally:
        if unit:
            _unit_under_way.pop()
