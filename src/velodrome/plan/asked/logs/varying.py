"""One path for all that was asked of a kind, with places in it for what differs.

/items/7, /items/12, /items/7               ->  /items/{{pick 12|7|7}}
/items/1 … /items/500, nearly all of them   ->  /items/{{random 1..500}}
/users/7/orders/31, /users/9/orders/2       ->  /users/{{pick 7/orders/31|9/orders/2}}

What differs in several places is drawn together, since user 7 has no order 2. A word that was asked for more often
stands there more often.
"""

import re
from collections import Counter
from collections.abc import Sequence

from velodrome.plan.asked.logs import segments
from velodrome.plan.asked.logs.tree import Kind

FEWEST_OF_A_RANGE = 10
DENSE = 0.5
"""Share of the numbers between the least and the greatest that were asked for, from which all are taken to exist."""
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
    if (found := segments.around_number(kept[0])) is not None and _is_range(kind.numbers):
        assert kind.numbers is not None
        before, _, behind = found
        return f"{before}{{{{random {min(kind.numbers)}..{max(kind.numbers)}}}}}{behind}"
    before, behind = _shared(kept)
    words = [asked[len(before) : len(asked) - len(behind)] for asked in kept]
    return f"{before}{{{{pick {'|'.join(_in_order(_by_share(words)))}}}}}{behind}"


def _is_range(numbers: set[int] | None) -> bool:
    if numbers is None or len(numbers) < FEWEST_OF_A_RANGE:
        return False
    return len(numbers) >= DENSE * (max(numbers) - min(numbers) + 1)


def _shared(kept: Sequence[str]) -> tuple[str, str]:
    """Return what all begin with and what all end with, whole names each."""
    before = _beginning(kept)
    begin = max(before.rfind(mark) for mark in "/?&=") + 1
    rests = [asked[begin:][::-1] for asked in kept]
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
