"""Which line of the app allocates what its requests leave behind.

    found = allocations.kept(trial, lab, AS_IT_IS)
    found.lines[0].place      # /srv/shop/cart.py:31
    found.each                # bytes of that for each request
    diagnosis = allocations.name_line(diagnosis, found)

Tracing slows every allocation down: it names a place, and measures nothing.
"""

from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from velodrome.guest.injected.allocations import BEGIN, END
from velodrome.model.diagnosis import Diagnosis, Evidence, Treatment
from velodrome.model.quantity import significant
from velodrome.model.trial import Trial
from velodrome.run.instruments import processes
from velodrome.run.instruments.standing import Standing, standing
from velodrome.run.lab import Lab

TRACED = Treatment("allocations traced", {"allocations": True})
CONNECTIONS = 8
FILLING_S, TRACED_S = 1.5, 2.5
"""Loads before tracing begins, in which caches fill, and while it goes on."""
ANSWERED_S, SETTLES_S = 10.0, 0.3
"""For the answers of all processes, at most, and without a further one."""
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
        began = _ask(server, BEGIN, "began")
        answers = server.run_closed_loop(CONNECTIONS, TRACED_S).load.answers
        return Kept(_by_place(_ask(server, END, "kept", len(began))), round(answers))


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


def _ask(server: Standing, question: str, answer: str, least: int = 1) -> list[dict[str, Any]]:
    return server.ask(
        question,
        "traced",
        lambda line: answer in line,
        least,
        without=processes.helpers(server),
        within_s=ANSWERED_S,
        settles_s=SETTLES_S,
    )


def _by_place(answers: list[dict[str, Any]]) -> tuple[Line, ...]:
    size, blocks, texts = Counter[str](), Counter[str](), dict[str, str]()
    for answer in answers:
        with suppress(KeyError, TypeError, ValueError, OverflowError):  # a foreign process may write anything
            for line in answer["kept"]:
                place, text = f"{line['file']}:{int(line['line'])}", str(line["text"])
                left = int(line["bytes"]), int(line["blocks"])
                size[place] += left[0]
                blocks[place] += left[1]
                texts[place] = text
    return tuple(Line(place, texts[place], count, blocks[place]) for place, count in size.most_common())
