"""A server of the user's own is given no option that its version does not know."""

import pytest

from velodrome.guest import catalog
from velodrome.guest.stack import Launch, before


def options(stack: str, **packages: str) -> set[str]:
    found = catalog.stack(stack)
    knobs = {**found.knobs, "workers": 2}  # some options are for several
    launch = Launch("127.0.0.1", 8000, "shop:app", knobs, packages)
    return {word.partition("=")[0] for word in found.command(launch).argv}


@pytest.mark.parametrize(
    ("stack", "package", "old", "option"),
    [
        ("gunicorn-sync", "gunicorn", "25.0.3", "--no-control-socket"),
        ("gunicorn-asgi", "gunicorn", "25.1.0", "--http-parser"),
        ("uvicorn", "uvicorn", "0.36.1", "--timeout-worker-healthcheck"),
        ("uvicorn", "uvicorn", "0.21.0", "--timeout-graceful-shutdown"),
        ("granian-asgi", "granian", "1.7.6", "--runtime-threads"),
        ("granian-wsgi", "granian", "1.7.6", "--http1-header-read-timeout"),
    ],
)
def test_an_option_is_left_out_for_a_version_before_it(
    stack: str, package: str, old: str, option: str
) -> None:
    assert option in options(stack)
    assert option not in options(stack, **{package: old})


def test_versions_are_compared_by_their_numbers() -> None:
    assert before({"gunicorn": "9.0"}, "gunicorn", (25,))
    assert not before({"gunicorn": "25.0.0rc1"}, "gunicorn", (25,))
    assert not before({}, "gunicorn", (25,))
