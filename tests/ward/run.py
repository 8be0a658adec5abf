"""Run cells of the ward and write what the doctor found, one line each; goes on where it was interrupted.

python -m tests.ward.run ward.jsonl [--every-stack] [--agents tls://HOST:8786] [--only FAULT] [--times N] [NAMES …]

`--every-stack` examines each app on all stacks where it is as ill, `--only` looks for one fault, `--times` examines
each app so often; names are those of cells, or parts of these. With agents, which need this folder and the apps'
interpreters at the same paths, each host examines whole cells.

At the end it prints how often the doctor was right in all rows of the file, each rate with its 95 % interval (Wilson).
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from tests.run.apps.theirs import python_with
from tests.ward.cells import APPS, GROUP, ILL, PAIRS, WELL, Cell, elsewhere

import velodrome
from velodrome.api.apps import app_spec, mix_of
from velodrome.api.diagnosing import Examined
from velodrome.judge.statistics import wilson
from velodrome.model.load import Limits
from velodrome.usecases.apps import ServedSpec
from velodrome.usecases.diagnose import BUDGET_S as DEFAULT_BUDGET_S
from velodrome.usecases.diagnose import DoctorSpec, Sentences, diagnose
from velodrome.usecases.diagnose_on_hosts import diagnose_over
from velodrome.usecases.events import Events
from velodrome.usecases.terms import Knobs

BUDGET_S = 180.0


def specification(cell: Cell, only: tuple[str, ...] = (), budget_s: float | None = None) -> DoctorSpec:
    """Return what the doctor is to examine of a cell; it waits until nobody else measures.

    Without a budget, seconds, it has that of the ward, and for two faults its default.
    """
    if budget_s is None:
        budget_s = DEFAULT_BUDGET_S if cell.also else BUDGET_S
    app = app_spec(
        cell.app,
        mix_of(cell.requests),
        cwd=str(APPS),
        python=python_with(*cell.requires),
        upstreams=cell.upstreams,
        headers=cell.headers,
    )
    return DoctorSpec(
        ServedSpec(app),
        cell.stack,
        Knobs(named=cell.knobs),
        Limits(cpus=cell.cpus),
        budget_s=budget_s,
        only=only,
        wait=True,
    )


def examined(cell: Cell, only: tuple[str, ...] = (), budget_s: float | None = None) -> Examined:
    """Return what the doctor finds on the app of a cell."""
    with paid(cell.quota) if cell.quota else nullcontext():
        return Examined(diagnose(specification(cell, only, budget_s), Events()))


def examined_here(
    cells: Sequence[Cell], only: tuple[str, ...] = ()
) -> Iterator[tuple[Cell, Examined | velodrome.VelodromeError]]:
    """Yield the cells one after the other, with what the doctor found or why it could not look."""
    for cell in cells:
        try:
            yield cell, examined(cell, only)
        except velodrome.VelodromeError as error:
            yield cell, error


def examined_by(
    agents: str, keys: Path | None, cells: Sequence[Cell], only: tuple[str, ...] = ()
) -> Iterator[tuple[Cell, Examined | velodrome.VelodromeError]]:
    """Yield the cells as the hosts of agents get done with them; each examines whole ones."""
    for number, found in diagnose_over(
        [specification(cell, only) for cell in cells],
        agents,
        keys,
        Sentences(partial(print, file=sys.stderr)),
    ):
        yield cells[number], found if isinstance(found, velodrome.VelodromeError) else Examined(found)


PERIOD_US = 100_000


@contextmanager
def paid(cpus: int) -> Iterator[None]:
    """Make the control group of a quota of so many CPUs, which any process may join, and remove it."""
    GROUP.mkdir(exist_ok=True)
    try:
        (GROUP / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (GROUP / "cpu.cfs_quota_us").write_text(str(cpus * PERIOD_US))
        (GROUP / "cgroup.procs").chmod(0o666)
        yield
    finally:
        until = time.monotonic() + 5
        while GROUP.exists() and time.monotonic() < until:
            with suppress(OSError):  # whoever was in it is still ending
                GROUP.rmdir()
            time.sleep(0.05)


def lacks(cell: Cell, agents: str = "") -> str:
    """Return why a cell cannot be examined; empty: it can."""
    if cell.quota and agents:
        return "needs a control group, which is made here and not on the hosts of agents"
    if cell.quota and not os.access(GROUP.parent, os.W_OK):
        return f"needs root, and control groups of version 1 in {GROUP.parent}"
    return ""


def row(cell: Cell, found: Examined) -> dict[str, Any]:
    """Return what is kept of a cell."""
    made = found.examination
    return {
        "cell": cell.name,
        "fault": cell.fault,
        "causes": [cause.id for cause in made.causes],
        "right": right(cell, found),
        "seconds": round(made.seconds, 1),
        "unexplained": made.unexplained,
        "gain": [round(cause.gain, 2) for cause in made.causes],
        "document": made.document(),
    }


def right(cell: Cell, found: Examined) -> bool:
    """Whether the first cause is the fault of the cell, by its line where it has one; both, where it has two.

    Where it has none nothing else may be accused than what its settings come to besides; that may also come first.
    """
    causes = {cause.id for cause in found.causes}
    if not cell.fault:
        return causes <= {*cell.beside}
    if cell.beside:
        return cell.fault in causes and causes <= {cell.fault, *cell.beside}
    if cell.also:
        return causes == {cell.fault, cell.also}
    first = found.causes[0] if found.causes else None
    return first is not None and first.id == cell.fault and cell.line in str(first.document()["evidence"])


MILD = ", mild"
"""Of the names of cells whose fault costs little."""


def rates(rows: Sequence[Mapping[str, Any]], cells: Sequence[Cell]) -> list[tuple[str, int, int]]:
    """Return what is counted of a ward: a rate, how often, and of how many rows.

    Cells that could not be examined, that were examined for one fault only, or are not in the ward any more, count
    nowhere.
    """
    known = {cell.name: cell for cell in cells}
    found = [
        (known[row["cell"]], row)
        for row in rows
        if row["cell"] in known and "error" not in row and not row.get("only")
    ]
    ill = [(cell, row) for cell, row in found if cell.fault and not cell.also]
    mild, severe = (
        [row["right"] for cell, row in ill if (MILD in cell.name) is is_mild] for is_mild in (True, False)
    )
    well = [not row["right"] for cell, row in found if not cell.fault]
    besides = [
        not set(row["causes"]) <= {cell.fault, cell.also, *cell.beside} for cell, row in found if cell.fault
    ]
    both = [row["right"] for cell, row in found if cell.also]
    counted = {
        "severe faults found first": severe,
        "mild faults found first": mild,
        "healthy apps, cured twins and decoys accused": well,
        "wrong second causes on ill apps": besides,
        "both of two faults found": both,
    }
    return [(name, sum(hits), len(hits)) for name, hits in counted.items()]


def rate_line(name: str, count: int, of: int) -> str:
    """Return a rate as a line."""
    if not of:
        return f"{name}: none examined"
    low, high = wilson(count, of)
    return f"{name}: {count} of {of}, {count / of:.0%} [{low:.0%}, {high:.0%}]"


def every_cell(*, every_stack: bool) -> list[Cell]:
    """Return all cells, each on its stack, then on the others."""
    own = [*ILL, *PAIRS, *WELL]
    return own + [other for cell in own for other in elsewhere(cell)] if every_stack else own


def chosen(parts: list[str], *, every_stack: bool) -> list[Cell]:
    """Return the cells with one of these in their names, or those that are called so; without any all cells."""
    every = every_cell(every_stack=every_stack)
    names = {cell.name for cell in every}
    return [
        cell
        for cell in every
        if not parts or any(part == cell.name or (part not in names and part in cell.name) for part in parts)
    ]


def main(
    file: Path,
    agents: str,
    keys: Path | None,
    only: tuple[str, ...],
    times: int,
    wanted: Sequence[Cell],
) -> None:
    kept = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    done = Counter(row["cell"] for row in kept if tuple(row.get("only", ())) == only)
    cells = []
    for cell in wanted:
        more = max(times - done[cell.name], 0)
        if more and (why := lacks(cell, agents)):
            print(f"{cell.name}: {why}", flush=True)
        else:
            cells += [cell] * more
    for cell, found in examined_by(agents, keys, cells, only) if agents else examined_here(cells, only):
        if isinstance(found, Examined):
            made = row(cell, found)
        else:
            made = {"cell": cell.name, "fault": cell.fault, "right": False, "error": str(found)}
        if only:
            made["only"] = only
        with file.open("a") as out:
            out.write(json.dumps(made) + "\n")
        kept.append(made)
        shown = {name: value for name, value in made.items() if name != "document"}
        print(json.dumps(shown), flush=True)
    for counted in rates(kept, every_cell(every_stack=True)):
        print(rate_line(*counted), flush=True)
    if only:
        again = [made["right"] for made in kept if tuple(made.get("only", ())) == only]
        print(rate_line(f"{', '.join(only)} alone", sum(again), len(again)), flush=True)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("file", type=Path)
    options.add_argument("--agents", default="")
    options.add_argument("--keys", type=Path)
    options.add_argument("--every-stack", action="store_true")
    options.add_argument("--only", action="append", default=[])
    options.add_argument("--times", type=int, default=1)
    options.add_argument("parts", nargs="*")
    given = options.parse_intermixed_args()
    main(
        given.file,
        given.agents,
        given.keys,
        tuple(given.only),
        given.times,
        chosen(given.parts, every_stack=given.every_stack),
    )
