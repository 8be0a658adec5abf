"""What was run here, made general, and for what it was measured."""

import pytest
from tests.judge import made

from velodrome.guest import catalog
from velodrome.judge.deploying import circumstances, deploy, with_comment

APP = "velodrome.guest.interfaces.asgi:app"


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (
            (
                "/cache/env-1/bin/python",
                "-m",
                "uvicorn",
                "--host=127.0.0.1",
                "--port=40123",
                "--workers=2",
                APP,
            ),
            "python -m uvicorn --host=127.0.0.1 --port=8000 --workers=2 yourmodule:app",
        ),
        (
            ("/e/bin/python", "-m", "server", "--port", "40123", "--threads", "40123", APP),
            "python -m server --port 8000 --threads 40123 yourmodule:app",
        ),
        (
            ("/e/bin/python", "-m", "gunicorn", "--bind=127.0.0.1:40123", APP),
            "python -m gunicorn --bind=127.0.0.1:8000 yourmodule:app",
        ),
        (
            (
                "/e/bin/python",
                "-m",
                "hypercorn",
                "-b",
                "127.0.0.1:40123",
                "asgi:velodrome.guest.interfaces.asgi:make_app()",
            ),
            "python -m hypercorn -b 127.0.0.1:8000 'asgi:yourmodule:make_app()'",
        ),
        (
            ("/e/bin/python", "-m", "granian", "--port=40123", "--log-level=warning", "--workers=2", APP),
            "python -m granian --port=8000 --workers=2 yourmodule:app",
        ),
        (
            (
                "/e/bin/python",
                "-m",
                "gunicorn",
                "--log-level",
                "warning",
                "--graceful-timeout=2",
                "--threads=4",
                APP,
            ),
            "python -m gunicorn --threads=4 yourmodule:app",
        ),
        (
            ("/e/bin/python", "-m", "daphne", "--endpoint=tcp:interface=127.0.0.1:port=40123:backlog=9", APP),
            "python -m daphne --endpoint=tcp:interface=127.0.0.1:port=8000:backlog=9 yourmodule:app",
        ),
        # What one server takes for a laboratory's setting may be another's own.
        (
            ("/e/bin/python", "-m", "server", "--timeout=120", APP),
            "python -m server --timeout=120 yourmodule:app",
        ),
        (("/e/bin/python", "-m", "velodrome.guest.stacks.tornado", "40123"), "velodrome stacks show mine"),
        ((), "velodrome stacks show mine"),
    ],
)
def test_interpreter_app_and_address_are_replaced(command: tuple[str, ...], line: str) -> None:
    assert deploy(command, "mine") == line


@pytest.mark.parametrize(
    ("server", "log"),
    [
        ("uvicorn", "Access log off, as measured; on by default: "),
        ("gunicorn", "Access log off, as measured; on with --access-logfile: "),
        ("cheroot", "Access log off, as measured."),
    ],
)
def test_what_is_pasted_says_for_how_many_cpus_and_that_the_access_log_was_off(server: str, log: str) -> None:
    text = circumstances(made.measured(made.trial("one"), 300.0), catalog.servers()[server])
    assert text.startswith("Measured for 1 CPU")
    assert log in text


def test_a_line_that_starts_nothing_has_no_such_comment() -> None:
    measured = made.measured(made.trial("one"), 300.0)
    assert with_comment("velodrome stacks show mine", measured, None) == "velodrome stacks show mine"
    assert with_comment("python -m mine", measured, None).startswith("# Measured for 1 CPU")
    assert with_comment("python -m mine", None, None) == "python -m mine"
