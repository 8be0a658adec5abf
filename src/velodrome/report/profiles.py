"""Profiles as rows of a table and as flame graphs; profiles at one rate stand beside each other.

Flame graphs are SVG without a script: one for each profile, and one for the difference between two. A box is a
function, above it what it calls, as wide as its share of the samples at work. Waiting is left out, and so is what all
stacks begin with, start-up and the loop's own frames: what the loop runs stands at the bottom. In a difference a box is
as wide as both profiles together and coloured by whose it is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Self

from markupsafe import Markup

from velodrome.model import profile as samples
from velodrome.model import quantity
from velodrome.model.profile import PARTS, Stack, after_turn, function_of, part_of
from velodrome.model.verdict import Answer, ProfileView, Verdict
from velodrome.report import names
from velodrome.report.typeset import visible

HEADS = ("contestant", "idle", "in C", "CPU", "requests/s", "depth", "most", *PARTS)
MOST_PAIRS = 5
"""Differences shown of a question: each contestant beside that which idles most."""


@dataclass(frozen=True)
class Graph:
    """A flame graph."""

    title: str
    figure: Markup
    speedscope: str
    """Path of the file for speedscope; empty for a difference."""


@dataclass(frozen=True)
class Section:
    """The profiles of one question under one load."""

    about: str
    load: str
    rows: Sequence[Sequence[str]]
    failed: Sequence[str]
    notes: Sequence[str]
    graphs: Sequence[Graph]


def row(view: ProfileView, called: Mapping[str, str]) -> tuple[str, ...]:
    """Return a profile as texts under `HEADS`."""
    shares = [view.by_part.get(part, 0.0) for part in PARTS]
    return (
        visible(called.get(view.contestant, view.contestant)),
        _percent(view.idle_share),
        _percent(view.opaque_share),
        _percent(view.cpus),
        quantity.number(view.achieved_rps) if view.achieved_rps is not None else quantity.MISSING,
        quantity.number(view.depth_mean) if view.depth_mean is not None else quantity.MISSING,
        str(view.depth_max) if view.depth_max is not None else quantity.MISSING,
        *(_percent(share) if share else quantity.MISSING for share in shares),
    )


def _percent(share: float | None) -> str:
    return quantity.percent(share) if share is not None else quantity.MISSING


def sentences(verdict: Verdict) -> list[str]:
    """Return each profile as a sentence, for a terminal."""
    called = _called(verdict)
    return [_sentence(view, called) for view in verdict.profiles]


def _sentence(view: ProfileView, called: Mapping[str, str]) -> str:
    who = visible(f"Profile of {called.get(view.contestant, view.contestant)} in {view.question}")
    if view.failed:
        return visible(f"{who}: none; {view.failed}")
    if view.depth_mean is None:
        deep = "it was never at work when it was looked at"
    else:
        deep = f"{quantity.number(view.depth_mean)} frames deep, {view.depth_max} at most"
    most = sorted(view.by_part.items(), key=lambda item: -item[1])[:3]
    spent = ", ".join(f"{quantity.percent(share)} {part}" for part, share in most)
    unclear = (
        f", {_percent(view.opaque_share)} in a loop written in C that may have worked"
        if view.opaque_share
        else ""
    )
    enough = samples.shows_work(view.samples, view.idle_share, view.opaque_share)
    at_work = "" if not spent else f"; at work: {spent}" if enough else "; too little of its work was seen"
    summary = (
        f"{who}: {_percent(view.cpus)} of a CPU in use; its threads waited in {_percent(view.idle_share)} of their "
        f"samples{unclear}; {deep}{at_work}."
    )
    return " ".join([summary, *map(visible, view.notes)])


def _called(verdict: Verdict) -> dict[str, str]:
    return {label: name for answer in verdict.answers for label, name in names.of_answer(answer).items()}


def sections(verdict: Verdict, texts: Mapping[str, str]) -> list[Section]:
    """Return the profiles by question and load; `texts` holds stored stacks by the path a profile names."""
    called = _called(verdict)
    about = {answer.question: answer for answer in verdict.answers}
    ordered = sorted(verdict.profiles, key=lambda view: (view.question, view.load))
    return [
        _section(about.get(question), question, list(views), called, texts)
        for (question, _), views in groupby(ordered, key=lambda view: (view.question, view.load))
    ]


def _section(
    answer: Answer | None,
    question: str,
    views: Sequence[ProfileView],
    called: Mapping[str, str],
    texts: Mapping[str, str],
) -> Section:
    taken = [view for view in views if not view.failed]
    return Section(
        about=names.sentence_case(visible(answer.about if answer else question)),
        load=names.load_label(views[0].load),
        rows=[row(view, called) for view in taken],
        failed=[visible(f"{called.get(v.contestant, v.contestant)}: {v.failed}") for v in views if v.failed],
        notes=list(dict.fromkeys(visible(note) for view in taken for note in view.notes)),
        graphs=_graphs(taken, called, texts),
    )


def _graphs(views: Sequence[ProfileView], called: Mapping[str, str], texts: Mapping[str, str]) -> list[Graph]:
    by_contestant = {view.contestant: stacks(texts.get(view.collapsed, "")) for view in views}
    found = []
    for view in views:
        name = visible(called.get(view.contestant, view.contestant))
        figure = graph(by_contestant[view.contestant], f"Flame graph of {name}")
        if figure:
            found.append(Graph(name, figure, view.speedscope))
    return [*found, *_differences(views, called, by_contestant)]


def _differences(
    views: Sequence[ProfileView],
    called: Mapping[str, str],
    stacks: Mapping[str, Mapping[tuple[str, ...], int]],
) -> list[Graph]:
    """Return each contestant beside that which idles most, where all had the same rate."""
    rated = [view for view in views if view.rate is not None and stacks[view.contestant]]
    if len(rated) < 2:
        return []
    first, *others = sorted(rated, key=lambda view: -(view.idle_share or 0.0))
    found = []
    for other in others[:MOST_PAIRS]:
        pair = [visible(called.get(view.contestant, view.contestant)) for view in (first, other)]
        figure = difference(
            stacks[first.contestant],
            stacks[other.contestant],
            (float(first.samples), float(other.samples)),
            f"Difference between {pair[0]} and {pair[1]}",
        )
        found.append(Graph(f"{pair[0]} (blue) and {pair[1]} (orange), at the same rate", figure, ""))
    return found


WIDTH, ROW = 1080.0, 17
LEAST = 1.0
"""Pixels: narrower boxes cannot be seen, and there are thousands."""
DEEPEST = 40
LETTER = 6.1
"""Pixels a letter takes at this size."""
COLOUR = {part: f"var(--c{number})" for part, number in zip(PARTS, (0, 1, 2, 3, 4, 7, 6), strict=True)}


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
    """Return the stacks at work of a stored profile, without what all begin with; nothing for a damaged profile."""
    try:
        working = samples.busy(samples.parse(text))
    except ValueError:
        return {}
    whole = _frames(working)
    trunk = _common_depth(whole)
    found: dict[Stack, int] = {}
    for frames, count in whole.items():
        below = tuple(after_turn(frames))
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


def _common_depth(whole: Mapping[Stack, int]) -> int:
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
                node.part = part_of(stack[:depth])
                node.counts[place] += count
    return root


def graph(profile: Mapping[Stack, int], label: str) -> Markup:
    """Return the flame graph of a profile; nothing where nothing was at work."""
    return _draw(tree(profile), label, lambda node: (COLOUR[node.part], 0.55))


def difference(
    first: Mapping[Stack, int], second: Mapping[Stack, int], seconds: tuple[float, float], label: str
) -> Markup:
    """Return the difference of two profiles taken at one rate, over so many seconds each."""
    rates = [
        {stack: count / span for stack, count in profile.items()}
        for profile, span in zip((first, second), seconds, strict=True)
    ]
    return _draw(tree(*rates), label, _whose)


def _whose(node: Node) -> tuple[str, float]:
    """Return the colour of the first or of the second, the stronger the more of it is theirs."""
    first, second = node.counts
    lead = (second - first) / node.total if node.total else 0.0
    return ("var(--c1)" if lead > 0 else "var(--c0)"), 0.12 + 0.6 * abs(lead)


def _draw(root: Node, label: str, paint: Paint) -> Markup:
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
    text = box.name if len(box.name) <= room else function_of(box.name)
    text = text if len(text) <= room else f"{text[: room - 1]}…" if room > 3 else ""
    written = Markup('<text x="{:.1f}" y="{}">{}</text>').format(box.x + 3, y + 12, text) if text else ""
    rect = Markup(
        '<rect x="{:.1f}" y="{}" width="{:.1f}" height="{}" fill="{}" fill-opacity="{:.2f}"/>'
    ).format(box.x, y, max(box.width - 0.5, 0.5), ROW - 1, *painted)
    return Markup("<g><title>{}</title>{}{}</g>").format(hint, rect, written)


def _hint(box: Box, root: Node) -> str:
    shares = zip(box.node.counts, root.counts, strict=True)
    parts = " and ".join(f"{count / total:.1%}" if total else "nothing" for count, total in shares)
    return f"{box.name}: {parts} of what was at work"
