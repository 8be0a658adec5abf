"""What profiles tell: how much of the time the server waits, and how deep its stack is when it does not."""

from collections.abc import Callable

from velodrome.judge.figures.cell import Cell, Taking
from velodrome.judge.figures.number import Known, Missing, Number, share
from velodrome.model.interval import Interval
from velodrome.model.load import Load
from velodrome.model.profile import Profile


def _of_profile(take: Callable[[Profile], Number]) -> Callable[[Cell, Load], Number]:
    def taken(cell: Cell, _load: Load) -> Number:
        if not cell.profiles:
            return Missing(f"no profile of {cell.runner.called} was taken in {cell.question.name}")
        last = cell.profiles[-1]
        if last.failed:
            return Missing(f"{cell.runner.called} could not be profiled: {last.failed}")
        return take(last)

    return taken


def _idle(profile: Profile) -> Number:
    if profile.idle_share is None:
        return Missing("the profile does not tell how much was idle")
    return share(round(profile.idle_share * profile.samples), profile.samples)


def _depth(value: float | None) -> Number:
    """Depth is the code's, not the machine's: it is taken as exact."""
    return Known(Interval(value, value, value)) if value is not None else Missing("the profile has no depth")


FIGURES = {
    "idle_share": Taking(_of_profile(_idle)),
    "depth_mean": Taking(_of_profile(lambda profile: _depth(profile.depth_mean))),
    "depth_max": Taking(_of_profile(lambda profile: _depth(profile.depth_max))),
}
