"""Open loop: how far from the ideal schedule requests arrive, seen at the target; and whether Poisson is Poisson.

The target notes the kernel's time of arrival of each request (`SO_TIMESTAMPNS`). The ideal schedule is
n / rate; its beginning is where half of the arrivals are early and half late. What a generator does not send
at all moves everything after it. The floor is a thread that sleeps in `epoll_pwait2` till each request's moment.
"""

from array import array
from dataclasses import dataclass
from itertools import count, pairwise
from statistics import median

import generators
from floors import floor
from generators import Generator, Shot
from rounds import Table, absent, extent, interleaved, middle, show
from scipy import stats
from track import Recorder, drive

RATES = (1_000, 10_000)
CONNECTIONS = 50
DURATION_S = 2.5
SETTLING_S = 0.5
"""Left out for all: connections are being opened."""
BURST = 0.1
"""Two requests closer than this share of the ideal distance came in a burst."""
POISSON_RATE = 1_000
"""A tenth of what makes one send wait for the one before it: at 10,000/s every twentieth gap is shorter than a send."""


@dataclass(frozen=True)
class Seen:
    """One run; microseconds, and shares."""

    p50: float
    p99: float
    worst: float
    bursts: float
    arrived: float
    cpu_s: float


def settled(arrivals: "array[int]") -> list[int]:
    """Leave out the settling time."""
    begin = arrivals[0] + SETTLING_S * 1e9
    return [at for at in arrivals if at >= begin]


def deviations(arrivals: list[int], rate: float) -> list[float]:
    """Return how far each arrival lies from its place in the schedule, in order of size; microseconds.

    Schedule and arrivals are matched by number.
    """
    offsets = [at - arrivals[0] - n * 1e9 / rate for n, at in enumerate(arrivals)]
    phase = median(offsets)
    return sorted(abs(offset - phase) / 1000 for offset in offsets)


def loaded(target: Recorder, generator: Generator, shot: Shot) -> tuple["array[int]", float]:
    """Return the arrivals of one run and the CPU it took. Raises RuntimeError when it fails."""
    target.arrivals()
    done = drive(generator.command(shot))
    arrivals = target.arrivals()
    if done.status or not arrivals:
        raise RuntimeError(f"{generator.name} failed: {done.output[-500:]}")
    return arrivals, done.cpu_s


def run(target: Recorder, generator: Generator, rate: int) -> Seen:
    """One contestant once."""
    shot = Shot(target.url, CONNECTIONS, DURATION_S, rate)
    arrivals, cpu_s = loaded(target, generator, shot)
    kept = settled(arrivals)
    off = deviations(kept, rate)
    near = BURST * 1e9 / rate
    bursts = sum(later - earlier < near for earlier, later in pairwise(kept)) / len(kept)
    arrived = len(arrivals) / (rate * DURATION_S)
    return Seen(off[len(off) // 2], off[len(off) * 99 // 100], off[-1], bursts, arrived, cpu_s)


def constant(target: Recorder, rate: int, rounds: int) -> Table:
    """Everybody at one rate."""
    contestants, missing = generators.present(
        ("floor", floor("arrivals")),
        ("velodrome", generators.velodrome("auto")),
        ("velodrome", generators.velodrome("io_uring")),
        ("velodrome", generators.velodrome("epoll")),
        ("oha", generators.oha()),
        ("wrk2", generators.wrk2()),
        ("vegeta", generators.vegeta()),
    )
    seen = interleaved(contestants, lambda generator: run(target, generator, rate), rounds)
    rows = tuple(
        (
            f"{generator.name} {generator.version}".strip(),
            f"{middle(repeat.p50 for repeat in runs):.1f} µs",
            extent([repeat.p50 for repeat in runs], 1),
            f"{middle(repeat.p99 for repeat in runs):.0f} µs",
            extent([repeat.p99 for repeat in runs], 0),
            f"{middle(repeat.p99 / lowest.p99 for repeat, lowest in zip(runs, seen[0], strict=True)):.2f}",
            f"{middle(repeat.worst for repeat in runs) / 1000:.1f} ms",
            f"{middle(repeat.bursts for repeat in runs) * 100:.2f} %",
            f"{middle(repeat.arrived for repeat in runs) * 100:.1f} %",
            f"{middle(repeat.cpu_s / DURATION_S for repeat in runs) * 100:.0f} %",
        )
        for generator, runs in zip(contestants, seen, strict=True)
    )
    columns = ("p50", "of rounds", "p99", "of rounds", "p99 of the floor's", "worst", "in bursts", "arrived")
    return Table(
        f"Arrivals at {rate:,}/s",
        f"Deviation from the ideal schedule, {CONNECTIONS} connections; "
        f"{rounds} interleaved rounds of {DURATION_S:g} s, medians.",
        ("generator", *columns, "of its CPU"),
        rows,
        (
            f"In bursts: closer to the one before than {BURST:g} of the ideal distance.",
            "velodrome auto is what `velodrome load` uses unless given otherwise.",
            *absent(missing),
        ),
    )


def poisson(target: Recorder, rounds: int) -> Table:
    """Whether the gaps of our Poisson arrivals are exponential: Kolmogorov and Smirnov's test of each run."""
    contestants = [generators.velodrome("io_uring"), generators.velodrome("epoll")]
    seeds = count(1)

    def once(generator: Generator) -> tuple[float, float, int]:
        shot = Shot(target.url, CONNECTIONS, 2 * DURATION_S, POISSON_RATE, poisson=True, seed=next(seeds))
        kept = settled(loaded(target, generator, shot)[0])
        gaps = [(later - earlier) / 1e9 for earlier, later in pairwise(kept)]
        found = stats.kstest(gaps, "expon", args=(0, 1 / POISSON_RATE))
        return float(found.statistic), float(found.pvalue), len(gaps)

    seen = interleaved(contestants, once, rounds)
    rows = tuple(
        (
            f"{generator.name} {generator.version}",
            f"{middle(gaps for _, _, gaps in runs):.0f}",
            f"{middle(statistic for statistic, _, _ in runs):.4f}",
            f"{middle(chance for _, chance, _ in runs):.2f}",
            f"{min(chance for _, chance, _ in runs):.2f}",
            f"{sum(chance >= 0.01 for _, chance, _ in runs)} of {len(runs)}",
        )
        for generator, runs in zip(contestants, seen, strict=True)
    )
    return Table(
        f"Poisson arrivals at {POISSON_RATE:,}/s",
        f"Gaps against the exponential distribution, Kolmogorov–Smirnov; {rounds} runs of {2 * DURATION_S:g} s.",
        ("generator", "gaps", "largest distance", "p-value, median", "least", "not rejected at 1 %"),
        rows,
        (
            "Each run has a seed of its own.",
            f"Not at {RATES[-1]:,}/s: there every twentieth gap is shorter than sending a request takes, so that even "
            "a perfect schedule arrives with those gaps longer than drawn, and the test rejects it.",
        ),
    )


def tables(rounds: int) -> list[Table]:
    """The tables of this benchmark."""
    with Recorder() as target:
        return [*(constant(target, rate, rounds) for rate in RATES), poisson(target, rounds)]


if __name__ == "__main__":
    show(tables, __doc__)
