"""How requests ended, and what the listening socket went through.

These rest on measurements that are set aside as well, unless the lab itself was why: a claim that clients are turned
away is shown by the very flag that keeps the measurement out of a ranking.
"""

from collections.abc import Callable

from velodrome.judge.field import failures
from velodrome.judge.figures.cell import Cell, Taking
from velodrome.judge.figures.number import Missing, Number, counted, share
from velodrome.model.load import Load
from velodrome.model.measurement import Measurement


def _errors(cell: Cell, load: Load) -> Number:
    """Requests without a right answer, of all requests of all blocks."""
    return _share(cell, load, lambda one: failures(one, load))


def _outcome(kind: str) -> Callable[[Cell, Load], Number]:
    return lambda cell, load: _share(cell, load, lambda one: one.load.outcomes.get(kind, 0))


def _share(cell: Cell, load: Load, count: Callable[[Measurement], int]) -> Number:
    found = cell.seen(load)
    if isinstance(found, Missing):
        return found
    asked = sum(one.load.requests for one in found)
    return share(min(sum(count(one) for one in found), asked), asked)


def _failed(cell: Cell, load: Load) -> Number:
    """Blocks in which the server could not be measured at all, or gave no right answer, of all blocks."""
    measured = cell.runner.under(load)
    silent = {one.trial.block for one in measured if not one.load.answers and not one.load.ok}
    every = cell.failures(load) | {one.trial.block for one in measured}
    if not every:
        return Missing(f"nothing of {cell.runner.called} was run under {load.label}")
    return counted([float(block in cell.failures(load) | silent) for block in sorted(every)])


def _queue(part: str, what: str) -> Callable[[Cell, Load], Number]:
    def take(cell: Cell, load: Load) -> Number:
        found = cell.seen(load)
        if isinstance(found, Missing):
            return found
        told = [getattr(one.queue, part) for one in found]
        if all(one is None for one in told):
            return Missing(f"this system does not tell {what}")
        return counted([float(one) for one in told if one is not None])

    return take


FIGURES = {
    "error_share": Taking(_errors),
    "reset_share": Taking(_outcome("reset")),
    "refused_share": Taking(_outcome("refused")),
    "timeout_share": Taking(_outcome("timeout")),
    "failed_share": Taking(_failed),
    "listen_overflows": Taking(_queue("overflows", "how often a listen queue overflowed")),
    "listen_peak": Taking(_queue("peak", "how full a listen queue was")),
}
