"""What there is to race, as plain aligned lines: stacks, recipes, studies."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from velodrome.guest.recipe import Recipe, Step, kind_of
from velodrome.guest.stack import KnobValue, Stack
from velodrome.model import quantity
from velodrome.model.study import Study
from velodrome.report.typeset import LINES, visible


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
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
    out.writelines(f"{line}\n" for line in aligned(table))
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
    out.writelines(f"  {text}\n" for text in aligned(rows))
    out.write(f"\n{visible(line, LINES)}\n")


def drivers(rows: Sequence[tuple[str, str, str, str]], out: TextIO) -> None:
    """List load generators: name, version here, what it carries, and why it cannot be used."""
    table = [("driver", "version", "carries")]
    table += [(name, version or "not here", about) for name, version, about, _ in rows]
    out.writelines(f"{line}\n" for line in aligned(table))
    for name, _, _, why_not in rows:
        if why_not:
            out.write(f"\n{name} cannot be used here: {visible(why_not)}\n")
    out.write('\nIn a study:  driver = "wrk"  in a load\n')


def recipes(every: Iterable[Recipe], out: TextIO) -> None:
    """List recipes with what an endpoint of that kind does."""
    table = [("recipe", "an endpoint that"), *((recipe.name, recipe.about) for recipe in every)]
    out.writelines(f"{text}\n" for text in aligned(table))
    out.write("\nOne of them:  velodrome recipes show NAME\n")


def recipe(found: Recipe, out: TextIO) -> None:
    """Describe one recipe step by step, with what a right answer is."""
    upload = f" with a body of {found.upload_bytes} bytes" if found.upload_bytes else ""
    cookie = f" with a cookie of {found.cookie_bytes} bytes" if found.cookie_bytes else ""
    out.write(f"{found.name}: an endpoint that {found.about}\n\n  {found.method} /{upload}{cookie}\n")
    out.writelines(f"  {_step(step)}\n" for step in found.steps)
    out.write(
        f"\nA right answer has status 200 and {len(found.answer())} bytes of body, compared byte for byte.\n"
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
    table = [("study", "about", "quick", "asks")]
    table += [
        (study.name, quantity.duration(full), quantity.duration(quick), study.title)
        for study, full, quick in every
    ]
    out.writelines(f"{text}\n" for text in aligned(table))
    out.write("\nOne of them:  velodrome run NAME [--quick]      your own:  velodrome run ./mine.toml\n")
    for group in groups:
        out.write(f"All of a group:  velodrome run {group} [--quick]\n")
