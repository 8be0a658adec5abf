"""What to do about an app that raises when it is imported, by what it lacked."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Lacking:
    """What it lacked, as `guest/apps/lacks.py` tells."""

    missing: str | None
    """A module."""
    variable: str | None
    """Of its environment."""
    unanswered: bool
    """Something that it connects to."""


def cure(module: str, python: str, cwd: str, lacking: Lacking) -> str:
    """Return a sentence to whoever named that module of an app, for that interpreter, in that folder."""
    if lacking.variable is not None:
        return _of_variable(lacking.variable)
    if lacking.missing is not None:
        return _of_module(module, python, cwd, lacking.missing)
    if lacking.unanswered:
        return (
            "Something it needs does not answer: start it before, also with --setup 'docker compose up -d --wait', "
            "or say where it is with --env"
        )
    return f"See that it imports there: cd {cwd} && {python} -c 'import {module}'"


def _of_variable(name: str) -> str:
    if name in os.environ:
        return f"Of your environment it sees only what you hand on: --env {name}"
    return f"It wants a variable, which is not set here either: --env {name}=…"


def _of_module(module: str, python: str, cwd: str, missing: str) -> str:
    if module.partition(".")[0] == missing.partition(".")[0]:
        return f"It was looked for in {cwd}; name the folder it lies in with --cwd"
    beside = Path(cwd) / ".venv" / "bin" / "python"
    if beside.exists() and str(beside) != python:
        return f"It ran on {python}; perhaps you mean --python {beside}"
    return f"{missing} is not installed for {python}; install it there, or name another with --python"
