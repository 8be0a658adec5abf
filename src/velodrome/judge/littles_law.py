"""What arithmetic alone says of a question: who cannot be faster, and whether what was measured agrees."""

from collections.abc import Mapping, Sequence

from velodrome.judge.field import Runner
from velodrome.judge.words import listed
from velodrome.model.capacity import Ceiling
from velodrome.model.interval import Interval
from velodrome.model.quantity import exact, rate

REACHED = 0.9
"""From this share of a ceiling on, the ceiling is what limits."""
ABOVE = 1.05
"""Above this share of it, something is wrong with the ceiling or the figure."""


def limited(
    runners: Sequence[Runner], ceilings: Mapping[str, Ceiling], measured: Mapping[str, Interval], bound: str
) -> list[Runner]:
    """Return those that reach a ceiling of that kind."""
    return [
        runner
        for runner in runners
        if (found := ceilings.get(runner.label))
        and found.bound == bound
        and runner.label in measured
        and measured[runner.label].mid >= REACHED * found.rps
    ]


def cannot_exceed(
    runners: Sequence[Runner], ceilings: Mapping[str, Ceiling], fastest_rps: float
) -> list[str]:
    """Return one sentence for each ceiling by slots that lies clearly below the fastest, lowest first.

    «gunicorn · sync ×2 cannot exceed 10/s, because 2 ÷ 0.2 s = 10/s»
    """
    groups: dict[str, list[Runner]] = {}
    for runner in sorted(runners, key=lambda one: ceilings[one.label].rps if one.label in ceilings else 0.0):
        found = ceilings.get(runner.label)
        if found and found.bound == "slots" and found.rps < REACHED * fastest_rps:
            groups.setdefault(found.arithmetic, []).append(runner)
    return [
        f"{listed([runner.called for runner in group])} cannot exceed {exact(ceilings[group[0].label].rps)}, "
        f"because {arithmetic}"
        for arithmetic, group in groups.items()
    ]


def above(
    runners: Sequence[Runner], ceilings: Mapping[str, Ceiling], measured: Mapping[str, Interval]
) -> list[str]:
    """Return one sentence for each contestant that did more than arithmetic allows."""
    return [
        f"{runner.called} did {rate(measured[runner.label].mid)}, more than arithmetic allows it "
        f"({ceilings[runner.label].arithmetic}): either it waits less than the recipe says or it serves "
        "more at once than its description tells. Do not trust this row before you know which."
        for runner in runners
        if runner.label in measured
        and runner.label in ceilings
        and measured[runner.label].low > ABOVE * ceilings[runner.label].rps
    ]
