"""The command that measures one cell of a comparison of apps again: such a study has no file to name."""

import shlex
from collections.abc import Collection

from velodrome.model.app import App
from velodrome.model.limits import Limits
from velodrome.model.load import Closed
from velodrome.model.request import Request
from velodrome.model.secrets import MARK
from velodrome.model.study import Question
from velodrome.model.trial import Contestant

FILE = "REQUESTS"
"""Stands for the file, where requests came from one: what they say does not go on a line."""
BODY = "BODY"
"""Stands for the file of what a simulated third party answers, where that does not go on a line."""


def compare(app: App, contestant: Contestant, question: Question, limits: Limits) -> str | None:
    """Return the command line; values of environment variables are those of the shell it is typed in.

    None for a revision of an app: the folder it ran in was laid out for that race alone, and is gone.
    """
    if app.revision:
        return None
    words = ["velodrome", "compare", app.path, "--stack", contestant.stack]
    words += ["--python", app.python, "--cwd", app.cwd]
    words += ["--interface", app.named_interface] if app.named_interface else []
    words += ["--proto", app.proto] if app.proto else []
    lines = [_line(one, app.headers) for one in app.requests]
    if None in lines or len({one.weight for one in app.requests}) > 1:
        words += ["--requests", FILE]
    else:
        words += [word for line in lines for word in ("--request", str(line))]
    for name in app.headers:
        words += ["--header", f"{name}: {MARK}"]  # which is refused until the value stands there
    words += [word for name in app.variables for word in ("--env", name)]
    for third in app.third_parties:
        words += ["--upstream", third.text(BODY)]
    for load in question.loads:
        pace = load.pace
        words += (
            ["-c", str(pace.connections), "-z", f"{load.duration_s:g}s"]
            if isinstance(pace, Closed)
            else ["--rate", f"{pace.rate:g}"]
        )
    words += ["--link", question.link.typed] if question.link is not None else []
    words += ["--cpus", str(limits.cpus)] if limits.cpus is not None else []
    words += ["--memory", _memory(limits.memory_bytes)] if limits.memory_bytes else []
    return shlex.join(words)


def _memory(count: int) -> str:
    return f"{count // 1024}k" if count % 1024 == 0 else f"{count // 1000}kB"


def _line(asked: Request, everywhere: Collection[str]) -> str | None:
    """Return a request as it is typed, None where a line does not say all of it; headers `everywhere` stand beside."""
    besides = {"content-type", *(name.lower() for name in everywhere)}
    given = [name for name, _ in asked.headers if name.lower() not in besides]
    if given or asked.expect_body or asked.expect_contains or (asked.body and asked.body.base64):
        return None
    body = f" {asked.body.text}" if asked.body else ""
    status = f" -> {asked.expect_status}" if asked.expect_status is not None else ""
    return f"{asked.method} {asked.path}{body}{status}"
