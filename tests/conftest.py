"""Golden files: `pytest --renew-golden` writes them anew; look at the difference before you commit it."""

from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--renew-golden", action="store_true", help="write golden files anew instead of comparing"
    )


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
