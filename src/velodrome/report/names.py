"""What contestants, questions and loads are called in a report."""

import re
from collections.abc import Iterable, Mapping, Sequence

from velodrome.model import quantity
from velodrome.model.load import Closed, Load, Open, Schedule
from velodrome.model.study import Question
from velodrome.model.verdict import Answer, LatencyView, Standing, Verdict
from velodrome.report.typeset import estimate, plural

FROM_DUE = "from when due"
PART = re.compile(r"(x|n|idle)(\d+)")


def contestant(title: str, label: str) -> str:
    """Return `gunicorn · gevent ×2` for the stack of that title, labelled `gunicorn-gevent[workers=2]`."""
    plain, _, python = label.partition("@")
    knobs = [knob.partition("=") for knob in plain.partition("[")[2].rstrip("]").split(",") if knob]
    workers = "".join(f" ×{value}" for name, _, value in knobs if name == "workers")
    others = [
        f"{value} {name}" if value.isdigit() else value for name, _, value in knobs if name != "workers"
    ]
    interpreter = [f"Python {python}"] if python else []
    return ", ".join([f"{title}{workers}", *others, *interpreter])


def short_sentence(answer: Answer) -> str:
    """Return the sentence of an answer as it reads under its question, which need not be repeated."""
    opening = f"For an endpoint that {answer.about}: "
    return answer.sentence.removeprefix(opening)


def of_standing(standing: Standing) -> str:
    """Return what the contestant of a standing is called."""
    return standing.called or contestant(standing.title, standing.contestant)


def of_answer(answer: Answer) -> Mapping[str, str]:
    """Return what every contestant of a question is called, by its label."""
    return {standing.contestant: of_standing(standing) for standing in answer.standings}


def sentence_case(text: str) -> str:
    """Return `Waits 200 ms on a third party` for a recipe's `about`."""
    return text[:1].upper() + text[1:]


def load(what: Load) -> str:
    """Return `closed loop, 40 connections` or `open loop, constant 100/s`."""
    pace = what.pace
    if isinstance(pace, Closed):
        return f"closed loop, {plural(pace.connections, 'connection')}"
    if isinstance(pace, Schedule):
        return (
            f"open loop, {pace.arrivals}, {pace.ends.replace('..', ' to ')}/s in {quantity.span(pace.span_s)}"
        )
    return f"open loop, {pace.arrivals} {quantity.short(pace.rate)}/s"


def is_closed(label: str) -> bool:
    """Whether a load's label names a closed loop."""
    return label.startswith("closed-")


def latency_load(question: Question) -> Load | None:
    """Return the load whose latency is shown first: the first open loop of one rate, or the first load.

    None for an app that has no open loop: its latencies do not compare (`LatencyView.compares`).
    """
    first = None if question.app is not None else question.loads[0]
    return next((load for load in question.loads if isinstance(load.pace, Open)), first)


def latency_view(views: Iterable[LatencyView]) -> LatencyView | None:
    """Return the view whose latency is shown first: from when due before others, in an open loop before others.

    None where there is none that compares with those of other contestants.
    """
    found = [view for view in views if view.compares]
    return min(
        found,
        key=lambda view: (basis(view) != FROM_DUE, is_closed(view.load), bool(view.steps)),
        default=None,
    )


def load_label(label: str) -> str:
    """Return a load's label as words: `closed-40-n1000-ab` is `closed loop, 40 connections, 1,000 requests, by ab`."""
    kind, _, rest = label.partition("-")
    number, *parts = rest.split("-")
    if kind == "closed" and number.isdigit():
        words = [f"closed loop, {plural(int(number), 'connection')}"]
    elif kind == "open":
        words = [f"open loop, {'poisson' if 'poisson' in parts else 'constant'} {number}/s"]
    elif kind == "schedule" and parts:
        words = [f"open loop, {number.replace('..', ' to ')}/s in {parts.pop(0).partition('in')[2]}"]
    else:
        return label
    for part in parts:
        found = PART.fullmatch(part)
        mark, count = found.groups() if found else ("", "")
        if mark == "x":
            words[0] += f" × {plural(int(count), 'stream')}"
        elif mark == "n":
            words.append(plural(int(count), "request"))
        elif mark == "idle":
            words.append(f"{plural(int(count), 'idle connection')} beside")
        elif part == "close":
            words.append("a connection for each request")
        elif part != "poisson":
            words.append(f"by {part}")
    return ", ".join(words)


def without_driver(label: str) -> str:
    """Return the label of the same load by velodrome's own generator."""
    head, _, last = label.rpartition("-")
    own = not head or PART.fullmatch(last) or last in ("poisson", "close") or last[:1].isdigit()
    return label if own else head


def without_count(label: str) -> tuple[str, int | None]:
    """Return the label of the same load by time, and how many requests it was instead; None: it was by time."""
    parts = label.split("-")
    counts = [int(part[1:]) for part in parts if part[:1] == "n" and part[1:].isdigit()]
    kept = [part for part in parts if not (part[:1] == "n" and part[1:].isdigit())]
    return "-".join(kept), counts[0] if counts else None


def milliseconds(view: LatencyView | None, field: str) -> str:
    """Return a percentile as it is known: a number, with its interval where few requests lie beyond it, or bounds."""
    if view is None:
        return quantity.MISSING
    bounds = view.between.get(field)
    if bounds is None:
        return order_interval(getattr(view, field), view.within.get(field))
    low, high = (quantity.milliseconds(bound) for bound in bounds)
    return low if low == high else f"{low}–{high}"


def order_interval(value: float | None, interval: tuple[float, float | None] | None) -> str:
    """Return `202`, or with its interval `202 [201, 230]`; without an upper end `202 [≥ 201]`."""
    shown = quantity.milliseconds(value)
    if value is None or interval is None:
        return shown
    low, high = interval
    if high is None:
        return f"{shown} [≥ {quantity.milliseconds(low)}]"
    ends = quantity.milliseconds(low), quantity.milliseconds(high)
    return shown if ends == (shown, shown) else f"{shown} [{ends[0]}, {ends[1]}]"


def basis(view: LatencyView) -> str:
    """Return what the latencies of a view are: `from when due`, or `service time (ghz)`."""
    return view.by.basis if view.by else FROM_DUE


def throughput(standing: Standing) -> str:
    """Return requests a second with their interval, or on which side of them the true values are."""
    if standing.throughput_rps is None:
        return quantity.MISSING
    mark = {"at least": "≥ ", "at most": "≤ "}.get(standing.bound, "")
    return f"{mark}{estimate(standing.throughput_rps)}"


def join_words(words: Iterable[str], most: int = 4) -> str:
    """Return `a, b and 3 more`."""
    found = list(words)
    if len(found) > most:
        return f"{', '.join(found[: most - 1])} and {len(found) - most + 1} more"
    return " and ".join(filter(None, (", ".join(found[:-1]), found[-1]))) if found else ""


def headline(answer: Answer) -> tuple[str, str]:
    """Return the answer in a few words and what stands beside it: `("aiohttp", "tied: uvicorn")`."""
    called = of_answer(answer)
    best = [called.get(label, label) for label in answer.best]
    if not best:
        return "cannot tell", "nothing valid was measured"
    if answer.outcome.value == "winner":
        return best[0], ""
    if answer.outcome.value == "does-not-matter":
        return _no_matter(answer, best)
    if answer.outcome.value == "tie":
        return best[0], f"tied: {join_words(best[1:])}" if best[1:] else ""
    return (f"cannot tell {best[0]} from {join_words(best[1:])}", "") if best[1:] else ("cannot tell", "")


def _no_matter(answer: Answer, best: Sequence[str]) -> tuple[str, str]:
    """Return the headline where no server saves much: that need not be true of each that was raced."""
    if len(best) == 1:
        return best[0], "no server is better by much"
    others = [standing for standing in answer.standings if standing.contestant not in answer.best]
    if not any(standing.rank for standing in others):
        return "the server does not matter", f"between {join_words(best)}"
    slower = [of_standing(standing) for standing in others if (standing.rank_low or 1) > 1]
    verb = "is" if len(slower) == 1 else "are"
    beside = f"; {join_words(slower)} {verb} clearly slower" if slower else ""
    return "it does not matter which", f"of {join_words(best)}{beside}"


def far_percentile(verdict: Verdict) -> tuple[str, str]:
    """Return name and field of the highest percentile that most contestants have: p99, or p90 of short spans."""
    views = [latency_view(s.latency) for answer in verdict.answers for s in answer.standings]
    known = [view for view in views if view is not None]
    enough = sum(view.p99_ms is not None or "p99_ms" in view.between for view in known) * 2 > len(known)
    return ("p99", "p99_ms") if enough or not known else ("p90", "p90_ms")


def remark(standing: Standing) -> str:
    """Return why a contestant stopped early, its ceiling and its flags, in a line."""
    notes = (
        [standing.failed]
        if standing.failed
        else sorted(standing.notes, key=lambda note: "set aside" not in note)
    )
    ceiling = f"ceiling: {standing.ceiling}" if standing.ceiling else ""
    view = latency_view(standing.latency)
    behind = f"falls behind {load_label(view.load)}" if view and view.fell_behind else ""
    stopped = standing.stopped.rstrip(".")
    return "; ".join(filter(None, (stopped, ceiling, behind, flags(notes, standing.rank is not None))))


def flags(notes: Sequence[str], ranked: bool) -> str:
    """Return the gravest sentence (the first) of who has no rank, and of others their only sentence or how many."""
    if not notes:
        return ""
    if ranked and len(notes) > 1:
        return f"⚑ {len(notes)} flags, see the report"
    more = f" (+{len(notes) - 1} more in the report)" if len(notes) > 1 else ""
    return f"⚑ {notes[0]}{more}"
