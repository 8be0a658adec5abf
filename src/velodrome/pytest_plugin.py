"""The fixture `velodrome` for pytest: loads a server or an app; a test never passes by luck (docs/pytest.md).

    def test_checkout(velodrome):
        r = velodrome.load("shop.wsgi:application", rate=200)
        assert r.p99 < ms(50)

A figure whose interval reaches across its limit fails the test with «insufficient data» and how much longer to load.
"""

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from velodrome.api.loads import Velodrome


@pytest.fixture
def velodrome() -> "Velodrome":
    """Load servers and apps: `velodrome.load(app_or_url, rate=200, duration=10) -> r`."""
    # Not before a test asks: importing it takes longer than most tests.
    from velodrome.api.loads import Velodrome  # noqa: PLC0415

    return Velodrome()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report what is undecided, and what else is wrong with a load, in a sentence instead of a traceback."""
    report = yield
    if call.excinfo is not None and "velodrome" in getattr(item, "fixturenames", ()):
        from velodrome.model.errors import VelodromeError  # noqa: PLC0415

        error = call.excinfo.value
        if isinstance(error, VelodromeError):
            report.longrepr = f"{item.location[0]}:{_line(item, call)}: {error}"
    return report


def _line(item: pytest.Item, call: pytest.CallInfo[Any]) -> int:
    """Return the line of the test's file in which it happened."""
    assert call.excinfo is not None
    inside = [entry.lineno for entry in call.excinfo.traceback if Path(str(entry.path)) == item.path]
    return (inside[-1] if inside else item.location[1] or 0) + 1
