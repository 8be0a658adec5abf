"""How often one of two equal servers is ranked before the other: 200 races of two, each judged by itself.

    python benchmarks/equal_pairs.py             races equal_pairs.toml, some 35 minutes
    python benchmarks/equal_pairs.py RUN_DIR     takes the folder of a run that there is

Every two blocks of the run are a race of its own for each of its four pairs, on fresh servers: no block is in two
races. Each is judged twice: by the noise that ships, as on a machine that nobody measured, and by what the first
blocks of the run teach of this machine (`judge/learning.py`), which are in no race. At 95 % a race in twenty may name a
winner that is none; of 200 that are right so often, more than 16 would in one experiment of forty.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from racing import results
from scipy.stats import binom

from velodrome.guest.catalog import stacks
from velodrome.judge.learning import learn
from velodrome.judge.verdict import judge
from velodrome.model.noise import SHIPPED, Noise, noise_of
from velodrome.model.results import Results
from velodrome.model.verdict import Outcome

STUDY = Path(__file__).with_suffix(".toml")
BLOCKS = 2
"""Of a race: the fewest that the first look of a race that goes on until it is settled has."""
TEACHING = 10
"""Blocks, the first of the run."""
WRONG, SELDOM = 0.05, 0.025


def taught(run: Results) -> Noise:
    """Return the noise of the machine by the first blocks of a run."""
    first = tuple(one for one in run.trials if one.trial.block < TEACHING)
    return noise_of(learn(replace(run, trials=first), stacks()))


def races(run: Results, noise: Noise) -> Iterator[tuple[str, Results]]:
    """Yield the races of two that a run holds, each with the name of its pair; one that lacks a trial is left out."""
    study = run.header.study
    for name in sorted(
        {contestant.name.removesuffix("-a").removesuffix("-b") for contestant in study.contestants}
    ):
        pair = tuple(each for each in study.contestants if each.name in {f"{name}-a", f"{name}-b"})
        of_pair = [trial for trial in run.trials if trial.trial.contestant in pair]
        header = replace(run.header, noise=noise, study=replace(study, contestants=pair, blocks=BLOCKS))
        for first in range(TEACHING, study.blocks, BLOCKS):
            trials = [
                replace(trial, trial=replace(trial.trial, block=trial.trial.block - first))
                for trial in of_pair
                if first <= trial.trial.block < first + BLOCKS
            ]
            if len(trials) == BLOCKS * len(pair):
                yield name, replace(run, header=header, trials=tuple(trials))


def main() -> int:
    """Print how many races of each pair named a winner; 1 where chance at 5 % seldom makes so many."""
    run, status = results(STUDY, sys.argv[1:]), 0
    for noise in (SHIPPED, taught(run)):
        status |= shown(run, noise)
    return status


def shown(run: Results, noise: Noise) -> int:
    """Print the races as they are judged by a table of noise."""
    known = stacks()
    outcomes: dict[str, Counter[Outcome]] = {}
    for name, race in races(run, noise):
        outcomes.setdefault(name, Counter()).update(answer.outcome for answer in judge([race], known).answers)
    outcomes["all"] = sum(outcomes.values(), Counter())
    print(f"\nnoise {noise.sentence}")
    print(f"{'pair':10} {'races':>5} {'a winner':>8} {'equal':>5} {'cannot tell':>11}")
    for name, found in outcomes.items():
        counts = found[Outcome.WINNER], found[Outcome.TIE], found[Outcome.CANNOT_TELL]
        print(f"{name:10} {found.total():5} {counts[0]:8} {counts[1]:5} {counts[2]:11}")
    made, winners = outcomes["all"].total(), outcomes["all"][Outcome.WINNER]
    chance = float(binom.sf(winners - 1, made, WRONG))
    print(
        f"As many winners or more are named in {100 * chance:.2g} % of experiments where each race is wrong in 5 %."
    )
    return 1 if chance < SELDOM else 0


if __name__ == "__main__":
    sys.exit(main())
