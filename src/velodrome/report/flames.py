"""Flame graphs as SVG without a script: one of a profile, and one of the difference between two.

A box is a function, above it what it calls, as wide as its part of the samples at work; waiting is left out. What
all stacks begin with, start-up and the loop's own frames, is left out too: what the loop runs stands at the ground.
In a difference a box is as wide as both together and coloured by whose it is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

from markupsafe import Markup

from velodrome.model import parts
from velodrome.model import profile as samples
from velodrome.model.profile import Stack
from velodrome.report.typeset import visible

WIDTH, ROW = 1080.0, 17
LEAST = 1.0
"""Pixels: narrower boxes cannot be seen, and there are thousands."""
DEEPEST = 40
LETTER = 6.1
"""Pixels a letter takes at this size."""
COLOUR = {part: f"var(--c{number})" for part, number in zip(parts.PARTS, (0, 1, 2, 3, 4, 7, 6), strict=True)}


@dataclass
class Node:
    """A function as called from one place; counts of one profile, or of two."""

    counts: list[float]
    children: dict[str, Self] = field(default_factory=dict)
    part: str = "other"

    @property
    def total(self) -> float:
        """Of both."""
        return sum(self.counts)


Paint = Callable[[Node], tuple[str, float]]
"""Colour and strength of a box."""


@dataclass(frozen=True)
class Box:
    """Where a function is drawn."""

    x: float
    width: float
    depth: int
    name: str
    node: Node


def stacks(text: str) -> dict[Stack, int]:
    """Return the stacks at work of a stored profile, without what all begin with; nothing for a damaged one."""
    try:
        working = samples.busy(samples.parse(text))
    except ValueError:
        return {}
    whole = _frames(working)
    trunk = _shared(whole)
    found: dict[Stack, int] = {}
    for frames, count in whole.items():
        below = tuple(parts.after_turn(frames))
        kept = below if len(below) < len(frames) else frames[trunk:]
        kept = kept or frames[-1:]
        found[kept] = found.get(kept, 0) + count
    return found


def _frames(working: Mapping[Stack, int]) -> dict[Stack, int]:
    found: dict[Stack, int] = {}
    for stack, count in working.items():
        frames = samples.frames(stack)
        found[frames] = found.get(frames, 0) + count
    return found


def _shared(whole: Mapping[Stack, int]) -> int:
    """Return with how many frames all stacks begin."""
    every = list(whole)
    if len(every) < 2:
        return 0
    first, last = min(every), max(every)
    same = 0
    while same < min(len(first), len(last)) and first[same] == last[same]:
        same += 1
    return same


def tree(*profiles: Mapping[Stack, float]) -> Node:
    """Return the calls of one profile or of several together."""
    root: Node = Node([0.0] * len(profiles))
    for place, profile in enumerate(profiles):
        for stack, count in profile.items():
            node = root
            node.counts[place] += count
            for depth, frame in enumerate(stack, 1):
                node = node.children.setdefault(frame, Node([0.0] * len(profiles)))
                node.part = parts.part(stack[:depth])
                node.counts[place] += count
    return root


def graph(profile: Mapping[Stack, int], label: str) -> Markup:
    """Return the flame graph of a profile; nothing where nothing was at work."""
    return _drawn(tree(profile), label, lambda node: (COLOUR[node.part], 0.55))


def difference(
    first: Mapping[Stack, int], second: Mapping[Stack, int], seconds: tuple[float, float], label: str
) -> Markup:
    """Return the difference of two profiles taken at one rate, over so many seconds each."""
    rates = [
        {stack: count / span for stack, count in one.items()}
        for one, span in zip((first, second), seconds, strict=True)
    ]
    return _drawn(tree(*rates), label, _whose)


def _whose(node: Node) -> tuple[str, float]:
    """Return the first one's colour or the second's, the stronger the more of it is theirs."""
    first, second = node.counts
    lead = (second - first) / node.total if node.total else 0.0
    return ("var(--c1)" if lead > 0 else "var(--c0)"), 0.12 + 0.6 * abs(lead)


def _drawn(root: Node, label: str, paint: Paint) -> Markup:
    if not root.total:
        return Markup("")
    boxes: list[Box] = []
    _lay(root, 0.0, 0, WIDTH / root.total, boxes)
    height = (1 + max((box.depth for box in boxes), default=0)) * ROW
    shapes = [_shape(box, height - (box.depth + 1) * ROW, _hint(box, root), paint(box.node)) for box in boxes]
    return Markup('<svg class="flame" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        round(WIDTH), height, label, Markup("").join(shapes)
    )


def _lay(node: Node, x: float, depth: int, scale: float, boxes: list[Box]) -> None:
    """Place the children of a node beside each other, the widest first."""
    if depth >= DEEPEST:
        return
    for name, child in sorted(node.children.items(), key=lambda item: (-item[1].total, item[0])):
        width = child.total * scale
        if width >= LEAST:
            boxes.append(Box(x, width, depth, visible(name), child))
            _lay(child, x, depth + 1, scale, boxes)
        x += width


def _shape(box: Box, y: int, hint: str, painted: tuple[str, float]) -> Markup:
    room = int((box.width - 6) / LETTER)
    text = box.name if len(box.name) <= room else parts.function_of(box.name)
    text = text if len(text) <= room else f"{text[: room - 1]}…" if room > 3 else ""
    written = Markup('<text x="{:.1f}" y="{}">{}</text>').format(box.x + 3, y + 12, text) if text else ""
    rect = Markup(
        '<rect x="{:.1f}" y="{}" width="{:.1f}" height="{}" fill="{}" fill-opacity="{:.2f}"/>'
    ).format(box.x, y, max(box.width - 0.5, 0.5), ROW - 1, *painted)
    return Markup("<g><title>{}</title>{}{}</g>").format(hint, rect, written)


def _hint(box: Box, root: Node) -> str:
    shares = zip(box.node.counts, root.counts, strict=True)
    told = " and ".join(f"{count / total:.1%}" if total else "nothing" for count, total in shares)
    return f"{box.name}: {told} of what was at work"
