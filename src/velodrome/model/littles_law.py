"""What Little's law allows a server: as many right answers a second as arithmetic permits, whatever the code.

In a stable system the requests inside it are L = λ·W, their rate times the time each one stays
(J. D. C. Little, «A Proof for the Queuing Formula: L = λW», Operations Research 9, 1961). Where L cannot
exceed a number and W cannot be less than a wait, λ cannot exceed their quotient.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import KnobValue, Stack
from velodrome.model.load import Closed, Open, Schedule
from velodrome.model.quantity import exact, short


@dataclass(frozen=True)
class Ceiling:
    """The lowest bound that applies. `bound` says of what: `slots`, `connections`, `cpu` or `rate`."""

    rps: float
    arithmetic: str
    """`2 ÷ 0.2 s = 10/s`."""
    bound: str


def ceiling(
    stack: Stack,
    knobs: Mapping[str, KnobValue],
    recipe: Recipe,
    pace: Closed | Open | Schedule,
    cpus: int | None = None,
    *,
    streams: int = 1,
    rtt_ms: float = 0.0,
) -> Ceiling | None:
    """Return the lowest ceiling of a stack under a pace, or None where nothing bounds it but its own speed.

    Slots are held for waiting and computing, connections (each of its `streams`) for waiting at least and for
    `rtt_ms` on a link; CPU bounds it where the recipe itself asks for some; an open loop asks for no more than its
    rate. Raises KeyError for an unknown knob.
    """
    slots = stack.slots(stack.settings(knobs))
    wait_s = recipe.wait_ms / 1000
    held_s = wait_s + recipe.cpu_us / 1e6
    found = []
    if slots is not None and held_s > 0:
        found.append(_quotient(slots, held_s, "slots"))
    if isinstance(pace, Closed) and wait_s + rtt_ms > 0:
        found.append(_quotient(pace.connections * streams, held_s + rtt_ms / 1000, "connections"))
    if recipe.cpu_us and cpus:
        found.append(_quotient(cpus, recipe.cpu_us / 1e6, "cpu"))
    if isinstance(pace, Open) and found:
        found.append(Ceiling(pace.rate, f"{exact(pace.rate)} requested", "rate"))
    return min(found, key=lambda bound: bound.rps, default=None)


def _quotient(count: int, seconds: float, bound: str) -> Ceiling:
    rps = count / seconds
    return Ceiling(rps, f"{count} ÷ {short(seconds)} s = {exact(rps)}", bound)
