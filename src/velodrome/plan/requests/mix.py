"""Requests by kind: a tree of the names in paths, in which names that are too many become one kind.

/articles/on-cats, /articles/on-dogs, … 50 of them      ->  /articles/*

Each kind keeps how often it was requested, how it was answered, and a sample of its targets; `path` is one path for all
of them, with places in it for what differs. Memory is bounded: there are only so many kinds, and all samples together
have a budget.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

MOST = 100
"""Targets kept of a kind: so many that a user can still read the file they are written to."""


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


ANY = "*"
LONGEST = 2_048
"""Characters of a target; longer targets are attacks more often than requests, and no template for a user to read."""
DEEPEST = 32
_ID = re.compile(
    r"[0-9]+|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|(?=[0-9a-f]*[0-9])[0-9a-f]{8,}|(?=[0-9A-F]*[0-9])[0-9A-F]{8,}"
)
_ESCAPED = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u00([0-9a-fA-F]{2})|(.))")
_PLAIN = "".join(chr(code) for code in range(33, 127) if chr(code) not in '"#<>\\^`{|}')
"""What stands in a target as it is; braces and bars mean something in a template."""


def target(text: str) -> str | None:
    """Return path and query as they are sent again, or None for what is no path.

    `text` is as the log has it: nginx writes bytes as `\\x22`, Apache as `\\"`; a proxy gets whole URLs.
    """
    if "\\" in text:
        text = _ESCAPED.sub(_unescape, text)
    if not text.startswith("/"):
        try:
            parts = urlsplit(text)
        except ValueError:
            return None
        if parts.scheme not in ("http", "https") or not parts.netloc:
            return None
        text = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    text = text.partition("#")[0]
    found = quote(text, safe=_PLAIN, encoding="latin-1", errors="replace")
    return found if len(found) <= LONGEST else None


def _unescape(found: re.Match[str]) -> str:
    digits = found[1] or found[2]
    return chr(int(digits, 16)) if digits else found[3]


_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
"""As the engine writes a number: 007 is a word."""


def around_number(target: str) -> tuple[str, int, str] | None:
    """Return the only number of a target with what stands around it, or None where it has none or more that differs."""
    path, mark, query = target.partition("?")
    if mark:
        name, equals, value = query.partition("=")
        found = [value] if equals and "&" not in query and not _ids(path) else []
        before, behind = f"{path}?{name}=", ""
    else:
        names = path.split("/")
        found = _ids(path)
        at = names.index(found[0]) if len(found) == 1 else 0
        before, behind = (
            "".join(f"{name}/" for name in names[:at]),
            "".join(f"/{name}" for name in names[at + 1 :]),
        )
    if len(found) != 1 or not _NUMBER.fullmatch(found[0]):
        return None
    return before, int(found[0]), behind


def _ids(path: str) -> list[str]:
    return [name for name in path.split("/") if _ID.fullmatch(name)]


def shape(target: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the path, with `*` for what differs, and those of the query."""
    path, _, query = target.partition("?")
    names = path[1:].split("/", DEEPEST)
    shaped = tuple(ANY if _ID.fullmatch(name) else name for name in names)
    return shaped, tuple(pair.partition("=")[0] for pair in query.split("&")) if query else ()


MOST_NAMES = 50
"""Of one place in paths; an app with more routes there than that gets the same paths, shown as one kind."""
MOST_KINDS = 10_000
MOST_NUMBERS = 50_000
"""Different targets of one kind that are looked at to see whether they are a plain range."""
NUMBER_BYTES = 100
"""What such a target takes in a set, about."""


@dataclass
class Kind:
    """Requests of one shape."""

    sample: Sample
    statuses: Counter[int] = field(default_factory=Counter)
    numbers: set[int] | None = field(default_factory=set)
    """All numbers requested; None: they are too many, or more than one number differs."""

    def add(self, target: str, status: int) -> None:
        """Count a request."""
        self.statuses[status] += 1
        self.sample.add(target)
        if self.numbers is not None:
            self._note(self.numbers, around_number(target))

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
    """A place in paths: what stands behind it by name, and the requests to it by the names of its query."""

    behind: dict[str, "Place"] = field(default_factory=dict)
    queries: dict[tuple[str, ...], Kind] = field(default_factory=dict)
    gathered: bool = False
    """Its names were too many, and are one kind."""

    def join(self, other: "Place") -> int:
        """Take in what is at and behind another; return how many kinds became one with another."""
        joined = 0
        for query, kind in other.queries.items():
            if query in self.queries:
                self.queries[query].join(kind)
                joined += 1
            else:
                self.queries[query] = kind
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
        rest = self.behind.pop(ANY, None) or Place()
        joined = sum(rest.join(place) for place in self.behind.values())
        self.behind = {ANY: rest}
        return joined


@dataclass
class Tree:
    """All requests, by method."""

    budget: Budget = field(default_factory=Budget)
    chance: random.Random = field(default_factory=lambda: random.Random(4711))
    """The same log is always read the same."""
    methods: dict[str, Place] = field(default_factory=dict)
    kinds: int = 0

    def add(self, method: str, target: str, status: int) -> bool:
        """Count a request; False when there are too many kinds for another."""
        path, query = shape(target)
        place = self.methods.setdefault(method, Place())
        for name in path:
            further = self._behind(place, name)
            if further is None:
                return False
            place = further
        kind = place.queries.get(query)
        if kind is None:
            if self.kinds >= MOST_KINDS:
                return False
            self.kinds += 1
            kind = place.queries[query] = Kind(Sample(self.budget, self.chance))
        kind.add(target, status)
        return True

    def _behind(self, place: Place, name: str) -> Place | None:
        if name not in place.behind and name != ANY:
            if not place.gathered and len(place.behind) >= MOST_NAMES:
                self.kinds -= place.gather()
            name = ANY if place.gathered else name
        if name not in place.behind:
            if self.kinds >= MOST_KINDS:
                return None
            place.behind[name] = Place()
        return place.behind[name]

    def all(self) -> Iterator[tuple[str, str, Kind]]:
        """Yield method, shape (`/users/*?page=*`) and the requests to it."""
        for method, root in self.methods.items():
            for shape, kind in _kinds(root, ""):
                yield method, shape, kind


def _kinds(place: Place, path: str) -> Iterator[tuple[str, Kind]]:
    for query, kind in place.queries.items():
        names = "&".join(f"{name}={ANY}" for name in query)
        yield path + (f"?{names}" if names else ""), kind
    for name, further in place.behind.items():
        yield from _kinds(further, f"{path}/{name}")


FEWEST_OF_A_RANGE = 10
DENSE = 0.5
"""Share of the numbers between the least and the greatest that were requested, from which all are taken to exist."""
FEW = 10
"""So many different words are written in as few copies as have about their shares."""
COPIES = 20
"""Most of them altogether."""
ABOUT = 0.02
_BOUNDARY = re.compile(r"[/?&=]")
_DIGITS = re.compile(r"([0-9]+)")


def path(kind: Kind) -> str:
    """Return the path of a kind."""
    kept = kind.sample.kept
    if len(set(kept)) == 1:
        return kept[0]
    if (found := around_number(kept[0])) is not None and _is_range(kind.numbers):
        assert kind.numbers is not None
        before, _, behind = found
        return f"{before}{{{{random {min(kind.numbers)}..{max(kind.numbers)}}}}}{behind}"
    before, behind = _common_ends(kept)
    words = [target[len(before) : len(target) - len(behind)] for target in kept]
    return f"{before}{{{{pick {'|'.join(_in_order(_by_share(words)))}}}}}{behind}"


def _is_range(numbers: set[int] | None) -> bool:
    if numbers is None or len(numbers) < FEWEST_OF_A_RANGE:
        return False
    return len(numbers) >= DENSE * (max(numbers) - min(numbers) + 1)


def _common_ends(kept: Sequence[str]) -> tuple[str, str]:
    """Return what all begin with and what all end with, whole names each."""
    before = _beginning(kept)
    begin = max(before.rfind(mark) for mark in "/?&=") + 1
    rests = [target[begin:][::-1] for target in kept]
    behind = _beginning(rests)[::-1]
    first = _BOUNDARY.search(behind)
    return before[:begin], behind[first.start() :] if first else ""


def _beginning(texts: Sequence[str]) -> str:
    """Return what all begin with: what the first and the last in order do."""
    low, high = min(texts), max(texts)
    return low[
        : next((at for at, pair in enumerate(zip(low, high, strict=False)) if pair[0] != pair[1]), len(low))
    ]


def _by_share(words: Sequence[str]) -> Sequence[str]:
    """Return few words in fewer copies with about the same shares."""
    counts = Counter(words)
    if len(counts) > FEW:
        return words
    shares = {word: count / len(words) for word, count in counts.items()}
    copies: Counter[str] = Counter()
    for total in range(len(counts), COPIES + 1):
        copies = Counter({word: max(1, round(total * share)) for word, share in shares.items()})
        if all(abs(copies[word] / copies.total() - share) <= ABOUT for word, share in shares.items()):
            break
    return [*copies.elements()]


def _in_order(words: Sequence[str]) -> list[str]:
    """Return them as people sort: 7 before 12."""

    def key(word: str) -> list[tuple[int, int, str]]:
        parts = _DIGITS.split(word)
        return [(1, int(part[:18]), part) if part.isdecimal() else (0, 0, part) for part in parts]

    return sorted(words, key=key)
