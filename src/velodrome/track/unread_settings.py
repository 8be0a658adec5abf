"""What a server would read by itself beside an app, and does not while stacks are compared."""

from collections.abc import Sequence
from pathlib import Path

from velodrome.guest.stack import Stack
from velodrome.model.app import App
from velodrome.run.environments.lock import name_of

FILE, VARIABLE = "gunicorn.conf.py", "GUNICORN_CMD_ARGS"
SERVER = "gunicorn"


def told(app: App, stacks: Sequence[Stack]) -> str:
    """Return a sentence for whoever has such settings and one of these stacks would read them; else nothing."""
    if not any(name_of(line) == SERVER for one in stacks for line in one.requires):
        return ""
    found = [f"./{FILE}"] if (Path(app.cwd) / FILE).is_file() else []
    found += [VARIABLE] if VARIABLE in app.variables else []
    if not found:
        return ""
    verb = "are" if len(found) > 1 else "is"
    return (
        f"{' and '.join(found)} {verb} not read while stacks are compared: {SERVER} runs with the settings that are "
        "shown and no others. A command line that is pasted there reads it again, and wins where both set the same"
    )
