"""`velodrome tune` beside the whole grid, on six apps of different nature: loads, time, regret.

    python benchmarks/regret.py --only waits --out regret.jsonl --minutes 4

Measures every cell of the grid as `velodrome capacity` does, without the proof of its claim, in an order drawn at
random, and tunes once in the midst of it. Each result is written as it comes; called again it goes on where it ended.
Regret is what the cell that was chosen does less than the best cell: by the grid's own measurement, where luck counts
for the best of many cells and against the choice, and by measuring the two again in turn.
"""

import argparse
import json
import random
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rounds import Table

from velodrome.judge.search.holding import Demands
from velodrome.judge.search.rate import RateSearch
from velodrome.model.app import App, Request
from velodrome.model.condition import read
from velodrome.model.errors import NoServerError
from velodrome.model.load import Limits
from velodrome.model.measurement import Measurement
from velodrome.model.search import Probe
from velodrome.model.trial import Contestant, Trial
from velodrome.model.tuning import Candidate, Goal, Observation
from velodrome.plan.matrix import REFINED, grid
from velodrome.run.lab import Lab
from velodrome.usecases import apps, bench, capacity
from velodrome.usecases import tune as tuning
from velodrome.usecases.events import Events

FOLDER = Path(__file__).with_name("tuned")
STACKS = ("gunicorn-gevent", "gunicorn-sync", "waitress")
CPUS = 1
SLO = "p95 < 200ms and errors < 1%"
SECONDS = 1.0
SEARCH = RateSearch(first=0.0, tolerance=0.1, most=14)
LATENCY = {"waits": "60ms", "pooled": "8ms", "mixed": "25ms", "leaks": "10ms"}
APPS = ("computes", "waits", "pooled", "large", "mixed", "leaks")
SEED = 4711
TUNE = "tune"
AGAIN = "again"
ROUNDS = 2
"""Times the choice and the best cell are measured again in turn, each."""


@dataclass
class Aloud(Events):
    """A follower that tells one line for each load on standard error."""

    what: str

    def preparing(self, text: str) -> None:
        print(f"  {text}", file=sys.stderr)

    def tried(self, probe: Probe, measured: Measurement | None) -> None:
        print(f"  {self.what}  {probe.rate:.0f}/s {probe.held} {probe.why or probe.spoilt}", file=sys.stderr)

    def observed(self, candidate: Candidate, observed: Observation) -> None:
        what = observed.failed or observed.spoilt or observed.why or observed.held
        rate = observed.ask.rate or observed.throughput_rps
        print(f"  tune {candidate.label}  {rate:.0f}/s {what}", file=sys.stderr)


def served(name: str) -> tuple[App, Lab]:
    upstream = (f"PAYMENTS_URL=latency:{LATENCY[name]}",) if name in LATENCY else ()
    spec = apps.AppSpec(
        f"{name}:app",
        python=sys.executable,
        cwd=str(FOLDER),
        upstreams=upstream,
        requests=(Request("GET /", "/"),),
    )
    return apps.look(spec), apps.lab_for(spec)


def trial(app: App, contestant: Contestant) -> Trial:
    return bench.trial_of("regret", app.recipe, contestant, Limits(CPUS), app=app)


def cell(app: App, lab: Lab, candidate: Candidate) -> dict[str, Any]:
    """Measure one cell of the grid."""
    demands = Demands(must=(read(SLO),))
    began = time.monotonic()
    try:
        found = capacity.highest(
            trial(app, candidate.contestant),
            lab,
            demands,
            Aloud(candidate.label),
            seconds=SECONDS,
            rates=SEARCH,
            wait_s=None,
            proven=False,
        )
    except NoServerError as error:
        return {"failed": str(error), "loads": 1, "seconds": time.monotonic() - began}
    interval = found.found.interval
    return {
        "low": interval.low if interval else 0.0,
        "mid": interval.mid if interval else 0.0,
        "high": interval.high if interval else 0.0,
        "ending": found.ending.value,
        "because": found.found.because,
        "loads": found.trials,
        "seconds": found.seconds,
    }


def tuned(app: App, lab: Lab, folder: Path) -> dict[str, Any]:
    """Tune once; every measurement is kept in the folder. What a search that was stopped left there is measured anew,
    so that the seconds are those of one search.
    """
    shutil.rmtree(folder, ignore_errors=True)
    spec = tuning.Search(
        trial(app, Contestant("")),
        tuple(lab.stacks[name] for name in STACKS),
        Goal.CAPACITY,
        Demands(must=(read(SLO),)),
    )
    found = tuning.best_setting(spec, lab, Aloud(TUNE), folder, wait_s=None)
    best = found.tuned.best
    value = best.value if best else None
    return {
        "best": best.candidate.label if best else "",
        "low": value.low if value else None,
        "value": value.mid if value else None,
        "high": value.high if value else None,
        "claim": found.claim,
        "ending": found.tuned.ending.value,
        "because": found.tuned.because,
        "leaks": found.growth.bytes_per_request if found.growth else None,
        "loads": found.tuned.trials,
        "seconds": found.seconds,
    }


@dataclass(frozen=True)
class Outcome:
    """What is known of one app by now."""

    cells: dict[str, dict[str, Any]]
    tune: dict[str, Any] | None
    again: dict[str, list[float]]
    """What the two did when they were measured again."""

    @property
    def able(self) -> dict[str, float]:
        """What each cell did that could do anything."""
        return {label: one["mid"] for label, one in self.cells.items() if one.get("mid")}

    @property
    def best(self) -> str:
        """The best cell."""
        return max(self.able, key=self.able.__getitem__)

    @property
    def chosen(self) -> str:
        """The cell that stands for the choice: around the best a backlog is tried too, which the grid has not."""
        stack, _, knobs = (self.tune or {"best": ""})["best"].partition("[")
        kept = [part for part in knobs.rstrip("]").split(",") if part.partition("=")[0] not in REFINED]
        return stack + (f"[{','.join(kept)}]" if any(kept) else "")

    @property
    def covers(self) -> str:
        """Whether the interval of the choice and that of its cell, as the grid was measured, meet; as a cell."""
        cell, tuned = self.cells.get(self.chosen), self.tune or {}
        if not cell or not cell.get("mid") or not tuned.get("low"):
            return "–"
        return "yes" if tuned["low"] <= cell["high"] and cell["low"] <= tuned["high"] else "no"

    def regret(self) -> str:
        """As a cell of the table."""
        did = self.able.get(self.chosen)
        return f"{(1 - did / self.able[self.best]) * 100:.1f} %" if did else "–"

    def regret_again(self) -> str:
        """As a cell of the table."""
        if self.chosen == self.best:
            return "the same"
        best, chosen = (self.again.get(label) for label in (self.best, self.chosen))
        return f"{(1 - median(chosen) / median(best)) * 100:.1f} %" if best and chosen else "–"


def outcome(results: list[dict[str, Any]], name: str) -> Outcome:
    mine = [result for result in results if result["app"] == name]
    again: dict[str, list[float]] = {}
    for result in mine:
        if result["what"].startswith(AGAIN) and result.get("mid"):
            again.setdefault(result["what"].split(" ")[2], []).append(result["mid"])
    return Outcome(
        {
            result["what"]: result
            for result in mine
            if result["what"] != TUNE and not result["what"].startswith(AGAIN)
        },
        next((result for result in mine if result["what"] == TUNE), None),
        again,
    )


def left(name: str, results: list[dict[str, Any]], cells: dict[str, Candidate]) -> Iterator[str]:
    """Yield what is still to be measured of an app: the tuning in the midst of the grid, the two again at the end."""
    order = list(cells)
    random.Random(f"{SEED}/{name}").shuffle(order)
    order.insert(len(order) // 2, TUNE)
    done = {result["what"] for result in results if result["app"] == name}
    yield from (label for label in order if label not in done)
    found = outcome(results, name)
    if not found.able or found.chosen not in found.able or found.chosen == found.best:
        return
    for number in range(ROUNDS):
        pair = (found.best, found.chosen) if number % 2 == 0 else (found.chosen, found.best)
        yield from (what for label in pair if (what := f"{AGAIN} {number} {label}") not in done)


def table(results: list[dict[str, Any]], names: list[str]) -> Table:
    rows = []
    for name in names:
        found = outcome(results, name)
        if not found.able:
            continue
        best = found.best
        loads, seconds = (
            sum(figures[key] for figures in found.cells.values()) for key in ("loads", "seconds")
        )
        row = [
            name,
            str(len(found.cells)),
            str(loads),
            f"{seconds:.0f} s",
            f"{best} {found.able[best]:.0f}/s",
        ]
        if (tune := found.tune) is None:
            rows.append((*row, *["–"] * 8))
            continue
        share = f"{tune['loads'] / loads * 100:.0f} %"
        spent = (str(tune["loads"]), share, f"{tune['seconds']:.0f} s")
        claim = f"{tune['claim']:.0f}/s" if tune.get("claim") else "–"
        rows.append((*row, tune["best"], *spent, claim, found.covers, found.regret(), found.regret_again()))
    heads = (
        "app",
        "cells",
        "loads",
        "time",
        "best of the grid",
        "tune",
        "loads",
        "share",
        "time",
        "claim",
        "covers",
        "regret",
        "again",
    )
    about = f"{SLO}, {CPUS} CPU; stacks {', '.join(STACKS)}."
    return Table("Tune beside the whole grid", about, heads, tuple(rows))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", choices=APPS)
    parser.add_argument("--out", type=Path, default=Path("regret.jsonl"))
    parser.add_argument(
        "--minutes", type=float, default=1e9, help="end after so many, between two measurements"
    )
    given = parser.parse_args()
    results = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    until = time.monotonic() + given.minutes * 60
    names = given.only or list(APPS)
    for name in names:
        app, lab = served(name)
        cells = {
            candidate.label: candidate for candidate in grid([lab.stacks[stack] for stack in STACKS], CPUS)
        }
        for what in left(name, results, cells):
            if time.monotonic() > until:
                break
            folder = given.out.with_name(f"{given.out.stem}-{name}-{TUNE}")
            found = tuned(app, lab, folder) if what == TUNE else cell(app, lab, cells[what.split(" ")[-1]])
            results.append({"app": name, "what": what, **found})
            with given.out.open("a") as file:
                file.write(json.dumps(results[-1]) + "\n")
            print(json.dumps(results[-1]), flush=True)
    print(table(results, names).text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
