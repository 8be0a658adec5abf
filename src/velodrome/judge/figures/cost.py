"""What the server used: CPU for each right answer, CPUs kept busy, memory."""

from collections.abc import Callable, Sequence
from statistics import median

from velodrome.judge.figures.cell import Cell, Taking
from velodrome.judge.figures.number import Missing, Number, Series
from velodrome.model.load import Load
from velodrome.model.measurement import Measurement

NOISE_CPU = 0.05
NOISE_CPU_ASLEEP = 0.3
"""Of a server that is busy for less than half of the time: it pays for waking up, by the mood of the machine."""
BUSY = 0.5
NOISE_MEMORY = 0.02
"""Standard deviations of the log ratio of two equal servers (docs/method.md, «Claims»)."""


def _of_cpu(value: Callable[[Measurement], float | None]) -> Callable[[Cell, Load], Number]:
    def noise(measured: Sequence[Measurement]) -> float:
        return NOISE_CPU if median(map(_cpus, measured)) >= BUSY else NOISE_CPU_ASLEEP

    return _of_server(value, noise, "CPU")


def _of_server(
    value: Callable[[Measurement], float | None], noise: Callable[[Sequence[Measurement]], float], what: str
) -> Callable[[Cell, Load], Number]:
    def take(cell: Cell, load: Load) -> Number:
        found = cell.valid(load)
        if isinstance(found, Missing):
            return found
        values = {one.trial.block: told for one in found if (told := value(one))}
        if not values:
            return Missing(f"{cell.runner.called} told no {what} under {load.label}")
        return Series(values, noise=noise(found))

    return take


def _cpus(one: Measurement) -> float:
    return one.server.cpu_s / one.load.duration_s


FIGURES = {
    "cpu_us": Taking(_of_cpu(lambda one: one.cpu_us_per_request)),
    "cpu_share": Taking(_of_cpu(_cpus)),
    "memory_bytes": Taking(_of_server(lambda one: float(one.memory_bytes), lambda _: NOISE_MEMORY, "memory")),
}
