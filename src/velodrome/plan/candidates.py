"""The grid of settings: every stack that can serve, with the values of its knobs that make sense on so many CPUs.

    grid(stacks, cpus=2)      gunicorn-gthread[threads=16,workers=2], uvicorn[workers=2], …

Of what may count, counts go up by factors, since what is decided is an order of magnitude: gunicorn's own rule
(2 × CPUs + 1 workers) is one of them. A backlog and a keep-alive time decide nothing while a server keeps up, so they
are tried around the best alone (`refined`).
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from velodrome.guest.stack import KnobValue, Stack
from velodrome.model.trial import Contestant
from velodrome.model.tuning import Candidate

THREADS = (4, 16, 64, 256)
REFINED: Mapping[str, tuple[int, ...]] = {"backlog": (128, 2048), "keepalive": (2, 75)}
"""Knobs that are tried around the best, with their values in seconds and connections."""


def grid(stacks: Iterable[Stack], cpus: int) -> tuple[Candidate, ...]:
    """Return all candidates on so many CPUs, in the order of stacks and knobs."""
    every = list(stacks)
    names = {stack.name for stack in every}
    # What a variant would be is among the settings of the stack that it is a variant of.
    return tuple(one for stack in every if stack.variant_of not in names for one in _of(stack, cpus))


def candidate(stack: Stack, knobs: Mapping[str, KnobValue]) -> Candidate:
    """Return one candidate. Raises KeyError for an unknown knob."""
    settings = stack.settings(knobs)
    changed = {name: value for name, value in knobs.items() if value != stack.knobs[name]}
    return Candidate(Contestant(stack.name, changed), int(settings.get("workers", 1)), stack.slots(settings))


def refined(best: Candidate, stack: Stack) -> tuple[Candidate, ...]:
    """Return the neighbours of a candidate in the knobs that decide nothing while a server keeps up."""
    settings = stack.settings(best.contestant.knobs)
    return tuple(
        candidate(stack, {**best.contestant.knobs, knob: value})
        for knob, values in REFINED.items()
        if knob in settings
        for value in values
        if value != settings[knob]
    )


def _of(stack: Stack, cpus: int) -> Iterator[Candidate]:
    values = {knob: _values(stack, knob, cpus) for knob in stack.knobs}
    axes = {knob: found for knob, found in values.items() if found}
    for chosen in product(*axes.values()):
        yield candidate(stack, dict(zip(axes, chosen, strict=True)))


def _values(stack: Stack, knob: str, cpus: int) -> tuple[KnobValue, ...]:
    """Return the values of a knob that are tried; none: it stays as it is."""
    if knob == "workers":
        # Where a worker serves one at a time their number is how many are served at once.
        alone = stack.slots({**stack.knobs, "workers": 7}) == 7
        counts = (1, cpus, 2 * cpus + 1, 4 * cpus, 8 * cpus, 16 * cpus) if alone else (1, cpus, 2 * cpus)
        return tuple(sorted(set(counts)))
    if knob == "threads":
        return THREADS
    return stack.choices.get(knob, ())
