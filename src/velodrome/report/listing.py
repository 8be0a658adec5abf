"""What there is, as plain aligned lines: stacks, drivers, recipes, studies, and what the cache holds (also as JSON)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TextIO

from velodrome.guest.recipe import Recipe, Step, kind_of
from velodrome.guest.stack import KnobValue, Stack
from velodrome.model import quantity
from velodrome.model.kept import Damage, Kept, Stock
from velodrome.model.study import Study
from velodrome.report.typeset import LINES, plural, visible


def align_rows(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines, all cells words, each column under the other; the last column is not padded."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))] if rows else []
    return [
        "  ".join(visible(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def stacks(
    rows: Iterable[tuple[Stack, str | None]], broken: Sequence[tuple[str, str, str]], out: TextIO
) -> None:
    """List stacks with what serves one request and the knobs; `rows` pairs each with why it cannot run here."""
    every = list(rows)
    table = [("stack", "interface", "a request has", "knobs")]
    table += [(found.name, found.interface, _unit(found), _knobs(found.knobs)) for found, _ in every]
    out.writelines(f"{line}\n" for line in align_rows(table))
    for found, reason in every:
        if reason:
            out.write(f"\n{found.name} cannot run here: {visible(reason)}\n")
    for name, origin, error in broken:
        out.write(f"\n{visible(name)} could not be loaded from {visible(origin)}: {visible(error, LINES)}\n")
    out.write("\nOne of them:  velodrome stacks show NAME\n")


def stack(found: Stack, requires: Sequence[str], reason: str | None, line: str, out: TextIO) -> None:
    """Describe one stack: what it is, its knobs, what is installed for it, and the command line."""
    rows = [
        ("interface", found.interface),
        ("concurrency", f"a request has {_unit(found)}"),
        ("knobs", _knobs(found.knobs) or "none"),
        *((f"  {knob}", "one of " + ", ".join(values)) for knob, values in found.choices.items()),
        ("installed", ", ".join(requires) or "nothing: standard library"),
        *(("cannot serve", f"{step}: {why}") for step, why in found.cannot.items()),
        ("here", f"no: {reason}" if reason else "runs"),
    ]
    out.write(f"{visible(found.title)} ({visible(found.name)})\n{visible(found.about, LINES)}\n\n")
    out.writelines(f"  {text}\n" for text in align_rows(rows))
    out.write(f"\n{visible(line, LINES)}\n")


def drivers(rows: Sequence[tuple[str, str, str, str]], out: TextIO) -> None:
    """List load generators: name, version here, what it carries, and why it cannot be used."""
    table = [("driver", "version", "carries")]
    table += [(name, version or "not installed", about) for name, version, about, _ in rows]
    out.writelines(f"{line}\n" for line in align_rows(table))
    for name, _, _, why_not in rows:
        if why_not:
            out.write(f"\n{name} cannot be used here: {visible(why_not)}\n")
    out.write('\nIn a study:  driver = "wrk"  in a load\n')


def recipes(every: Iterable[Recipe], out: TextIO) -> None:
    """List recipes with what an endpoint of that kind does."""
    table = [("recipe", "an endpoint that"), *((recipe.name, recipe.about) for recipe in every)]
    out.writelines(f"{text}\n" for text in align_rows(table))
    out.write("\nOne of them:  velodrome recipes show NAME\n")


def recipe(found: Recipe, out: TextIO) -> None:
    """Describe one recipe step by step, with what a right answer is."""
    upload = f" with a body of {found.upload_bytes} bytes" if found.upload_bytes else ""
    cookie = f" with a cookie of {found.cookie_bytes} bytes" if found.cookie_bytes else ""
    out.write(f"{found.name}: an endpoint that {found.about}\n\n  {found.method} /{upload}{cookie}\n")
    out.writelines(f"  {_step(step)}\n" for step in found.steps)
    out.write(
        f"\nA correct response has status 200 and {len(found.answer())} bytes of body, compared byte for byte.\n"
    )


def _step(step: Step) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in vars(step).items())
    return f"{kind_of(step)}({settings})"


def _unit(found: Stack) -> str:
    return {
        "sync": "the one process",
        "threads": "a thread",
        "processes": "a process",
        "greenlets": "a greenlet",
        "tasks": "a task",
        "generators": "a generator",
        "events": "an entry in the loop's table",
    }.get(found.concurrency, found.concurrency)


def _knobs(knobs: Mapping[str, KnobValue]) -> str:
    return " ".join(f"{name}={value}" for name, value in knobs.items())


def studies(every: Iterable[tuple[Study, float, float]], groups: Sequence[str], out: TextIO) -> None:
    """List studies; each comes with the seconds its race takes, in full and in its quick form."""
    table = [("study", "about", "quick", "question")]
    table += [
        (study.name, quantity.duration(full), quantity.duration(quick), study.title)
        for study, full, quick in every
    ]
    out.writelines(f"{text}\n" for text in align_rows(table))
    out.write("\nOne of them:  velodrome run NAME [--quick]      your own:  velodrome run ./mine.toml\n")
    for group in groups:
        out.write(f"All of a group:  velodrome run {group} [--quick]\n")


DAY_S = 86400.0


def cache_lines(stock: Stock, folder: str, now: float) -> list[str]:
    """Return what is kept, a line each, and the sum; `now` is Unix time."""
    if not stock.every:
        return [f"nothing is kept in {visible(folder)}"]
    table = [("kept", "size", "frees", "last used", "for")]
    table += [
        (
            f"{kept.kind}/{visible(kept.name)}",
            quantity.memory(kept.size_bytes),
            quantity.memory(kept.freed_bytes),
            _ago(kept, now),
            visible(kept.what),
        )
        for kept in stock.every
    ]
    shared = stock.size_bytes - stock.freed_bytes
    aside = f"; {quantity.memory(shared)} of it are uv's cache's too (uv cache prune)" if shared else ""
    return [
        *align_rows(table),
        "",
        f"{quantity.memory(stock.size_bytes)} in {visible(folder)}{aside}.",
        "Make room:  velodrome cache prune --older-than 30d      or  --to-size 2GB",
    ]


def removed_lines(stock: Stock) -> list[str]:
    """Return what went, and what that freed."""
    if not stock.every:
        return ["nothing to remove: what is kept was used since, or is used now"]
    lines = [
        f"removed {kept.kind}/{visible(kept.name)}{f'  {visible(kept.what)}' if kept.what else ''}"
        for kept in stock.every
    ]
    shared = stock.size_bytes - stock.freed_bytes
    aside = f"; {quantity.memory(shared)} more are kept by uv's own cache (uv cache prune)" if shared else ""
    return [*lines, f"{quantity.memory(stock.freed_bytes)} freed{aside}"]


def verified_lines(checked: int, damages: Sequence[Damage]) -> list[str]:
    """Return what is damaged, file by file."""
    lines = [
        f"{damage.kept.kind}/{visible(damage.kept.name)}: {visible(difference)}"
        for damage in damages
        for difference in damage.differences
    ]
    if damages:
        return [
            *lines,
            f"{len(damages)} of {checked} are damaged; they are made again when they are next used",
        ]
    return [f"{plural(checked, 'thing')} kept, each as it was made"]


def cache_document(stock: Stock, folder: str) -> str:
    """Return what is kept as JSON: bytes, and Unix time in seconds."""
    every = {"folder": folder, "size_bytes": stock.size_bytes, "freed_bytes": stock.freed_bytes}
    return json.dumps(every | {"kept": [asdict(kept) for kept in stock.every]}, indent=2)


def _ago(kept: Kept, now: float) -> str:
    if kept.in_use:
        return "in use"
    days = int(max(0.0, now - kept.last_used) / DAY_S)
    return "today" if days == 0 else f"{plural(days, 'day')} ago"


def agents_document(found: Mapping[str, Any]) -> str:
    """Return the agents of a coordinator as JSON."""
    return json.dumps(found, indent=2)


POLICY_BY = {"root": "root there", "itself": "itself"}


def agents_lines(found: Mapping[str, Any]) -> list[str]:
    """Return a line for each agent: what it is, what it may load and who decides that, and its clock; then a table of
    round trips, and of what goes through where that is known, from the agent of the line to that of the column.
    """
    agents: Sequence[Mapping[str, Any]] = found["agents"]
    heads = ("agent", "roles", "CPUs", "version", "transport", "may load", "decided by")
    rows = [(*heads, "clock ms", "round trip ms", "at")]
    rows += [
        (
            agent["name"],
            ",".join(agent["roles"]),
            ",".join(map(str, agent["cpus"])),
            agent["version"],
            agent["transport"],
            ", ".join(["loopback", *agent["allow_target"]]),
            POLICY_BY[agent["policy_by"]],
            f"{agent['offset_ms']:+.3f} ± {agent['uncertainty_ms']:.3f}",
            f"{agent['round_trip_ms']:.3f}",
            agent["address"] + (" (busy)" if agent["busy"] else ""),
        )
        for agent in agents
    ]
    if not agents:
        return ["no agents"]
    lines = align_rows(rows)
    pairs = {(pair["origin"], pair["target"]): pair for pair in found["between"]}
    for what, unit, digits in (("round_trip_ms", "round trip ms", 3), ("mbit_s", "Mbit/s", 0)):
        if any(pair[what] is not None for pair in pairs.values()):
            lines += ["", *_between(agents, pairs, what, f"{unit}, from ↓ to →", digits)]
    lines += [
        f"{pair['origin']} does not reach {pair['target']}: {pair['error']}"
        for pair in pairs.values()
        if pair["error"]
    ]
    if found["left_out"]:
        lines.append(f"{plural(found['left_out'], 'pair')} not measured: that would take too long")
    return lines


def _between(
    agents: Sequence[Mapping[str, Any]],
    pairs: Mapping[tuple[str, str], Mapping[str, Any]],
    what: str,
    title: str,
    digits: int,
) -> list[str]:
    names = [agent["name"] for agent in agents]

    def cell(origin: str, target: str) -> str:
        value = pairs.get((origin, target), {}).get(what)
        return "–" if value is None else f"{value:.{digits}f}"

    return align_rows([(title, *names), *((name, *(cell(name, other) for other in names)) for name in names)])
