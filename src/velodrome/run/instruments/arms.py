"""AB: one thing changed. Both arms under the same load, each on a server started for it, block by block in drawn order.

    before, after = block(trial, lab, (AS_IT_IS, treatment), Loaded(64), number=0)
    before, after = probe_arms(trial, lab, (AS_IT_IS, treatment), (probe, probe), number=0)

A server that is started once may lie better in memory than the other for as long as it runs: what a block compares is
two fresh ones.
"""

import random
from dataclasses import dataclass

from velodrome.model.diagnosis import Figures, Met, Probe, Treatment
from velodrome.model.errors import AppAnswersWrongError, AppNotServedError, NoServerError
from velodrome.model.trial import Trial
from velodrome.run.instruments import situations
from velodrome.run.instruments.standing import figures, standing
from velodrome.run.lab import Lab

SEED = 16


@dataclass(frozen=True)
class Loaded:
    """The closed loop that both arms carry."""

    connections: int
    seconds: float = 1.0

    @property
    def label(self) -> str:
        """As results call it."""
        return f"closed-{self.connections}"


class NotMeasuredError(Exception):
    """An arm could not be served, or its server died of the load: which one, and why."""

    def __init__(self, treated: bool, reason: str) -> None:
        self.treated, self.reason = treated, reason
        super().__init__(reason)


@dataclass(frozen=True)
class Arm:
    """One arm in one block."""

    figures: Figures
    took: frozenset[str]
    """The treatments that met what they change."""


def measure_arm(trial: Trial, lab: Lab, treatment: Treatment, load: Loaded) -> Arm:
    """Measure one arm. Raises NoServerError, AppAnswersWrongError, AppNotServedError."""
    with standing(trial, lab, treatment) as server:
        server.warm()
        measured = server.run_closed_loop(load.connections, load.seconds)
        return Arm(figures(measured), server.took())


def block(
    trial: Trial, lab: Lab, treatments: tuple[Treatment, Treatment], load: Loaded, number: int
) -> tuple[Arm, Arm]:
    """Measure both arms of a block, the first and the second treatment.

    Raises NotMeasuredError where one cannot be served or loaded.
    """
    found: dict[int, Arm] = {}
    for side in _order(number):
        try:
            found[side] = measure_arm(trial, lab, treatments[side], load)
        except (NoServerError, AppAnswersWrongError, AppNotServedError) as error:
            raise NotMeasuredError(side == 1, str(error).splitlines()[0]) from error
    return found[0], found[1]


@dataclass(frozen=True)
class ProbedArm:
    """One arm in one block of an experiment that counts."""

    met: Met
    took: frozenset[str]
    """The treatments that met what they change."""


def probe_arms(
    trial: Trial, lab: Lab, treatments: tuple[Treatment, Treatment], probes: tuple[Probe, Probe], number: int
) -> tuple[ProbedArm, ProbedArm]:
    """Make a situation in both arms of a block, the first and the second treatment. Raises as `block` does."""
    found: dict[int, ProbedArm] = {}
    for side in _order(number):
        with standing(trial, lab, treatments[side]) as server:
            if probes[side].warm:
                server.warm()
            met = situations.meet(server, probes[side])
            found[side] = ProbedArm(met, server.took())
    return found[0], found[1]


def _order(number: int) -> list[int]:
    order = [0, 1]
    random.Random(f"{SEED}/{number}").shuffle(order)
    return order
