"""The result of a load as text: `velodrome load` while it runs, and its summary at the end.

The summary is latency, steps and requests (one line each), the limit, notes and flags, failures by example,
conditions, and the percentile curve. It is made from the `velodrome/load/1` document alone.
"""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from velodrome.model import quantity
from velodrome.report import typeset
from velodrome.report.typeset import Curve, columns, plot

if TYPE_CHECKING:
    from velodrome.model.condition import Compared, Decided

COLUMNS = (("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p99.9", "p99.9"), ("max", "max"))
CURVE = (("p50", 50.0), ("p75", 75.0), ("p90", 90.0), ("p95", 95.0), ("p99", 99.0), ("p99.9", 99.9))
ROWS = (("from when due", "due"), ("from when sent", "sent"))
PHASES = (
    ("connect", "connect"),
    ("TLS", "tls"),
    ("first byte", "first_byte"),
    ("then last byte", "last_byte"),
)
SECONDS_BETWEEN_PLAIN_LINES = 5.0
_wrapped = typeset.wrap

MARKED = ("generator", "cannot tell")
"""Limits with which the figures do not describe the server."""

FLAGS = {
    "capped-by-connections": "the rate needs more requests at once than the connections allow: waiting for a "
    "free connection is in the latency from when due; raise -c, or over gRPC --streams",
    "streams-without-room": "the server allows fewer calls at once on a connection than --streams: the others "
    "carried nothing; use more connections (-c)",
    "too-short": "too few requests for the highest percentile shown; load longer (-z), or send more (-n)",
    "agent-lost": "an agent was lost, so this is not the load that was requested: the figures are those of the "
    "other agents until it ended",
    "agents-share-cpus": "agents of one host may use the same CPUs and delay each other; start them with --cpus",
    "clocks-apart": "the agents' clocks are known to less than 100 ms, so there is no series by seconds",
    "debug-build": "the generator was built without optimisation: install a release build",
    "connections-never-in": "some connections never got an answer",
    "answered-before-read": "the server answered before it had read the whole request",
}


def is_terminal(stream: TextIO) -> bool:
    """Whether control codes may be written to `stream`."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


class Progress:
    """One line that is rewritten while a load runs; in a pipe, a line every five seconds."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = is_terminal(stream)
        self._last_plain_s = 0.0
        self._drawn = False

    def event(self, event: Mapping[str, Any]) -> bool:
        """Show an event of the engine. Returns True: the load goes on."""
        if event["event"] != "tick":
            return True
        line = tick_line(event)
        if self._live:
            self._stream.write(f"\r\x1b[2K{line[: shutil.get_terminal_size().columns - 1]}")
            self._drawn = True
        elif event["at_s"] - self._last_plain_s >= SECONDS_BETWEEN_PLAIN_LINES:
            self._last_plain_s = event["at_s"]
            self._stream.write(line + "\n")
        self._stream.flush()
        return True

    def end(self) -> None:
        """Take the line away again."""
        if self._drawn:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()


def tick_line(tick: Mapping[str, Any]) -> str:
    """Return one line on how a load is going."""
    p50, p99 = quantity.milliseconds(tick["p50_ms"]), quantity.milliseconds(tick["p99_ms"])
    errors = tick["errors"]
    failed = f"{quantity.thousands(errors)} error{'s' if errors != 1 else ''}" if errors else "no errors"
    rate = f"{tick['at_s']:5.1f} s   {quantity.thousands(tick['rps']):>9}/s"
    return f" {rate}   p50 {p50:>6} ms   p99 {p99:>6} ms   {failed}"


def show(document: Mapping[str, Any], stream: TextIO) -> None:
    """Write what a `velodrome/load/1` document says to `stream`."""
    width = min(shutil.get_terminal_size().columns, 100) if is_terminal(stream) else 80
    # URLs, notes and what a server answered may stand in any of them.
    stream.write("\n".join(map(typeset.visible, lines(document, width))) + "\n")


def lines(document: Mapping[str, Any], width: int = 80) -> list[str]:
    """Return the lines `show` writes, none longer than `width` where words can be broken."""
    found = heading(document, width)
    for note in document.get("notes", ()):
        found += _wrapped(note, width)
    found += ["", *latency_table(document)]
    found += steps_table(document)
    found += requests_table(document)
    if "limit" in document:
        mark = "⚑ " if document["limit"]["at"] in MARKED else ""
        found += ["", *_wrapped(mark + document["limit"]["sentence"], width)]
        found += _wrapped(document["limit"]["facts"], width)
    if document.get("suspects"):
        from velodrome.model.diagnosis import Suspected  # noqa: PLC0415 - a load without has no time for them
        from velodrome.report.diagnoses import suspect_lines  # noqa: PLC0415

        found += [
            "",
            *(
                f" {line}"
                for line in suspect_lines([Suspected(**suspect) for suspect in document["suspects"]])
            ),
        ]
    for flag in document.get("flags", ()):
        if flag == "unfair" and document.get("fairness"):
            found += _wrapped(f"⚑ unfair: {fairness_sentence(document['fairness'])}", width)
        elif not flag.startswith("generator-"):
            found += _wrapped(f"⚑ {flag}: {FLAGS.get(flag, 'see docs/method.md')}.", width)
    if document.get("deliveries") is not None:
        found += _wrapped(room_sentence(document["deliveries"]), width)
    if document["generator"].get("unread_bytes"):
        found += _wrapped(transport_sentence(document["generator"]), width)
    if document["generator"].get("dropped_bodies"):
        found += _wrapped(bodies_sentence(document["generator"]), width)
    if document.get("resent"):
        found += _wrapped(resent_sentence(document["resent"]), width)
    if "idle" in document:
        found += _wrapped(idle_sentence(document["idle"]), width)
    found += agents_table(document)
    found += failures(document, width)
    for condition in document.get("conditions", ()):
        mark = {True: "✗", False: "✓", None: "?"}[condition["holds"]]
        found += _wrapped(f"{mark} {condition['sentence']}", width)
    picture = plot(curve(document, "due"), curve(document, "sent"), width)
    return found + (["", *picture] if picture else [])


def agents_table(document: Mapping[str, Any]) -> list[str]:
    """Return a row for each agent that carried the load, and why an agent was lost; none where this machine did it."""
    agents = document.get("agents") or ()
    if not agents:
        return []
    rows = [
        [
            agent["name"],
            quantity.thousands(agent["requests"]),
            quantity.milliseconds(agent["lag_p99_ms"]),
            "" if agent["cpu_share"] is None else f"{agent['cpu_share'] * 100:.0f} %",
            "" if agent["steal_share"] is None else f"{agent['steal_share'] * 100:.1f} %",
            ""
            if agent["offset_ms"] is None
            else f"{agent['offset_ms']:+.3f} ± {quantity.milliseconds(agent['uncertainty_ms'])}",
            ", ".join(agent["flags"]),
        ]
        for agent in agents
    ]
    head = ["agent", "requests", "lag p99 ms", "CPU", "steal", "clock ms", "flags"]
    lost = [f"   ⚑ {agent['name']} was lost: {agent['lost']}" for agent in agents if agent["lost"]]
    return ["", *columns(head, rows, left=("clock ms", "flags")), *lost]


def heading(document: Mapping[str, Any], width: int) -> list[str]:
    """Return what was requested and what came of it, on one line where both fit."""
    request, came = f" {load_name(document)}", result(document)
    if len(request) + 3 + len(came) <= width:
        return [request + came.rjust(width - len(request) - 1)]
    return [*_wrapped(request.strip(), width), *_wrapped(came, width)]


def load_name(document: Mapping[str, Any]) -> str:
    """Return `open loop, constant 5 000/s, up to 50 connections, 10 s`; of gRPC after the name of the call."""
    load = document["load"]
    seconds = quantity.span(document["duration_s"])
    connections = load["connections"]
    plural = f"{quantity.thousands(connections)} connection{'s' if connections != 1 else ''}"
    if load.get("mode") == "broadcast":
        return f"{_pace(load)}, a room of {quantity.thousands(connections)}, {seconds}"
    if load["streams"] != 1:
        plural += f" × {quantity.thousands(load['streams'])} streams"
    call = f"{load['call'].lstrip('/')}: " if load["call"] else ""
    if load["model"] == "closed":
        return f"{call}closed loop, {plural}, {seconds}"
    return f"{call}{_open(load)}, up to {plural}, {seconds}"


def _open(load: Mapping[str, Any]) -> str:
    """Return `open loop, constant 5 000/s`, or how the rate changes."""
    if load.get("schedule"):
        return f"open loop, {load['arrivals']} {schedule_name(load['schedule'])}"
    return f"open loop, {load['arrivals']} {quantity.short(load['rate'])}/s"


def _pace(load: Mapping[str, Any]) -> str:
    """Return how messages to a room are paced."""
    if load["model"] == "open":
        return _open(load)
    at_once = load["at_once"]
    return f"closed loop, {quantity.thousands(at_once)} message{'s' if at_once != 1 else ''} at once"


def result(document: Mapping[str, Any]) -> str:
    """Return `50 000 requests · 4 998/s · all right`."""
    from velodrome.model import measurement  # noqa: PLC0415 - loaded when the load is over, not before it starts

    requests, loop = document["requests"], document["load"]["model"]
    if requests == 0:
        return "no request was made"
    failed = measurement.count_failed(document, loop)
    in_flight = measurement.count_in_flight(document, loop)
    if document["ok"] == 0:
        share = "NONE answered right"
    elif failed == 0:
        share = "all answered right" if not in_flight else "none failed"
    else:
        share = f"{quantity.thousands(failed)} failed ({quantity.percent(failed / requests)})"
    if in_flight:
        share += f", {quantity.thousands(in_flight)} in flight at the end"
    return (
        f"{quantity.thousands(requests)} requests · {quantity.number(document['throughput_rps'])}/s · {share}"
    )


def latency_table(document: Mapping[str, Any]) -> list[str]:
    """Return the percentiles from due and from sent and the generator's lag, aligned, in milliseconds.

    Of answers that have several messages, also those until the first; and the phases that were had.
    """
    found = [(name, document["latency_ms"][key]) for name, key in ROWS]
    if document.get("deliveries") is not None:
        found.append(("each delivery", document["deliveries"]["latency_ms"]["due"]))
    if document["first_message_ms"] is not None:
        found += [(f"first, {name}", document["first_message_ms"][key]) for name, key in ROWS]
    found += _phases(document)
    found.append(("our own lag", document["lag_ms"]))
    cells = [[name for name, _ in found]]
    for _, key in COLUMNS:
        cells.append(typeset.align([quantity.milliseconds(values.get(key)) for _, values in found]))
    widths = [max(len(text) for text in column) for column in cells]
    head = f" {'latency, ms':<{widths[0]}}"
    for (title, _), size in zip(COLUMNS, widths[1:], strict=True):
        head += f"   {title:>{max(size, 5)}}"
    table = [head]
    for row in range(len(found)):
        line = f" {cells[0][row]:<{widths[0]}}"
        for column, size in zip(cells[1:], widths[1:], strict=True):
            line += f"   {column[row]:>{max(size, 5)}}"
        table.append(line.rstrip())
    return table


def fairness_sentence(fairness: Mapping[str, Any]) -> str:
    """Say that few connections had the answers, and what the median of them waited."""
    connections, median = fairness["connections"], fairness["median_connection_ms"]
    if fairness["jain_short_term"] is None:  # of several agents, of which each saw its own connections alone
        return "on one agent at least, few connections got the answers at any time while the others waited"
    at_once = max(1, round(fairness["jain_short_term"] * connections))
    waits = (
        "half of them got no answer"
        if median is None
        else f"the median connection waits {quantity.milliseconds(median)} ms"
    )
    return (
        f"at any time about {quantity.thousands(at_once)} of {quantity.thousands(connections)} connections "
        f"got the answers while the others waited; {waits}, whatever p50 is."
    )


def bodies_sentence(generator: Mapping[str, Any]) -> str:
    """Say that bodies were not looked at, how many, and what was compared all the same."""
    dropped = quantity.thousands(generator["dropped_bodies"])
    sentence = f"Of {dropped} answers the kernel dropped the body unread: only its length was checked"
    every = generator["compared_every"]
    if every is None:
        return f"{sentence} (--expect-body names the correct one)."
    if every == 1:
        return f"{sentence}; all responses to requests with a check were read."
    return f"{sentence}; one in {quantity.thousands(every)} was read and compared as a whole."


def transport_sentence(generator: Mapping[str, Any]) -> str:
    """Say that the load changed its transport, and for which size of answers."""
    size = quantity.memory(generator["unread_bytes"])
    return (
        f"The load changed to {generator['transport']}: its first responses had {size} on average that nothing has to "
        "inspect, and with that transport the kernel can drop them."
    )


def resent_sentence(resent: int) -> str:
    """Say how many requests met the close of an idle connection; what became of them is among the outcomes."""
    times = "1 request was" if resent == 1 else f"{quantity.thousands(resent)} requests were"
    return f"{times} sent again on a new connection because the server closed the idle connection at that moment."


def _phases(document: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the phases that were had; where all answers came in one piece their first byte is their last."""
    phases = document.get("phases_ms") or {}
    in_pieces = phases.get("last_byte") is not None and phases["last_byte"]["max"] > 0
    return [
        (name, phases[key])
        for name, key in PHASES
        if phases.get(key) is not None and (in_pieces or not key.endswith("_byte"))
    ]


def room_sentence(deliveries: Mapping[str, Any]) -> str:
    """Return how many deliveries were measured, and what members received beside them."""
    text = (
        f"{quantity.thousands(deliveries['count'])} deliveries; a request is done when all members have it."
    )
    beside = [
        f"{quantity.thousands(deliveries[key])} {what}"
        for key, what in (
            ("again", "twice"),
            ("late", "after they had timed out"),
            ("strangers", "never sent"),
        )
        if deliveries[key]
    ]
    return text + (f" Members also received messages: {', '.join(beside)}." if beside else "")


def idle_sentence(idle: Mapping[str, Any]) -> str:
    """Return `950 idle connections were held beside the load`, or how many of them were not."""
    wanted, opened, open_ = idle["asked"], idle["opened"], idle["still_open"]
    if open_ < wanted:
        return (
            f"⚑ idle-not-held: of {quantity.thousands(wanted)} idle connections {quantity.thousands(opened)} could be "
            f"opened, and {quantity.thousands(open_)} were still there at the end."
        )
    if idle["accepted"] is not None and idle["accepted"] < opened:
        return (
            f"⚑ idle-not-held: of {quantity.thousands(opened)} idle connections the server took in "
            f"{quantity.thousands(idle['accepted'])}; the others lay in its listen queue."
        )
    return f"{quantity.thousands(wanted)} idle connections were held beside the load."


def curve(document: Mapping[str, Any], kind: str) -> Curve:
    """Return the percentiles the document holds as a curve; its end is the maximum of that many requests."""
    values, requests = document["latency_ms"][kind], document["requests"]
    if requests < 2 or values.get("max") is None:
        return []
    end = 100 * (1 - 1 / requests)
    points = [(place, values[key]) for key, place in CURVE if values.get(key) is not None and place < end]
    return [*points, (end, values["max"])]


REDIRECTED = re.compile(r"status 30[12378] where ")
"""As the engine begins what it says of such an answer; it puts no byte of the server before it."""


def failures(document: Mapping[str, Any], width: int) -> list[str]:
    """Return counts and a few examples, whole; nothing when none failed."""
    from velodrome.model import measurement  # noqa: PLC0415 - loaded when the load is over, not before it starts

    loop = document["load"]["model"]
    if document["ok"] and measurement.count_failed(document, loop) == 0:
        return []
    counts = [(name, count) for name, count in document["outcomes"].items() if count]
    if not counts:
        return []
    outcomes = " · ".join(
        f"{outcome_in_words(name, loop)} {quantity.thousands(count)}" for name, count in counts
    )
    found = ["", *typeset.wrap(f"outcomes: {outcomes}", width)]
    for example in document.get("examples", ()):
        text = f"{outcome_in_words(example['outcome'], loop)}: {typeset.visible(str(example['text']))}{_cure(example)}"
        found += textwrap.wrap(text, width - 1, initial_indent="   ", subsequent_indent="      ")
    untimed = sum(measurement.count_untimed(document).values())
    if 0 < untimed < document["requests"]:
        share = quantity.percent(untimed / document["requests"])
        found += typeset.wrap(
            f"{share} of the requests have no latency: those above are of the others.", width
        )
    return found


def outcome_in_words(name: str, loop: str) -> str:
    """Return what became of requests, in words; `loop`: `open` or `closed`."""
    if name == "unfinished" and loop == "closed":
        return "in flight at the end"
    return name.replace("_", " ")


def _cure(example: Mapping[str, Any]) -> str:
    """Return what to do about a failure whose cause is plain, to follow it; mostly nothing."""
    if example["outcome"] == "bad_status" and REDIRECTED.match(str(example["text"])):
        return (
            ". It redirects, and redirects are not followed: load the URL that it leads to (curl -I shows it), or "
            "give --expect-status if a redirect is correct"
        )
    return ""


REQUEST_HEADS = ("request", "share", "sent", "due p50", "p99", "sent p50", "p99", "errors", "what")


def requests_table(document: Mapping[str, Any]) -> list[str]:
    """Return the lines, headed; none for a load with one request."""
    requests = document.get("by_request") or ()
    if not requests:
        return []
    loop = document["load"]["model"]
    found = ["", *columns(REQUEST_HEADS, [_row(request, loop) for request in requests], left=("what",))]
    unsent = document["requests"] - sum(request["requests"] for request in requests)
    if unsent > 0:
        found.append(f" {quantity.thousands(unsent)} were never sent, so none of them was drawn.")
    return found


def _row(entry: Mapping[str, Any], loop: str) -> list[str]:
    from velodrome.model import measurement  # noqa: PLC0415 - loaded when the load is over, not before it starts

    due, sent = entry["latency_ms"]["due"], entry["latency_ms"]["sent"]
    return [
        typeset.visible(entry["name"]),
        quantity.percent(entry["weight"]),
        quantity.thousands(entry["requests"]),
        quantity.milliseconds(due["p50"]),
        quantity.milliseconds(due["p99"]),
        quantity.milliseconds(sent["p50"]),
        quantity.milliseconds(sent["p99"]),
        quantity.thousands(measurement.count_failed(entry, loop)),
        _faults(entry),
    ]


def _faults(entry: Mapping[str, Any]) -> str:
    """Return `bad status 3 · timeout 1`."""
    counts = [(name, count) for name, count in entry["outcomes"].items() if count and name != "ok"]
    return " · ".join(f"{name.replace('_', ' ')} {quantity.thousands(count)}" for name, count in counts)


STEP_HEADS = ("step", "offered/s", "achieved/s", "due p50", "p99", "sent p50", "p99", "errors", "our lag p99")


def steps_table(document: Mapping[str, Any]) -> list[str]:
    """Return the lines, headed; none for a load with one rate."""
    steps = document.get("steps") or ()
    if not steps:
        return []
    rows = [[f"at {quantity.span(step['at_s'])}", step_rate(step), *_came(step)] for step in steps]
    return ["", *columns(STEP_HEADS, rows), " latencies in ms; a request belongs to the step it fell due in."]


def step_rate(step: Mapping[str, Any]) -> str:
    """Return `500`, or of a ramp `500–900`."""
    low, high = (quantity.short(round(step[key], 2)) for key in ("rate", "to_rate"))
    return low if low == high else f"{low}–{high}"


def _came(step: Mapping[str, Any]) -> list[str]:
    due, sent = step["latency_ms"]["due"], step["latency_ms"]["sent"]
    return [
        quantity.number(step["throughput_rps"]),
        quantity.milliseconds(due["p50"]),
        quantity.milliseconds(due["p99"]),
        quantity.milliseconds(sent["p50"]),
        quantity.milliseconds(sent["p99"]),
        quantity.thousands(step["requests"] - step["ok"]),
        quantity.milliseconds(step["lag_ms"]["p99"]),
    ]


def schedule_name(schedule: list[Mapping[str, Any]]) -> str:
    """Return `100 to 5 000/s in 50 steps`, `0 to 500/s` of a ramp."""
    ends = [rate for step in schedule for rate in (step["rate"], step["to_rate"]) if rate is not None]
    first, last = quantity.short(ends[0]), quantity.short(ends[-1])
    top = quantity.short(max(ends))
    through = f" by way of {top}" if top not in (first, last) else ""
    steps = "" if all(step["to_rate"] is not None for step in schedule) else f" in {len(schedule)} steps"
    return f"{first} to {last}/s{through}{steps}"


def interruption_line(document: Mapping[str, Any], asked_s: float | None) -> str:
    """Say that somebody ended the load, and when."""
    length = quantity.span(document["duration_s"])
    of_all = f" of {quantity.span(asked_s)}" if asked_s else ""
    return f"Interrupted after {length}{of_all}: all figures are of what was measured until then."


def fewer_connections(document: Mapping[str, Any], wanted: int) -> str | None:
    """Say that an open loop had fewer connections to take than it usually has; None: it had them."""
    had = document["load"]["connections"]
    if had >= wanted:
        return None
    return (
        f"Up to {quantity.thousands(had)} connections at once instead of {quantity.thousands(wanted)}: the hard "
        "limit of open files (ulimit -Hn) allows no more."
    )


def condition_sentence(decided: Decided) -> str:
    """Return `Fails: p99 > 50ms. p99 was 61.3 ms, and the limit is 50 ms.`

    Or `Passes: …`, or `Cannot tell: …` with what is missing.
    """
    # Most loads have no condition and start without what judges conditions.
    from velodrome.model.condition import because, write_condition  # noqa: PLC0415

    opening = {True: "Fails", False: "Passes", None: "Cannot tell"}[decided.holds]
    return f"{opening}: {write_condition(decided.condition)}. {because(decided)}."


def condition_documents(decided: Sequence[Decided]) -> list[dict[str, Any]]:
    """Return the field `conditions` of a load's document."""
    from velodrome.model.condition import write_condition  # noqa: PLC0415

    return [
        {
            "condition": write_condition(decision.condition),
            "holds": decision.holds,
            "because": [
                {
                    "metric": compared.comparison.metric.name,
                    "value": compared.figure.value,
                    "limit": compared.comparison.limit,
                    "unit": _unit(compared),
                    "lower_bound": compared.figure.lower_bound,
                    "missing": compared.figure.missing,
                    "but": compared.figure.but,
                }
                for compared in decision.because
            ],
            "sentence": condition_sentence(decision),
        }
        for decision in decided
    ]


def _unit(compared: Compared) -> str:
    from velodrome.model.quantity import Unit  # noqa: PLC0415

    unit = Unit.COUNT if compared.comparison.counted else compared.comparison.metric.unit
    return "share" if unit is Unit.SHARE else unit.value
