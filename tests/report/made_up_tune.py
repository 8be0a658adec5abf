"""Results of a tuning, made up."""

from itertools import count

from tests.judge import made
from tests.judge.tuning.servers import tune

from velodrome.guest import catalog
from velodrome.model.load import Limits
from velodrome.model.tuning import (
    Ask,
    Candidate,
    Goal,
    Observation,
    Reason,
    Recommendation,
    Wanted,
)
from velodrome.plan.matrix import candidate

STACKS = catalog.stacks()


GRID = [
    candidate(STACKS["gunicorn-gthread"], {"threads": threads, "workers": workers})
    for threads in (4, 16)
    for workers in (1, 2)
] + [candidate(STACKS["uvicorn"], {"workers": 2})]


COMMAND = "python -m gunicorn --bind=127.0.0.1:8000 --workers=2 --threads=16 shop.wsgi:application"


BOOTS = count(1)
STARTED: list[int] = []


def measure(option: Candidate, load: Ask) -> Observation:
    """20 ms of waiting, 1 ms of CPU: 16 × 2 slots are enough for two CPUs."""
    boot = next(BOOTS) if load.fresh or not STARTED else STARTED[-1]
    STARTED.append(boot)
    most = min((option.slots or 10_000) / 0.021, option.processes / 0.001) * (0.95 if option.slots else 0.7)
    rate = load.rate or load.connections / 0.021
    got = min(rate, most)
    held = load.rate < most if load.rate else None
    why = "" if held is not False else "p99 was 1 210 ms, and the limit is 200 ms"
    return Observation(
        load, got, held, why, held is False, 21.0, 1_000, 40_000_000 * option.processes, boot=boot
    )


def recommended(goal: Goal = Goal.CAPACITY) -> Recommendation:
    rate = 0.0 if goal is Goal.CAPACITY else 300.0
    return Recommendation(
        of="shop.wsgi:application: answers GET /cart",
        conditions=("p99 < 200ms",),
        rate=rate,
        limits=Limits(2, 10**9),
        tuned=tune(measure, GRID, Wanted(goal, 2, rate)),
        title="gunicorn · gthread ×2, 16 threads",
        runner_up="uvicorn · uvloop ×2",
        proof=made.measured(made.trial("one"), 300.0, mean_ms=21.0),
        growth=None,
        mind=(Reason("rate", 1_500, "", "above 1 500/s none of these carries it"),),
        before="python -m pip install gunicorn==27.0.1",
        command=COMMAND,
        python="",
        cwd="",
        grid_trials=75,
        seconds=130.0,
    )
