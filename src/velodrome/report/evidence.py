"""The evidence in the HTML report: every trial, why each contestant came where it came, and its history.

Proof is machine, versions, flags and every trial as a row that can be sorted, exported and repeated. The reasons are
Little's law, CPU, balance of the workers, listen queue and generator. The history is throughput, p99, CPU and memory
second by second, with the seconds that had no answer.
"""

import shlex
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from velodrome.model import quantity
from velodrome.model.measurement import Failed, Measurement, ServerSample, Severity
from velodrome.model.verdict import Answer, Standing, Verdict
from velodrome.report import names
from velodrome.report.charts import Block, sparkline, style_of
from velodrome.report.terminal import repeat
from velodrome.report.typeset import align_figures, plural, visible

NUMBERS = (
    "requests/s",
    "right",
    "errors",
    "p50 ms",
    "p99 ms",
    "p99.9 ms",
    "max ms",
    "p99 sent ms",
    "lag p99 ms",
    "CPU µs/req",
    "RSS MB",
    "in flight",
)
TRIAL_COLUMNS = ("question", "contestant", "load", "block", *NUMBERS, "result")


Styles = Mapping[str, tuple[str, list[int]]]
"""Colour and dash of each contestant, the same in every figure."""


def styles(verdict: Verdict) -> Styles:
    """Give every contestant its colour and dash."""
    labels = dict.fromkeys(s.contestant for answer in verdict.answers for s in answer.standings)
    return {label: style_of(place) for place, label in enumerate(labels)}


def anchor(question: str, contestant: str) -> str:
    """Return the id of a cell, for links into the report: `cell-third-party-gunicorn-gevent-workers-2`."""
    letters = (
        letter if letter.isalnum() and letter.isascii() else "-" for letter in f"{question}-{contestant}"
    )
    return "cell-" + "".join(letters).strip("-")


@dataclass(frozen=True)
class TrialRow:
    """A trial. `values` go to the CSV and are what the table sorts by; `cells` are what it shows."""

    anchor: str
    values: Sequence[float | str | None]
    cells: Sequence[str]
    set_aside: bool


@dataclass(frozen=True)
class Cell:
    """One contestant in one question: all that is needed to doubt it, and to do it again."""

    anchor: str
    about: str
    title: str
    repeat: str
    command: str
    versions: str
    flags: Sequence[tuple[str, str]]
    """Sentence and advice."""
    failures: Sequence[str]
    output: Sequence[str]
    """Text the server chose."""
    loaded_by: Sequence[str] = ()
    """Command lines of other load generators than velodrome's own, with their versions."""


def trial_rows(results: Sequence[Measurement | Failed], called: Mapping[str, str]) -> list[TrialRow]:
    """Return every trial as a row; `called` gives the names of contestants by label."""
    found = [_row(result, called) for result in results]
    columns = [align_figures(column) for column in zip(*(row.cells for row in found), strict=True)]
    # Only numbers are padded: names and results stand at the left.
    numbers = range(3, len(TRIAL_COLUMNS) - 1)
    return [
        replace(row, cells=[columns[c][place] if c in numbers else cell for c, cell in enumerate(row.cells)])
        for place, row in enumerate(found)
    ]


def _row(result: Measurement | Failed, called: Mapping[str, str]) -> TrialRow:
    trial = result.trial
    label = trial.label
    head: tuple[float | str | None, ...] = (trial.question, label, trial.load.label, trial.block + 1)
    link = anchor(trial.question, label)
    if isinstance(result, Failed):
        validity = f"failed: {result.failure.value}"
        values = (*head, *(None for _ in NUMBERS), validity)
        return TrialRow(link, values, _show_values(values, called), True)
    load, due = result.load, result.load.due
    cpu = result.cpu_us_per_request
    numbers = (load.throughput_rps, load.ok, load.requests - load.ok, due.p50, due.p99, due.p99_9, due.max)
    more = (load.sent.p99, load.lag.p99, cpu, result.server.rss_peak_bytes / 1e6, load.mean_in_flight)
    kinds = ", ".join(dict.fromkeys(flag.kind.value for flag in result.flags))
    validity = f"{'set aside' if not result.valid else 'noted'}: {kinds}" if kinds else "valid"
    values = (*head, *numbers, *more, validity)
    return TrialRow(link, values, _show_values(values, called), not result.valid)


def _show_values(values: Sequence[float | str | None], called: Mapping[str, str]) -> list[str]:
    question, label, load, block, *numbers, validity = values
    shown = [_number(name, value) for name, value in zip(NUMBERS, numbers, strict=True)]
    return [str(question), called.get(str(label), str(label)), str(load), str(block), *shown, str(validity)]


def _number(name: str, value: float | str | None) -> str:
    if not isinstance(value, int | float):
        return quantity.MISSING
    if isinstance(value, int):
        return quantity.thousands(value)
    return quantity.milliseconds(value) if name.endswith(" ms") else quantity.number(value)


def cells(verdict: Verdict, results: Sequence[Measurement | Failed]) -> list[Cell]:
    """Return the details of every contestant in every question."""
    found = []
    for answer in verdict.answers:
        for standing in answer.standings:
            here = [
                r
                for r in results
                if r.trial.question == answer.question and r.trial.label == standing.contestant
            ]
            again = repeat(verdict, answer, standing)
            found.append(_cell(answer, standing, again, here))
    return found


def _cell(answer: Answer, standing: Standing, again: str, here: Sequence[Measurement | Failed]) -> Cell:
    measured = [r for r in here if isinstance(r, Measurement)]
    failed = [r for r in here if isinstance(r, Failed)]
    last = measured[-1] if measured else None
    versions = ", ".join(f"{k} {v}" for k, v in sorted(last.packages.items())) if last else ""
    python = f"Python {last.python}" if last and last.python else ""
    flags = dict.fromkeys(
        (visible(f.sentence), visible(f.advice), f.severity) for m in measured for f in m.flags
    )
    notes = [
        (f"{'set aside' if severity is Severity.INVALID else 'noted'}: {sentence}", advice)
        for sentence, advice, severity in flags
    ]
    output = [visible(line) for r in failed[:1] for line in r.last_lines]
    output += [visible(text) for m in measured for text in m.load.examples][:5]
    command = " ".join(visible(word) for word in last.command) if last else ""
    reasons_failed = list(dict.fromkeys(visible(f"{r.failure.value}: {r.reason}") for r in failed))
    return Cell(
        anchor(answer.question, standing.contestant),
        names.sentence_case(visible(answer.about)),
        names.of_standing(standing),
        again,
        command,
        ", ".join(filter(None, (python, versions))),
        notes,
        reasons_failed,
        output,
        list(
            dict.fromkeys(
                visible(f"{m.load.driver} {m.load.driver_version}: {shlex.join(m.load.driver_command)}")
                for m in measured
                if m.load.driver_command
            )
        ),
    )


def facts(
    verdict: Verdict, results: Sequence[Measurement | Failed], header: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Return machine, placement, seed and versions as pairs of name and value."""
    machine = header.get("machine")
    known = {**(machine if isinstance(machine, Mapping) else {}), **verdict.environment}
    found = {
        _fact_name(name): visible(_fact(name, value)) for name, value in known.items() if value is not None
    }
    measured = next((r for r in results if isinstance(r, Measurement)), None)
    if measured is not None:
        placed = measured.placement
        found["server on CPUs"] = ", ".join(map(str, placed.server_cpus)) or "any"
        if placed.apart:
            found["load from"] = visible(
                _away((loader.name, loader.round_trip_ms) for loader in measured.load.loaders)
            )
        else:
            found["load on CPUs"] = ", ".join(map(str, placed.load_cpus)) or "any"
        third = next((r.upstream for r in results if isinstance(r, Measurement) and r.upstream), None)
        if third is not None and third.agent:
            found["third party on"] = visible(_away([(third.agent, third.round_trip_ms)]))
        elif not placed.apart:
            found["third party on CPUs"] = ", ".join(map(str, placed.upstream_cpus)) or "any"
        beside = [
            f"{companion.name} {companion.version}"
            for r in results
            if isinstance(r, Measurement)
            for companion in r.companions
        ]
        found["services"] = visible(", ".join(dict.fromkeys(beside)))
        found["placement"] = "; ".join((placed.enforced_by, *placed.notes))
        found["generator"] = names.join_words(dict.fromkeys(map(_generator, results)), most=9)
    found.setdefault("velodrome", str(header.get("velodrome", "")))
    found["seed"] = str(verdict.seed)
    return [(name, value) for name, value in found.items() if value]


def _away(agents: Iterable[tuple[str, float | None]]) -> str:
    """Return agents, each with the round trip to the server's host: `eu-1 (0.31 ms)`."""
    return ", ".join(
        name if trip_ms is None else f"{name} ({quantity.milliseconds(trip_ms)} ms)"
        for name, trip_ms in agents
    )


def _generator(result: Measurement | Failed) -> str:
    """Return `velodrome (io_uring)` or `wrk 4.1.0`."""
    if isinstance(result, Failed):
        return ""
    load = result.load
    return f"{load.driver} {load.driver_version or f'({load.generator_transport})'}"


def _fact_name(name: str) -> str:
    return name.removesuffix("_bytes").replace("_", " ")


def _fact(name: str, value: object) -> str:
    """Return a fact of the machine as people read it: bytes with a unit, lists without brackets."""
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value).strip("[]")
    return quantity.memory(int(text)) if name.endswith("_bytes") and text.isdigit() else text


REASON_HEADS = (
    "rate × time = in flight (counted)",
    "server CPU",
    "workers",
    "listen queue",
    "generator CPU, lag p99",
)


IDLE = 0.05
"""Share of the CPU time below which a process without a connection does not serve."""


@dataclass(frozen=True)
class Reason:
    """The facts that explain one contestant: texts under `HEADS`."""

    name: str
    anchor: str
    cells: Sequence[str]


def reasons(answer: Answer, measured: Sequence[Measurement]) -> list[Reason]:
    """Return the explaining facts of every contestant of a question, from its block of median throughput."""
    found = []
    for standing in answer.standings:
        here = [m for m in measured if m.trial.label == standing.contestant]
        here = [m for m in here if names.is_closed(m.trial.load.label)] or here
        if not here:
            continue
        valid = [m for m in here if m.valid] or here
        median = sorted(valid, key=lambda m: m.load.throughput_rps)[len(valid) // 2]
        cells = (little(median), _cpu(median), balance(median), queue(median), generator(median))
        found.append(Reason(names.of_standing(standing), anchor(answer.question, standing.contestant), cells))
    return found


def little(measurement: Measurement) -> str:
    """Return Little's law as arithmetic: requests in flight are rate times the time each takes.

    J. D. C. Little, «A Proof for the Queuing Formula L = λW», Operations Research 9 (1961).
    """
    load = measurement.load
    if load.sent.mean is None or load.latency_corrected or not load.duration_s:
        return quantity.MISSING
    answered = load.requests / load.duration_s
    expected = quantity.number(answered * load.sent.mean / 1e3)
    counted = f" ({quantity.number(load.mean_in_flight)})" if load.mean_in_flight is not None else ""
    return f"{quantity.number(answered)}/s × {quantity.span(load.sent.mean / 1e3)} = {expected}{counted}"


def _cpu(measurement: Measurement) -> str:
    share = measurement.server.cpu_s / max(measurement.load.duration_s, 1e-9)
    return quantity.percent(share)


def balance(measurement: Measurement) -> str:
    """Return how the workers shared the CPU time, and the connections where they are known."""
    total = sum(w.cpu_s for w in measurement.server.workers)
    # A master that only watches its workers is no worker.
    workers = [w for w in measurement.server.workers if w.connections or w.cpu_s > IDLE * total]
    if len(workers) < 2 or not total:
        return "one"
    shares = " / ".join(f"{100 * w.cpu_s / total:.0f}" for w in workers[:8])
    connections = [w.connections for w in workers if w.connections is not None]
    known = len(connections) == len(workers) and any(connections)
    held = f" of CPU, {' / '.join(map(str, connections[:8]))} connections" if known else " of CPU"
    return f"{shares} %{held}"


def queue(measurement: Measurement) -> str:
    """Return how long the listen queue grew and what it lost."""
    facts = measurement.queue
    if facts.peak is None:
        return "not readable here"
    lost = f", {plural(facts.overflows, 'overflow')}" if facts.overflows else ""
    return f"{facts.peak} of {facts.limit if facts.limit is not None else '?'}{lost}"


def generator(measurement: Measurement) -> str:
    """Return what the generator used and how late it was."""
    load = measurement.load
    share = load.generator_cpu_s / max(load.duration_s, 1e-9)
    lag = f", {quantity.milliseconds(load.lag.p99)} ms" if load.lag.p99 is not None else ""
    return f"{quantity.percent(share)}{lag}"


def little_sentence(measured: Sequence[Measurement]) -> str:
    """Say what the table shows, and how far Little's law is missed at most."""
    gaps = [gap for m in measured if m.valid and (gap := _gap(m)) is not None]
    seen = (
        "Rate × time is what is in flight (Little's law): fewer in flight, or longer each, is a lower rate. "
    )
    if not gaps:
        return seen
    return (
        f"{seen}Counted and expected differ by {quantity.percent(statistics.median(gaps), 1)} in the median."
    )


def _gap(measurement: Measurement) -> float | None:
    load = measurement.load
    if not load.mean_in_flight or load.latency_corrected or load.sent.mean is None or not load.duration_s:
        return None
    return abs(load.requests / load.duration_s * load.sent.mean / 1e3 / load.mean_in_flight - 1)


STRIP_TITLES = ("requests/s", "p99, ms", "CPU, % of one", "RSS, MB")
ENOUGH_TO_SEE_A_STALL = 5
"""Answers a second; a server slower than this has empty seconds without standing still."""


SHORTEST_S = 0.1
"""Of a last second shorter than this no rate is reported."""


@dataclass(frozen=True)
class Strip:
    """One contestant: a line for each quantity and the range of its values."""

    name: str
    anchor: str
    lines: Sequence[tuple[str, Markup, str]]
    """Title, drawing, range."""
    stalled_s: int


@dataclass(frozen=True)
class History:
    """One question under one load."""

    about: str
    load: str
    see: str
    strips: Sequence[Strip]


def histories(answer: Answer, measured: Sequence[Measurement], style: Styles) -> list[History]:
    """Return the history of a question under each of its loads; nothing for a load without series."""
    loads = list(dict.fromkeys(m.trial.load.label for m in measured))
    found = []
    for load in loads:
        here = [m for m in measured if m.trial.load.label == load]
        by_label = _by_label(here)
        strips = [
            _strip(answer, s.contestant, names.of_standing(s), by_label[s.contestant], style)
            for s in answer.standings
            if s.contestant in by_label
        ]
        about = names.sentence_case(answer.about)
        found.append(History(about, names.load_label(load), _see(strips, here), strips))
    return found


def _by_label(measured: Sequence[Measurement]) -> Mapping[str, Sequence[Measurement]]:
    found: dict[str, list[Measurement]] = {}
    for measurement in sorted(measured, key=lambda m: m.trial.block):
        found.setdefault(measurement.trial.label, []).append(measurement)
    return found


def _see(strips: Sequence[Strip], measured: Sequence[Measurement]) -> str:
    seconds = max((len(m.load.series) for m in measured), default=0)
    blocks = len({m.trial.block for m in measured})
    what = f"{plural(blocks, 'block')} of {seconds} s side by side, each line from zero. "
    if not seconds:
        by = names.join_words(sorted({m.load.driver for m in measured}))
        return f"{plural(blocks, 'block')} side by side, each line from zero. {by} does not report single seconds."
    stalled = [strip for strip in strips if strip.stalled_s]
    if not stalled:
        return f"{what}A second without a response would be shaded; there is none."
    stalls = names.join_words(f"{strip.name} ({strip.stalled_s} s)" for strip in stalled)
    return f"{what}Shaded: seconds without a single answer, of {stalls}."


def _strip(answer: Answer, label: str, name: str, blocks: Sequence[Measurement], style: Styles) -> Strip:
    stalls = [stalled_seconds(m) for m in blocks]
    quantities: tuple[Sequence[Block], ...] = (
        [rates(m) for m in blocks],
        [[s.p99_ms for s in m.load.series] for m in blocks],
        [cpu_shares(m.server.samples) for m in blocks],
        [[s.rss_bytes / 1e6 for s in m.server.samples] for m in blocks],
    )
    colour = style[label][0]
    lines = [
        (title, sparkline(values, stalls, colour), _range(values, title))
        for title, values in zip(STRIP_TITLES, quantities, strict=True)
    ]
    return Strip(name, anchor(answer.question, label), lines, sum(map(sum, stalls)))


def stalled_seconds(measurement: Measurement) -> list[bool]:
    """Return for each second whether nothing was answered in it although something usually is."""
    answered = [second.ok for second in measurement.load.series]
    usual = statistics.median(answered) if answered else 0
    return [usual >= ENOUGH_TO_SEE_A_STALL and ok == 0 for ok in answered]


def rates(measurement: Measurement) -> list[float | None]:
    """Return right answers per second in each second; the last second may be cut short by the end of the span."""
    lengths = (min(1.0, measurement.load.duration_s - at) for at in range(len(measurement.load.series)))
    pairs = zip(measurement.load.series, lengths, strict=True)
    return [second.ok / length if length > SHORTEST_S else None for second, length in pairs]


def cpu_shares(samples: Sequence[ServerSample]) -> list[float | None]:
    """Return the percentage of one CPU used between each two samples."""
    start = ServerSample(0.0, 0.0, 0, 0, 0, None, None)
    found: list[float | None] = []
    for before, after in pairwise([start, *(sample for sample in samples if sample.at_s > 0)]):
        passed = after.at_s - before.at_s
        found.append(100 * (after.cpu_s - before.cpu_s) / passed if passed > 0 else None)
    return found


def _range(blocks: Sequence[Block], title: str) -> str:
    """Return `184–201`, or one number where both ends read the same."""
    values = [value for block in blocks for value in block if value is not None]
    if not values:
        return quantity.MISSING
    form = quantity.milliseconds if "ms" in title else quantity.number
    low, high = form(min(values)), form(max(values))
    return low if low == high else f"{low}–{high}"
