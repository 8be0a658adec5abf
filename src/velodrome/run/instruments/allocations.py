"""Which line of the app allocates what its requests leave behind.

    found = allocations.kept(trial, lab, AS_IT_IS)
    found.lines[0].place      # /srv/shop/cart.py:31
    found.each                # bytes of that for each request
    diagnosis = allocations.name_line(diagnosis, found)

Tracing slows every allocation down: it names a place, and measures nothing.
"""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from velodrome.guest.injected.allocations import BEGIN, END
from velodrome.model.diagnosis import Diagnosis, Evidence, Treatment
from velodrome.model.quantity import significant
from velodrome.model.trial import Trial
from velodrome.run.instruments.standing import Standing, standing
from velodrome.run.lab import Lab

TRACED = Treatment("allocations traced", {"allocations": True})
CONNECTIONS = 8
FILLING_S, TRACED_S = 1.5, 2.5
"""Loads before tracing begins, in which caches fill, and while it goes on."""
ANSWERED_S, STABLE_S, POLL_S = 10.0, 0.3, 0.05
"""All processes have answered when in so much no further one has; at most."""
TAKES_S = FILLING_S + TRACED_S + 3.0

EACH, SHARE = 64, 0.3
"""Bytes that a line leaves for each request, and their share in what all lines leave, from which on it is named."""


@dataclass(frozen=True)
class Line:
    """A line of the app's own code, and what it allocated that is still there."""

    place: str
    """`/srv/shop/cart.py:31`."""
    text: str
    bytes: int
    blocks: int


@dataclass(frozen=True)
class Kept:
    """What is left of some requests."""

    lines: tuple[Line, ...]
    """Those with most bytes first."""
    requests: int

    @property
    def each(self) -> float:
        """Bytes of the first line for each request."""
        return self.lines[0].bytes / max(self.requests, 1)

    @property
    def share(self) -> float:
        """Of the first line, in the bytes of all."""
        return self.lines[0].bytes / max(sum(line.bytes for line in self.lines), 1)


def kept(trial: Trial, lab: Lab, treatment: Treatment) -> Kept:
    """Load a server of its own, and return what is left. Raises as `standing` does, and NoServerError."""
    with standing(trial, lab, treatment.plus(TRACED)) as server:
        server.warm()
        server.run_closed_loop(CONNECTIONS, FILLING_S)
        (server.folder / BEGIN).touch()
        began = _answered(server, "began", 1)
        answers = server.run_closed_loop(CONNECTIONS, TRACED_S).load.answers
        (server.folder / END).touch()
        lines = [line for told in _answered(server, "kept", len(began)) for line in told["kept"]]
        return Kept(_by_place(lines), round(answers))


def name_line(found: Diagnosis, left: Kept) -> Diagnosis:
    """Return a diagnosis with the line that allocates most of what is left; as it is, where none stands out."""
    if found.cure is None or not left.lines or left.each < EACH or left.share < SHARE:
        return found
    line = left.lines[0]
    sentence = (
        f"{left.share:.0%} of what {left.requests} requests left was allocated at {line.place}, "
        f"{significant(left.each)} bytes each: {line.text}"
    )
    return replace(
        found,
        reason=f"{found.reason}; {sentence}",
        evidence=(
            *found.evidence,
            Evidence("allocations", sentence, {"lines": [asdict(line) for line in left.lines]}),
        ),
        cure=replace(found.cure, where=line.place, before=line.text),
    )


def _answered(server: Standing, what: str, least: int) -> list[dict[str, Any]]:
    """Return the lines of all processes that have such an answer."""
    until, since, before = time.monotonic() + ANSWERED_S, time.monotonic(), -1
    while True:
        found = [line for line in server.read_lines("traced") if what in line]
        now = time.monotonic()
        if len(found) != before:
            before, since = len(found), now
        if now > until or (len(found) >= least and now - since > STABLE_S):
            return found
        time.sleep(POLL_S)


def _by_place(lines: list[Mapping[str, Any]]) -> tuple[Line, ...]:
    size, blocks, texts = Counter[str](), Counter[str](), dict[str, str]()
    for line in lines:
        place = f"{line['file']}:{int(line['line'])}"
        size[place] += int(line["bytes"])
        blocks[place] += int(line["blocks"])
        texts[place] = str(line["text"])
    return tuple(Line(place, texts[place], count, blocks[place]) for place, count in size.most_common())
