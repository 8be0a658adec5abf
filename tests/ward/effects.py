"""Measure apart from the doctor what a cure comes to, and compare it with what the doctor claimed.

python -m tests.ward.effects ward.jsonl effects.jsonl [NAME, OR PART OF NAMES …]

For each row of the ward whose first cause was proven by a cured arm, and whose app has a cured twin in the ward, both
apps are loaded as the doctor loaded its arms: the same closed loop, a fresh server for each load, in turn. The doctor
cures by a treatment, the twin by its code: where these cure differently, their effects differ too.
"""

import argparse
import json
import math
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.run.apps.theirs import python_with
from tests.ward.cells import APPS, ILL, WELL, Cell

import velodrome
from velodrome.api.loads import Loaded
from velodrome.judge.statistics import student_t

PAIRS = 4
"""Loads of either app."""
SECONDS = 2.0
NEAR = 1.2
"""A claim is right within so much of the effect."""


def claims(rows: list[Mapping[str, Any]]) -> Iterator[tuple[Cell, Cell, Mapping[str, Any]]]:
    """Yield the ill app, its cured twin and both arms of the doctor."""
    ill = {cell.name: cell for cell in ILL}
    well = {cell.name.removesuffix(", cured"): cell for cell in WELL if cell.name.endswith(", cured")}
    for row in rows:
        cell = ill.get(row["cell"])
        twin = well.get(row["cell"])  # of a mild form the twin is another app
        if cell is None or twin is None or not row["right"] or "only" in row:
            continue
        first = row["document"]["diagnoses"][0]
        arms = [entry for entry in first["evidence"] if entry["kind"] == "arms"]
        if first["proof"] == "cure" and arms:
            yield cell, twin, arms[-1]


def loaded(cell: Cell, connections: int) -> Loaded:
    """Load an app on a server that is started for it."""
    return velodrome.load(
        cell.app,
        stack=cell.stack,
        knobs=cell.knobs,
        connections=connections,
        duration=SECONDS,
        blocks=1,
        requests=cell.requests,
        headers=cell.headers,
        cwd=str(APPS),
        python=python_with(*cell.requires),
        upstreams=cell.upstreams,
    )


def figure(found: Loaded, metric: str) -> float:
    """Return what an arm is compared by: more is better."""
    measured = {
        "rps": found.throughput,
        "mean_ms": found.mean,
        "p50_ms": found.p50,
        "p99_ms": found.p99,
    }[metric]
    return float(measured) if metric == "rps" else 1 / float(measured)


def claimed(arms: Mapping[str, Any], metric: str) -> float:
    """Return by how much the doctor's cured arm was better."""
    ratios = [math.log(block["after"][metric] / block["before"][metric]) for block in arms["blocks"]]
    return math.exp(statistics.fmean(ratios) * (1 if metric == "rps" else -1))


def telling(arms: Mapping[str, Any]) -> str:
    """Return the metric that tells the arms apart: throughput, where the arms differ by it."""
    return (
        "rps"
        if claimed(arms, "rps") > NEAR
        else max(("p50_ms", "p99_ms", "mean_ms"), key=lambda name: claimed(arms, name))
    )


def main(ward: Path, file: Path, parts: list[str]) -> None:
    rows = [json.loads(line) for line in ward.read_text().splitlines()]
    done = {json.loads(line)["cell"] for line in file.read_text().splitlines()} if file.exists() else set()
    for cell, twin, arms in claims(rows):
        if cell.name in done or (parts and not any(part in cell.name for part in parts)):
            continue
        connections = int(arms["load"].removeprefix("closed-"))
        metric = telling(arms)
        logs = []
        for number in range(PAIRS):
            order = (cell, twin) if number % 2 else (twin, cell)
            by = {app.name: figure(loaded(app, connections), metric) for app in order}
            logs.append(math.log(by[twin.name] / by[cell.name]))
        if not all(map(math.isfinite, logs)):
            print(f"{cell.name}: {metric} was not measured in each load", flush=True)
            continue
        middle = statistics.fmean(logs)
        half = student_t(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
        low, apart, high = (math.exp(middle + by) for by in (-half, 0.0, half))
        claim = claimed(arms, metric)
        kept = {
            "cell": cell.name,
            "metric": metric,
            "connections": connections,
            "claimed": round(claim, 2),
            "apart": [round(bound, 2) for bound in (low, apart, high)],
            "near": max(claim / apart, apart / claim) <= NEAR,
        }
        with file.open("a") as out:
            out.write(json.dumps(kept) + "\n")
        print(json.dumps(kept), flush=True)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("ward", type=Path)
    options.add_argument("effects", type=Path)
    options.add_argument("parts", nargs="*")
    given = options.parse_args()
    main(given.ward, given.effects, given.parts)
