"""Which kind a test is: `unit`, `simulation`, `integration` or `measured`.

A unit test starts no process; one that tries to fails with what it tried to start. So does a simulation, in which the
judge sees hundreds of made-up races and must err as seldom as it says; it takes seconds. Integration tests boot
servers, run commands or load what needs an engine or a browser. Measured tests put load on something and look at the
figures, so they run alone. A test is `integration` by its room, or by its mark; `measured` and `simulation` always by
their mark; else it is `unit`.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

INTEGRATION_ROOMS = ("api", "cli", "conformance", "guest", "robustness", "run", "truth", "usecases")
STARTS = ("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen")

_without_processes: list[str] = []


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the rooms of integration tests alone where only unit tests are to run: to import them takes longer."""
    if not str(config.option.markexpr).startswith("unit") or room(collection_path) not in INTEGRATION_ROOMS:
        return None
    return None if collection_path.is_dir() or "mark.unit" in collection_path.read_text() else True


def pytest_configure(config: pytest.Config) -> None:
    sys.addaudithook(_refuse_processes)


def _refuse_processes(event: str, args: tuple[object, ...]) -> None:
    if _without_processes and event in STARTS:
        what = f"{_without_processes[-1]} starts no process by its kind, and starts one ({event} {args[:2]!r:.200})"
        raise RuntimeError(f"{what}; mark it pytest.mark.integration")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        kinds = ("integration", "measured", "simulation", "unit")
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
    alone = any(item.get_closest_marker(kind) for kind in ("simulation", "unit"))
    if alone:
        _without_processes.append(item.nodeid)
    try:
        return (yield)
    finally:
        if alone:
            _without_processes.pop()
