"""What profiles tell, as rows of a table and as flame graphs; those at one rate beside each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from velodrome.model import parts, quantity
from velodrome.model.verdict import Answer, ProfileView, Verdict
from velodrome.report import flames, names
from velodrome.report.typeset import visible

HEADS = ("contestant", "idle", "in C", "CPU", "requests/s", "depth", "most", *(part for part in parts.PARTS))
MOST_PAIRS = 5
"""Differences shown of a question: each contestant beside the one that idles most."""


@dataclass(frozen=True)
class Graph:
    """One flame graph."""

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
    shares = [view.by_part.get(part, 0.0) for part in parts.PARTS]
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
    at_work = f"; at work: {spent}" if spent else ""
    told = f"{who}: idle {_percent(view.idle_share)}{unclear} (CPU {_percent(view.cpus)}), {deep}{at_work}."
    return " ".join([told, *map(visible, view.notes)])


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
    stacks = {view.contestant: flames.stacks(texts.get(view.collapsed, "")) for view in views}
    found = []
    for view in views:
        name = visible(called.get(view.contestant, view.contestant))
        figure = flames.graph(stacks[view.contestant], f"Flame graph of {name}")
        if figure:
            found.append(Graph(name, figure, view.speedscope))
    return [*found, *_differences(views, called, stacks)]


def _differences(
    views: Sequence[ProfileView],
    called: Mapping[str, str],
    stacks: Mapping[str, Mapping[tuple[str, ...], int]],
) -> list[Graph]:
    """Return each contestant beside the one that idles most, where all were asked the same rate."""
    rated = [view for view in views if view.rate is not None and stacks[view.contestant]]
    if len(rated) < 2:
        return []
    first, *others = sorted(rated, key=lambda view: -(view.idle_share or 0.0))
    found = []
    for other in others[:MOST_PAIRS]:
        pair = [visible(called.get(view.contestant, view.contestant)) for view in (first, other)]
        figure = flames.difference(
            stacks[first.contestant],
            stacks[other.contestant],
            (float(first.samples), float(other.samples)),
            f"Difference between {pair[0]} and {pair[1]}",
        )
        found.append(Graph(f"{pair[0]} (blue) and {pair[1]} (orange), at the same rate", figure, ""))
    return found
