"""Some of many things, each as likely to be among them, in bounded memory."""

import random
from dataclasses import dataclass, field

MOST = 100
"""Targets kept of one kind: so many that a user can still read the file they are written to."""


BYTES = 64_000_000
"""Of all samples of a log together."""


@dataclass
class Budget:
    """Bytes that all samples of a log may take together."""

    left: int = field(default_factory=lambda: BYTES)

    def take(self, size: int) -> bool:
        """Take some, if they are left."""
        if size > self.left:
            return False
        self.left -= size
        return True


@dataclass
class Sample:
    """A reservoir (Vitter 1985, algorithm R): what comes often is in it often, so it keeps the shares of the whole."""

    budget: Budget
    chance: random.Random
    kept: list[str] = field(default_factory=list)
    seen: int = 0

    def add(self, thing: str) -> None:
        """Take it, in the place of another where there is no more room."""
        self.seen += 1
        if len(self.kept) < MOST and self.budget.take(len(thing)):
            self.kept.append(thing)
        elif self.kept and (place := self.chance.randrange(self.seen)) < len(self.kept):
            self._replace(place, thing)

    def _replace(self, place: int, thing: str) -> None:
        if self.budget.take(len(thing) - len(self.kept[place])):
            self.kept[place] = thing

    def join(self, other: "Sample") -> None:
        """Take those of another in, as many of each as its share."""
        together = self.seen + other.seen
        kept: list[str] = []
        mine, theirs = self.kept[:], other.kept[:]
        for rest in (mine, theirs):
            self.chance.shuffle(rest)
        while (mine or theirs) and len(kept) < MOST:
            first = self.chance.random() * together < self.seen
            kept.append((mine if first and mine else theirs or mine).pop())
        self.budget.left += sum(map(len, (*mine, *theirs)))
        self.kept, self.seen = kept, together
