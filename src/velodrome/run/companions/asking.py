"""The first question a companion is asked, by a program of the guest's, because that is where its clients are."""

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from velodrome.run.account import acting
from velodrome.run.companions.companion import Ground
from velodrome.run.servers import INHERITED
from velodrome.run.supervision.python import guest
from velodrome.run.supervision.ward import Exit, Order, Ward

PAUSE_S = 0.1
"""Between two looks whether the companion still lives."""


@dataclass(frozen=True)
class Answered:
    """What a program of the guest's ended with."""

    said: str
    """Its standard output."""
    trouble: str
    """Why it failed: the last line of its standard error, or how it ended; empty if it did not fail."""


def ask(
    python: Path,
    arguments: Sequence[str],
    variables: Mapping[str, str],
    ground: Ground,
    exited: Callable[[], Exit | None],
) -> Answered | Exit:
    """Run `python -m arguments` to its end; returns how the companion ended if that is what happened first."""
    env = {
        **{name: os.environ[name] for name in INHERITED if name in os.environ},
        "PYTHONNOUSERSITE": "1",
        **variables,
    }
    begun = guest(python, ground.guest_tree, *arguments, env=env)
    order = Order(begun.argv, begun.env, begun.cwd or "/", cpus=ground.cpus, user=acting())
    with tempfile.TemporaryFile() as output, Ward(order, output.fileno()) as ward:
        while (ended := ward.wait(PAUSE_S)) is None:
            if (died := exited()) is not None:
                return died
        ward.stop()
        output.seek(0)
        said = output.read().decode(errors="replace").strip()
        trouble = (" ".join(ward.tail.lines(1)) or ended.sentence) if ended.code else ""
    return Answered(said, trouble)
