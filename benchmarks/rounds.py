"""Interleaved rounds and what comes of them: medians with their spread, as a table."""

import argparse
import random
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from neighbours import Neighbours

from velodrome.run.machine import measuring_lock

ROUNDS = 5
Contestant = TypeVar("Contestant")
Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Table:
    """The result of a benchmark. `rows` holds text only; the first column names the contestant."""

    title: str
    about: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = field(default=())

    def text(self) -> str:
        """For a terminal."""
        lines = [self.columns, *self.rows]
        widths = [max(len(line[at]) for line in lines) for at in range(len(self.columns))]
        shown = [
            "  ".join(
                [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]
            )
            for line in lines
        ]
        rule = "─" * max(map(len, shown))
        return "\n".join(
            [
                self.title,
                self.about,
                "",
                shown[0],
                rule,
                *shown[1:],
                *(f"  {note}" for note in self.notes),
                "",
            ]
        )

    def markdown(self) -> str:
        """For a page."""
        head = [" | ".join(self.columns), "|".join(["---", *["---:"] * (len(self.columns) - 1)])]
        body = [" | ".join(row) for row in self.rows]
        notes = "".join(f"\n{note}  " for note in self.notes)
        return "\n".join(
            [f"### {self.title}\n", f"{self.about}\n", *(f"| {line} |" for line in [*head, *body]), notes]
        )


def interleaved(
    contestants: Sequence[Contestant], run: Callable[[Contestant], Seen], rounds: int
) -> list[list[Seen]]:
    """Run everybody once a round, each round in another order, so that drift of the machine hits all alike.

    Returns what was seen, by contestant. The orders come from a fixed seed.
    """
    order = random.Random(4711)
    seen: list[list[Seen]] = [[] for _ in contestants]
    for number in range(rounds):
        for at in order.sample(range(len(contestants)), len(contestants)):
            if sys.stderr.isatty():
                print(f"\r  round {number + 1}/{rounds} ", end="", file=sys.stderr, flush=True)
            seen[at].append(run(contestants[at]))
    if sys.stderr.isatty():
        print("\r" + " " * 20 + "\r", end="", file=sys.stderr, flush=True)
    return seen


def middle(values: Iterable[float]) -> float:
    """Median."""
    return statistics.median(values)


def spread(values: Sequence[float]) -> str:
    """How far the rounds lie apart: half of (largest - smallest) over the median, as `±3 %`."""
    mid = middle(values)
    return f"±{(max(values) - min(values)) / 2 / mid * 100:.0f} %" if mid else "–"


def extent(values: Sequence[float], digits: int) -> str:
    """The smallest and the largest of the rounds, for figures one disturbed round can multiply."""
    return f"{min(values):.{digits}f} – {max(values):.{digits}f}"


def measured(make: Callable[[int], list[Table]], rounds: int) -> list[Table]:
    """Make tables, each with a note of what else the machine did meanwhile."""
    neighbours = Neighbours()
    tables = make(rounds)
    return [replace(table, notes=(*table.notes, neighbours.sentence())) for table in tables]


def alone(what: str) -> AbstractContextManager[None]:
    """Hold the machine: two measurements at once would measure each other."""
    return measuring_lock.alone(what, None, lambda holder: print(f"waiting for {holder}", file=sys.stderr))


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return the command line every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"each contestant runs so often ({ROUNDS})"
    )
    return parser


def show(make: Callable[[int], list[Table]], description: str | None) -> None:
    """Run one benchmark by itself and print its tables."""
    rounds = max(1, arguments(description).parse_args().rounds)
    with alone("a benchmark"):
        for table in measured(make, rounds):
            print(table.text())


def absent(names: Sequence[str]) -> tuple[str, ...]:
    """Name the peers that are not on this machine."""
    return (f"Not on this machine, so not raced: {', '.join(names)}.",) if names else ()
