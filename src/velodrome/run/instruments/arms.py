"""AB: one thing changed. Both arms are measured alike, each on a server started for it, block by block in drawn order.

    load = Loaded(64)
    before, after = block(trial, lab, ((AS_IT_IS, load), (treatment, load)), number=0)
    before.found, after.took            # Figures(…), frozenset({"anyio-tokens"})

A server that is started once may lie better in memory than the other for as long as it runs: what a block compares is
two fresh ones.
"""

import random
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from velodrome.model.diagnosis import Figures, Met, Probe, Treatment
from velodrome.model.errors import AppAnswersWrongError, AppNotServedError, NoServerError
from velodrome.model.trial import Trial
from velodrome.run.instruments import situations
from velodrome.run.instruments.standing import Standing, figures, standing
from velodrome.run.lab import Lab

SEED = 16
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Measure(Protocol[T_co]):
    """How an arm is measured."""

    def measure(self, server: Standing) -> T_co:
        """Return what comes of it. Raises NoServerError where the server dies of it."""


Side = tuple[Treatment, Measure[T]]
"""How an arm is treated, and how it is measured."""


@dataclass(frozen=True)
class Loaded:
    """An arm is measured by a closed loop."""

    connections: int
    seconds: float = 1.0

    @property
    def label(self) -> str:
        """As results call it."""
        return f"closed-{self.connections}"

    def measure(self, server: Standing) -> Figures:
        """Return the figures of the loop. Raises NoServerError where the server dies of it."""
        server.warm()
        return figures(server.run_closed_loop(self.connections, self.seconds))


@dataclass(frozen=True)
class Probed:
    """An arm is measured by a situation, in which requests are counted."""

    probe: Probe

    def measure(self, server: Standing) -> Met:
        """Return what was met. Raises NoServerError where the server dies of it."""
        if self.probe.warm:
            server.warm()
        return situations.meet(server, self.probe)


class NotMeasuredError(Exception):
    """An arm could not be served, or its server died while it was measured: which one, and why."""

    def __init__(self, treated: bool, reason: str) -> None:
        self.treated, self.reason = treated, reason
        super().__init__(reason)


@dataclass(frozen=True)
class Arm(Generic[T]):
    """One arm in one block."""

    found: T
    took: frozenset[str]
    """The treatments that met what they change."""


def measure_arm(trial: Trial, lab: Lab, treatment: Treatment, how: Measure[T]) -> Arm[T]:
    """Measure one arm. Raises NoServerError, AppAnswersWrongError, AppNotServedError."""
    with standing(trial, lab, treatment) as server:
        return Arm(how.measure(server), server.took())


def block(
    trial: Trial,
    lab: Lab,
    sides: tuple[Side[T], Side[T]],
    number: int,
) -> tuple[Arm[T], Arm[T]]:
    """Measure both arms of a block, the first and the second side.

    Raises NotMeasuredError where one cannot be served, or its server dies.
    """
    found: dict[int, Arm[T]] = {}
    for side in _order(number):
        try:
            found[side] = measure_arm(trial, lab, *sides[side])
        except (NoServerError, AppAnswersWrongError, AppNotServedError) as error:
            raise NotMeasuredError(side == 1, str(error).splitlines()[0]) from error
    return found[0], found[1]


def _order(number: int) -> list[int]:
    order = [0, 1]
    random.Random(f"{SEED}/{number}").shuffle(order)
    return order
