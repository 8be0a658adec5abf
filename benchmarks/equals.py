"""How much two equal servers differ here: the noise that the judge presumes where blocks are too few to tell.

Races equals.toml, about five minutes, or takes the folder of a run of it that there is:
python benchmarks/equals.py [RUN_DIR]
"""

import math
import sys
from collections.abc import Iterator
from pathlib import Path

from racing import results

from velodrome.guest.catalog import stacks
from velodrome.judge.claims import Evidence
from velodrome.judge.metrics import TAKING
from velodrome.judge.statistics import Missing, Series
from velodrome.model.claim import Figure
from velodrome.model.load import Closed, Load
from velodrome.model.study import Question

STUDY = Path(__file__).with_suffix(".toml")
METRICS = ("throughput_rps", "cpu_us", "memory_bytes", "mean_ms", "p50_ms", "p90_ms", "p99_ms")


def ratios(evidence: Evidence, question: Question, label: str, metric: str) -> Iterator[float]:
    """Yield the log ratio of each block's two equal servers."""
    labels = [contestant.label for contestant in evidence.study.contestants]
    for first in (label for label in labels if label.endswith("-a")):
        pair = []
        for name in (first, f"{first[:-2]}-b"):
            cell = evidence.cell(Figure(metric, f"{question.name}/{name}"))
            load = evidence.load(question, label)
            if isinstance(cell, Missing) or isinstance(load, Missing):
                return
            pair.append(TAKING[metric].take(cell, load))
        a, b = pair
        if isinstance(a, Series) and isinstance(b, Series):
            yield from (
                math.log(a.values[block] / b.values[block]) for block in a.values if block in b.values
            )


def main() -> int:
    """Print the standard deviation of each metric's log ratio; that it is 0 in the mean is known."""
    run = results(STUDY, sys.argv[1:])
    evidence = Evidence(run.header.study, run.trials, stacks())
    shapes = [(question, load) for question in evidence.study.questions for load in question.loads]
    print("metric".ljust(16), *(f"{q.name} {_loop(load)}".rjust(16) for q, load in shapes), "all".rjust(8))
    for metric in METRICS:
        columns = [list(ratios(evidence, question, load.label, metric)) for question, load in shapes]
        shown = [_deviation(column).rjust(16) for column in columns]
        print(
            metric.ljust(16), *shown, _deviation([ratio for column in columns for ratio in column]).rjust(8)
        )
    return 0


def _loop(load: Load) -> str:
    return "closed" if isinstance(load.pace, Closed) else "open"


def _deviation(logs: list[float]) -> str:
    return f"{100 * math.sqrt(sum(log * log for log in logs) / len(logs)):.1f} %" if logs else "–"


if __name__ == "__main__":
    sys.exit(main())
