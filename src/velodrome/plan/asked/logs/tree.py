"""What was asked, by kind: a tree of the names in paths, in which names that are too many become one kind.

/articles/on-cats, /articles/on-dogs, … 50 of them      ->  /articles/*

Each kind keeps how often it was asked, how it was answered, and a sample of its targets. Memory is bounded: there are
only so many kinds, and all samples together have a budget.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from velodrome.plan.asked.logs import segments
from velodrome.plan.asked.logs.sample import Budget, Sample

MOST_NAMES = 50
"""Of one place in paths; an app with more routes there than that is asked the same paths, told as one kind."""
MOST_KINDS = 10_000
MOST_NUMBERS = 50_000
"""Different ones of one kind that are looked at to tell whether they are a plain range."""
NUMBER_BYTES = 100
"""What one of them takes in a set, about."""


@dataclass
class Kind:
    """Requests of one shape."""

    sample: Sample
    statuses: Counter[int] = field(default_factory=Counter)
    numbers: set[int] | None = field(default_factory=set)
    """All numbers asked for; None: they are too many, or it is not one number that differs."""

    def add(self, asked: str, status: int) -> None:
        """Count a request."""
        self.statuses[status] += 1
        self.sample.add(asked)
        if self.numbers is not None:
            self._note(self.numbers, segments.around_number(asked))

    def _note(self, numbers: set[int], found: tuple[str, int, str] | None) -> None:
        if found is None:
            self.numbers = None
        elif found[1] not in numbers:
            if len(numbers) < MOST_NUMBERS and self.sample.budget.take(NUMBER_BYTES):
                numbers.add(found[1])
            else:
                self.numbers = None

    def join(self, other: "Kind") -> None:
        """Take in those of another shape."""
        self.statuses += other.statuses
        self.sample.join(other.sample)
        self.numbers = None


@dataclass
class Place:
    """A place in paths: what stands behind it by name, and what was asked at it by the names of its query."""

    behind: dict[str, "Place"] = field(default_factory=dict)
    asked: dict[tuple[str, ...], Kind] = field(default_factory=dict)
    gathered: bool = False
    """Its names were too many, and are one kind."""

    def join(self, other: "Place") -> int:
        """Take in what is at and behind another; return how many kinds became one with another."""
        joined = 0
        for query, kind in other.asked.items():
            if query in self.asked:
                self.asked[query].join(kind)
                joined += 1
            else:
                self.asked[query] = kind
        for name, place in other.behind.items():
            if name in self.behind:
                joined += self.behind[name].join(place)
            else:
                self.behind[name] = place
        if other.gathered or self.gathered or len(self.behind) > MOST_NAMES:
            joined += self.gather()
        return joined

    def gather(self) -> int:
        """Make one kind of all names behind it; return how many kinds became one with another."""
        self.gathered = True
        one = self.behind.pop(segments.ANY, None) or Place()
        joined = sum(one.join(place) for place in self.behind.values())
        self.behind = {segments.ANY: one}
        return joined


@dataclass
class Tree:
    """All that was asked, by method."""

    budget: Budget = field(default_factory=Budget)
    chance: random.Random = field(default_factory=lambda: random.Random(4711))
    """The same log is always read the same."""
    methods: dict[str, Place] = field(default_factory=dict)
    kinds: int = 0

    def add(self, method: str, asked: str, status: int) -> bool:
        """Count a request; False when there are too many kinds for another."""
        path, query = segments.shape(asked)
        place = self.methods.setdefault(method, Place())
        for name in path:
            further = self._behind(place, name)
            if further is None:
                return False
            place = further
        kind = place.asked.get(query)
        if kind is None:
            if self.kinds >= MOST_KINDS:
                return False
            self.kinds += 1
            kind = place.asked[query] = Kind(Sample(self.budget, self.chance))
        kind.add(asked, status)
        return True

    def _behind(self, place: Place, name: str) -> Place | None:
        if name not in place.behind and name != segments.ANY:
            if not place.gathered and len(place.behind) >= MOST_NAMES:
                self.kinds -= place.gather()
            name = segments.ANY if place.gathered else name
        if name not in place.behind:
            if self.kinds >= MOST_KINDS:
                return None
            place.behind[name] = Place()
        return place.behind[name]

    def all(self) -> Iterator[tuple[str, str, Kind]]:
        """Yield method, shape (`/users/*?page=*`) and what was asked of it."""
        for method, root in self.methods.items():
            for shape, kind in _kinds(root, ""):
                yield method, shape, kind


def _kinds(place: Place, path: str) -> Iterator[tuple[str, Kind]]:
    for query, kind in place.asked.items():
        names = "&".join(f"{name}={segments.ANY}" for name in query)
        yield path + (f"?{names}" if names else ""), kind
    for name, further in place.behind.items():
        yield from _kinds(further, f"{path}/{name}")
