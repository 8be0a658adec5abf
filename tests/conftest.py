"""Golden files: `pytest --renew-golden` writes them anew; look at the difference before you commit it."""

import gc
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from velodrome.model import secrets
from velodrome.run.machine import measuring_lock

pytest_plugins = ["tests.kinds", "tests.restless"]

TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden"
LONG = {
    TESTS / "test_restless.py",
    TESTS / "test_installed.py",
    TESTS / "report/test_html_in_chromium.py",
    TESTS / "usecases/test_standing.py",
    TESTS / "usecases/test_stored_capacity.py",
}
"""Files that take half a minute or more and would come in the last third."""

# The same examples each day, so that what fails was broken by a change; `make test-all` draws others (`drawn`). No
# example has a deadline, and none is too slow: on a busy machine any of them is.
BUSY = (HealthCheck.too_slow,)
settings.register_profile(
    "daily", deadline=None, derandomize=True, max_examples=50, suppress_health_check=BUSY
)
settings.register_profile(
    "drawn", deadline=None, print_blob=True, max_examples=300, suppress_health_check=BUSY
)
settings.load_profile("daily")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--renew-golden", action="store_true", help="write golden files anew instead of comparing"
    )


def pytest_configure() -> None:
    """Of two workers each may race: what they measure is not looked at, or stands in the tests that are `measured`."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker:
        run = os.environ["PYTEST_XDIST_TESTRUNUID"]
        os.environ[measuring_lock.VARIABLE] = str(Path(tempfile.gettempdir()) / f"{run}-{worker}.lock")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with long files: whoever takes one last lets all other workers wait."""
    items.sort(key=lambda item: item.path not in LONG)


def pytest_collection_finish() -> None:
    """What is imported by now stays: no collection of garbage needs to look at it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nothing_secret() -> Iterator[None]:
    """What one test takes for a secret is none of another's: the registry belongs to the process."""
    secrets.forget()
    yield
    secrets.forget()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the golden file of that name."""

    def compare(name: str, text: str, folder: Path = GOLDEN) -> None:
        path = folder / name
        if request.config.getoption("--renew-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is missing; write it: pytest --renew-golden"
        assert text == path.read_text(encoding="utf-8"), (
            f"{name} changed; if that is right: pytest --renew-golden"
        )

    return compare
