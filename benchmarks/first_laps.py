"""How often the first race settles, and whether it says the same each time: runs of it beside each other, as a table.

    python benchmarks/first_laps.py --runs 10           races it so often, some five minutes each
    python benchmarks/first_laps.py RUN_DIR…            takes the folders of runs that there are

Each row is a run: the winner of each question, or those that are equal within the margin; how many of a hundred CPU
seconds of the measured spans the hypervisor kept for others; and how long all of it took. A run that lost more than
one of a hundred is shown, and does not count: other tenants of the machine decided it. Wanted: each question settles
in nine of ten runs, with the same answer in all of them.
"""

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from velodrome.guest.catalog import stacks
from velodrome.judge.verdict import judge
from velodrome.model.measurement import Measurement
from velodrome.model.results import Results
from velodrome.model.verdict import Answer, Outcome
from velodrome.run.racing.store import read

STUDY = "first-lap"
STOLEN = 0.01
"""Share of the CPU time of a run's spans above which the run does not count."""


@dataclass(frozen=True)
class Lap:
    """A run of the race."""

    answers: tuple[Answer, ...]
    stolen: float | None
    """Share of the CPU time of the measured spans; None: this system does not show it."""
    took_s: float
    """From the start of the run to the start of its last load."""

    @property
    def counts(self) -> bool:
        """Whether the machine was velodrome's."""
        return self.stolen is None or self.stolen <= STOLEN

    @property
    def line(self) -> str:
        """As a row of a table."""
        stolen = "–" if self.stolen is None else f"{100 * self.stolen:.2f} %"
        counts = "" if self.counts else " (does not count)"
        cells = [f"{stolen}{counts}", f"{self.took_s:.0f} s", *map(found, self.answers)]
        return f"| {' | '.join(cells)} |"


def found(answer: Answer) -> str:
    """Return what a question came to: the winner, the set of those that are equal, or that it is open."""
    if answer.outcome is Outcome.CANNOT_TELL:
        return "cannot tell"
    return " = ".join(sorted(answer.best))


def settled(answer: Answer) -> bool:
    """Whether there is a winner, or a set of equals."""
    return answer.outcome in {Outcome.WINNER, Outcome.TIE}


def lap(run: Results) -> Lap:
    """Judge a run."""
    measured = [trial for trial in run.trials if isinstance(trial, Measurement)]
    spans = [(trial.host.steal_s, trial.load.duration_s) for trial in measured]
    known = [(lost, span) for lost, span in spans if lost is not None]
    cpus = int(run.header.machine["cpus"])
    stolen = sum(lost for lost, _ in known) / sum(cpus * span for _, span in known) if known else None
    started = datetime.fromisoformat(run.header.started_at)
    last = max(datetime.fromisoformat(trial.started_at) for trial in measured)
    return Lap(judge([run], stacks()).answers, stolen, (last - started).total_seconds())


def runs(folders: Sequence[str], times: int) -> list[Results]:
    """Return the runs in the folders; without any, race so often first."""
    if folders:
        return [read(Path(folder)) for folder in folders]
    made = []
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(times):
            folder = Path(scratch) / str(number)
            command = ["-m", "velodrome", "run", STUDY, "--out", str(folder), "--wait"]
            subprocess.run([sys.executable, *command], check=True)
            made.append(read(folder))
    return made


def main() -> None:
    """Print a row for each run, and how often each question came to its most frequent answer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", metavar="RUN_DIR")
    parser.add_argument("--runs", type=int, default=10)
    given = parser.parse_args()
    laps = [lap(run) for run in runs(given.folders, given.runs)]
    names = [answer.question for answer in laps[0].answers]
    print(f"| CPU time stolen | took | {' | '.join(names)} |")
    print(f"|--:|--:|{':--|' * len(names)}")
    for each in laps:
        print(each.line)
    counted = [each for each in laps if each.counts]
    print(f"\n{len(counted)} of {len(laps)} runs count.")
    for number, name in enumerate(names):
        answers = [each.answers[number] for each in counted]
        often = Counter(found(answer) for answer in answers if settled(answer)).most_common()
        same = f"{often[0][0]} in {often[0][1]}" if often else "no answer"
        print(f"{name}: settled in {sum(map(settled, answers))} of {len(answers)}; {same}")


if __name__ == "__main__":
    main()
