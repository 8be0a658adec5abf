"""Which setting to deploy, as text and as JSON, with the command line and the files to paste.

The text is the answer, why, what would change it, proof, and files. JSON: schema `velodrome/tune/1`,
docs/tune.schema.json.
"""

import textwrap
from collections.abc import Iterator
from dataclasses import asdict, astuple
from typing import Any

from velodrome.model import quantity
from velodrome.model.measurement import Purpose
from velodrome.model.tuning import (
    SCHEMA,
    AsPasted,
    Candidate,
    Entry,
    Fate,
    Goal,
    Growth,
    Observation,
    Recommendation,
    Tuned,
    TuneEnding,
)
from velodrome.report import deployment, searches, suspects
from velodrome.report.deployment import File, Full, Wishes
from velodrome.report.typeset import columns, plural, visible

FOR = {
    Goal.CAPACITY: "the highest throughput",
    Goal.CPU: "the least CPU",
    Goal.MEMORY: "the least memory",
}
WHY = 64
"""Letters of a reason, cut between words."""
AFTER = (Purpose.CONFIRM, Purpose.PROOF, Purpose.PASTED)
"""What loads are made for once the best was chosen."""
SHOWN = 12
"""Candidates in the table; the JSON document has all."""


def load_line(candidate: Candidate, observed: Observation) -> str:
    """Return a line for one load: `uvicorn[workers=2]  620/s held`."""
    load = (
        quantity.rate(observed.ask.rate) if observed.ask.rate else f"{observed.ask.connections} connections"
    )
    if observed.failed or observed.spoilt:
        came = f"failed: {observed.failed}" if observed.failed else f"does not count: {observed.spoilt}"
    elif observed.ask.rate:
        came = "held" if observed.held else f"broke  {observed.why}"
    else:
        came = f"{quantity.rate(observed.throughput_rps)}" + (f"  {observed.why}" if observed.why else "")
    why = f"{observed.ask.purpose.value}: " if observed.ask.purpose in AFTER else ""
    return visible(f"{candidate.label:<44} {load:>14}  {why}{came}")


def sentence(found: Recommendation) -> str:
    """Return the answer in a sentence, with the CPUs that it is for."""
    scope = f" This is {found.scope}." if found.scope else ""
    return f"{_answer(found)}{scope}"


def _answer(found: Recommendation) -> str:
    tuned, best = found.tuned, found.tuned.best
    wanted = f"with {' and '.join(found.conditions)}" if found.conditions else "that the server keeps up with"
    wanted += f" ({searches.ARRIVALS[found.arrivals]})"
    if best is None or best.value is None:
        why = tuned.because.rstrip(".")
        if tuned.ending is TuneEnding.NEVER and found.rate:
            return visible(f"No setting carries {quantity.rate(found.rate)} {wanted}: {why}.")
        if tuned.ending is TuneEnding.NEVER:
            return visible(f"No setting has a rate {wanted}: {why}.")
        return visible(f"Cannot tell: {why}.")
    if tuned.goal is Goal.CAPACITY and found.claim is not None:
        about = f"estimate {_value(tuned.goal, best)}, {plural(best.boots, 'start')} of its server"
        return visible(
            f"{found.title}: carries {quantity.rate(found.claim)} {wanted} ({about}), {FOR[tuned.goal]} of what was "
            "tried."
        )
    if tuned.goal is Goal.CAPACITY:
        return visible(
            f"{found.title}: {_value(tuned.goal, best)} {wanted}, {FOR[tuned.goal]} of what was tried."
        )
    return visible(
        f"{found.title}: {_value(tuned.goal, best)} at {quantity.rate(found.rate)} {wanted}, {FOR[tuned.goal]} of what "
        "was tried."
    )


def lines(found: Recommendation) -> list[str]:
    """Return the whole report."""
    shown = ["", f" {visible(found.of)}", "", f" → {sentence(found)}"]
    shown += [f"   {line}" for line in _about(found)]
    shown += ["", *_table(found)]
    if found.mind:
        shown += ["", " What would change this:"]
        shown += [f"   · {visible(reason.sentence)}." for reason in found.mind]
    if suspected := suspects.lines(found.suspects):
        shown += ["", *(f" {line}" for line in suspected)]
    shown += ["", f" {_took(found)}", *(f" {line}" for line in _hosts(found.tuned))]
    if found.folder:
        shown += [f" Every measurement is in {visible(found.folder)}; velodrome judge judges them again."]
    if found.before:
        shown += ["", " Before it:", *(f"   {line}" for line in visible_lines(found.before))]
    for file in files_to_paste(found):
        shown += ["", f" {file.name}", *(f"   {line}" for line in file.text.splitlines())]
    return [line.rstrip() for line in shown]


def visible_lines(text: str) -> list[str]:
    """Return lines that hold what a user called their app."""
    return [visible(line) for line in text.splitlines()]


def _about(found: Recommendation) -> Iterator[str]:
    tuned, proof = found.tuned, found.proof
    if tuned.runner_up is not None:
        yield f"Runner-up: {visible(found.runner_up)}, {_value(tuned.goal, tuned.runner_up)}."
    if tuned.ending is TuneEnding.SPENT:
        yield visible(f"Not settled: {tuned.because.rstrip('.')}.")
    if proof is not None:
        facts, cpu = proof.load, proof.cpu_us_per_request
        used = proof.server.cpu_s / facts.duration_s if facts.duration_s else 0.0
        cost = f" ({quantity.number(cpu)} µs a request)" if cpu else ""
        for proven in found.proofs[:-1]:
            yield visible(
                f"At {quantity.rate(proven.rate)} it did not hold for {quantity.duration(proven.seconds)}: "
                f"{proven.why.rstrip('.')}; so less is claimed."
            )
        yield (
            f"At {quantity.rate(facts.throughput_rps)} for {quantity.duration(facts.duration_s)}: p50 "
            f"{quantity.milliseconds(facts.due.p50)} ms, p99 {quantity.milliseconds(facts.due.p99)} ms, "
            f"{quantity.number(used, 2)} CPUs{cost}, {quantity.memory(proof.memory_bytes)}."
        )
        for flag in proof.flags:
            yield f"⚑ {visible(flag.sentence)}"
    if found.workers is not None:
        yield visible(found.workers.sentence)
    if found.cold_start_s is not None:
        low, mid, high = (quantity.number(end, 2) for end in astuple(found.cold_start_s))
        yield f"Cold start: {mid} s to the first correct response (between {low} and {high} s)."
    if found.pasted is not None:
        yield visible(_as_pasted(found.pasted))
    if found.growth is not None:
        yield _growth(found.growth, visible(server_that_keeps_workers(found)))
    if found.withheld:
        yield "Nothing to paste, as nothing is settled; --paste gives it all the same."
    if found.command:
        if found.measured:
            yield visible(found.measured)
        yield f"deploy:  {visible(command_line(found))}"


def _as_pasted(pasted: AsPasted) -> str:
    """Return `Pasted as it stands: 1 190/s held for 20 s, p99 141 ms.`"""
    if not pasted.rate:
        return f"⚑ Pasted as it stands, it did not start: {pasted.why.rstrip('.')}."
    loaded = f"{quantity.rate(pasted.rate)} for {quantity.duration(pasted.seconds)}"
    if pasted.within is None:
        return f"Pasted as it stands, at {loaded}: cannot tell, because {pasted.why.rstrip('.')}."
    if not pasted.within:
        return f"⚑ Pasted as it stands, it is not what was measured: at {loaded} {pasted.why.rstrip('.')}."
    cost = f", {quantity.number(pasted.cpu_us)} µs of CPU a request" if pasted.cpu_us else ""
    return (
        f"Pasted as it stands, it does {loaded} as well: p99 {quantity.milliseconds(pasted.p99_ms)} ms{cost}."
    )


def _growth(growth: Growth, keeps: str) -> str:
    per_request = quantity.memory(growth.bytes_per_request)
    text = f"⚑ Memory rose by {per_request} with every request"
    if growth.seconds_to_limit is not None:
        after = quantity.duration(growth.seconds_to_limit)
        text += f": at {quantity.rate(growth.at_rps)} the limit is reached after {after}"
    seen = quantity.duration(growth.seen_s)
    if not growth.goes_on:
        return (
            f"{text}, seen for {seen}. A cache that fills looks the same for so long: load it for ten minutes "
            "(velodrome load -z 10m) before you replace workers for it."
        )
    text += f", seen for {seen} and no slower in the end"
    restart = quantity.grouped(growth.requests_to_restart)
    if keeps:
        return (
            f"{text}. Find the leak; {keeps} has no option to replace a worker: until then restart it before one has "
            f"served {restart} requests."
        )
    has = quantity.memory(growth.bytes_to_restart)
    return f"{text}. Find the leak; until then replace a worker after {restart} requests (with {has})."


def _table(found: Recommendation) -> list[str]:
    goal = found.tuned.goal
    head = {Goal.CAPACITY: "requests/s", Goal.CPU: "CPU µs/req", Goal.MEMORY: "memory at the rate"}[goal]
    shown = [entry for entry in found.tuned.entries if entry.trials or entry.fate is Fate.FAILED][:SHOWN]
    rows = [
        (
            entry.candidate.label,
            entry.fate.value,
            _value(goal, entry),
            quantity.memory(entry.memory_bytes),
            str(entry.trials),
            textwrap.shorten(visible(entry.why), WHY, placeholder=" …"),
        )
        for entry in shown
    ]
    if not rows:
        return []
    table = columns(("setting", "", head, "memory", "loads", "why"), rows, left=("", head, "why"))
    by_fate = [
        f"{sum(entry.fate is fate for entry in found.tuned.entries)} {fate.value}"
        for fate in (Fate.BY_ARITHMETIC, Fate.ALIKE, Fate.UNTRIED)
        if any(entry.fate is fate for entry in found.tuned.entries)
    ]
    return [*table, *([f" Not measured: {', '.join(by_fate)}."] if by_fate else [])]


def _took(found: Recommendation) -> str:
    tuned = found.tuned
    share = quantity.percent(tuned.trials / found.grid_trials) if found.grid_trials else quantity.MISSING
    return (
        f"{plural(tuned.trials, 'load')} of {plural(tuned.candidates, 'candidate')} in "
        f"{quantity.duration(found.seconds)}; the whole grid takes about {plural(found.grid_trials, 'load')} ({share})."
    )


def _hosts(tuned: Tuned) -> Iterator[str]:
    """Yield what each host did, and which of them differ from that of the final."""
    for one in tuned.hosts:
        what = [plural(len(one.stacks), "stack")] if one.stacks else []
        what += ["the final"] if one.final else []
        line = f"{one.host}: {' and '.join(what)}, {plural(one.loads, 'load')}."
        if one.differs and (beside := one.beside_final) is not None:
            low, mid, high = (quantity.number(number, 2) for number in astuple(beside))
            line += f" The same settings did {mid} [{low}, {high}] times what they did in the final."
        yield visible(line)


def _value(goal: Goal, entry: Entry) -> str:
    if entry.value is None:
        return quantity.MISSING
    low, mid, high = entry.value.low, entry.value.mid, entry.value.high
    if goal is Goal.MEMORY:
        return f"{quantity.memory(mid)} [{quantity.memory(low)}, {quantity.memory(high)}]"
    unit = "/s" if goal is Goal.CAPACITY else " µs a request"
    return f"{quantity.number(mid)}{unit} [{quantity.number(low)}, {quantity.number(high)}]"


def document(found: Recommendation) -> dict[str, Any]:
    """Return it as plain values."""
    tuned = found.tuned
    return {
        "schema": SCHEMA,
        "of": found.of,
        "goal": tuned.goal.value,
        "rate": found.rate or None,
        "conditions": list(found.conditions),
        "arrivals": found.arrivals,
        "limits": asdict(found.limits),
        "cpus": found.cpus,
        "ending": tuned.ending.value,
        "because": tuned.because,
        "sentence": sentence(found),
        "recommended": _entry(tuned.best, found.title),
        "runner_up": _entry(tuned.runner_up, found.runner_up),
        "candidates": [_entry(entry, "") for entry in tuned.entries],
        "looks": {name: asdict(look) for name, look in tuned.looks.items()},
        "mind": [asdict(reason) for reason in found.mind],
        "growth": asdict(found.growth) if found.growth else None,
        "proof": searches.of_measurement(found.proof) if found.proof else None,
        "claim": found.claim,
        "proofs": [asdict(proof) for proof in found.proofs],
        "cold_start_s": asdict(found.cold_start_s) if found.cold_start_s else None,
        "folder": found.folder,
        "workers": asdict(found.workers) if found.workers else None,
        "suspects": [asdict(suspected) for suspected in found.suspects],
        "before": found.before,
        "command": command_line(found),
        "pasted": asdict(found.pasted) if found.pasted else None,
        "files": {file.name: file.text for file in files_to_paste(found)},
        "hosts": [asdict(one) for one in tuned.hosts],
        "trials": tuned.trials,
        "grid_trials": found.grid_trials,
        "seconds": found.seconds,
    }


def _entry(entry: Entry | None, called: str) -> dict[str, Any] | None:
    if entry is None:
        return None
    contestant = entry.candidate.contestant
    return {
        "label": contestant.label,
        **({"called": called} if called else {}),
        "stack": contestant.stack,
        "knobs": dict(contestant.knobs),
        "fate": entry.fate.value,
        "why": entry.why,
        "trials": entry.trials,
        "value": asdict(entry.value) if entry.value else None,
        "memory_bytes": entry.memory_bytes,
        "grew_bytes": entry.grew_bytes,
        "forecast": asdict(entry.forecast) if entry.forecast else None,
        "boots": entry.boots,
    }


def command_line(found: Recommendation) -> str:
    """Return the command line to deploy; empty where there is none."""
    return deployment.command_line(found.command, _wishes(found)) if found.command else ""


def files_to_paste(found: Recommendation) -> tuple[File, ...]:
    """Return the files to paste; none where there is no command line."""
    return deployment.files(found.command, _wishes(found)) if found.command else ()


def server_that_keeps_workers(found: Recommendation) -> str:
    """Return the server that has no setting to replace a worker, where a worker would have to be replaced; else
    nothing."""
    if (
        not found.command
        or found.growth is None
        or deployment.replaces_workers(found.command, _wishes(found))
    ):
        return ""
    return deployment.server_of(found.command)


def _wishes(found: Recommendation) -> Wishes:
    cpus, growth = found.limits.cpus, found.growth
    return Wishes(
        cpus if isinstance(cpus, int) else None,
        found.limits.memory_bytes,
        Full(growth.requests_to_restart, growth.bytes_to_restart) if growth and growth.goes_on else None,
        found.python or deployment.PYTHON,
        found.cwd or deployment.FOLDER,
        found.variables,
        found.stack,
        found.knobs,
        found.measured,
        found.proof.python if found.proof else "",
        found.proof.packages if found.proof else {},
    )
