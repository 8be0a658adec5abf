"""Writes docs/stacks.md from the catalog: `.venv/bin/python tools/stacks_page.py`."""

import shlex
from pathlib import Path

from velodrome.guest import catalog
from velodrome.guest.stack import Launch, Stack

PAGE = Path(__file__).parents[1] / "docs" / "stacks.md"
HEAD = """# Stacks

Written by `tools/stacks_page.py` from the files in `guest/stacks/`; [add one](add-a-stack.md).
*Slots* is how many requests a stack can process at once with these settings: its ceiling when requests wait.

| stack | what it is | interface | slots | settings |
|---|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    stacks = list(catalog.stacks().values())
    rows = "".join(map(row, stacks))
    return (
        HEAD
        + rows
        + "\n## Command lines\n\nFor your own app, `yourmodule:app`.\n"
        + "".join(map(section, stacks))
    )


def row(stack: Stack) -> str:
    """Return the row of a stack in the table."""
    slots = stack.slots(stack.knobs)
    knobs = ", ".join(f"{knob}={value}" for knob, value in stack.knobs.items())
    at_once = "unbounded" if slots is None else f"{slots:,}"
    return f"| `{stack.name}` | {stack.about} | {stack.interface} | {at_once} | {knobs} |\n"


def section(stack: Stack) -> str:
    """Return what it takes to run a stack."""
    process = stack.command(Launch("127.0.0.1", 8000, "yourmodule:app", stack.settings({})))
    needs = ", ".join(f"`{line}`" for line in stack.requires) or "nothing"
    python = ".".join(map(str, stack.python))
    line = shlex.join(["python", *process.argv])
    log = f" Access log: {stack.server.access_log}." if stack.server and stack.server.access_log else ""
    return f"\n**{stack.title}** needs {needs}, Python {python} or newer.{log}\n\n```\n{line}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page())
