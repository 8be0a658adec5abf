"""How much of a request is the app's own, and so whether any server can matter to it.

    share = own_share(study, question, results, profiles)
    share.server                     # Interval(0.022, 0.026, 0.031): of 7.8 ms of CPU on the stack that led
    matters_not(share)               # True: no server saves more than 3.1 %

The same stack serves the app, an empty route of its framework, and an empty handler, in the same blocks. What the empty
handler costs is the server's, what the empty route costs beyond that is the framework's, and the rest the app's own. A
server that costs nothing at all would save the server's share: if the upper end of its interval is below the margin,
the choice between servers that are tied does not matter.

Two costs can decide, and the app says which: the CPU of a request in a closed loop, where the server is busy, or its
response time at a low rate, where no request waits for another. An app waits where most of the response time is what it
adds to an empty handler's, and its CPU fills less than half of that; all others are compared by CPU. (CPU over the
whole response time would not tell: at a low rate a server that does nothing takes most of its time to wake up.)
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from velodrome.judge.field import cpus_of, hosts_of
from velodrome.judge.statistics import Comparison, Sample
from velodrome.model.load import Closed, Open
from velodrome.model.measurement import Failed, FlagKind, Measurement
from velodrome.model.noise import SHIPPED, Noise
from velodrome.model.profile import Profile, shows_work
from velodrome.model.quantity import Interval, exact, number, percent
from velodrome.model.study import Layer, Question, Study
from velodrome.model.verdict import Basis, OwnShare

MARGIN = 0.05
"""Of the cost of a request: a server's share below this is no reason to choose another. As for contestants that are
called equal (`standings.SETTLED`)."""
BOUND_BY_CPU = 0.5
"""Share of what an app adds to the response time that its CPU fills, or CPUs in use, from which on CPU decides."""
MOST_OF_IT = 0.5
"""Share of the response time that an app has to add for it to wait."""
WIDEST = 0.3
"""Interval of the server's share from which on it is not reported."""
FRAMES = 5
"""Functions of a profile that are reported."""
LEAST_TOLD = 0.02
"""Share of a function that is worth telling."""


def own_share(
    study: Study,
    question: Question,
    results: Sequence[Measurement | Failed],
    profiles: Sequence[Profile] = (),
    noise: Noise = SHIPPED,
) -> OwnShare | None:
    """Return where the cost of a request of a question comes from; None where its baselines do not tell."""
    layers = {layer.baseline.layer: layer for layer in study.baselines(question.name) if layer.baseline}
    if "app" not in layers:
        return None
    found = {
        name: [
            measurement
            for measurement in results
            if measurement.trial.question == layer.name and isinstance(measurement, Measurement)
        ]
        for name, layer in layers.items()
    }
    cpu = {name: _cpu_us(measured, noise) for name, measured in found.items()}
    time = {name: _median_ms(measured, noise) for name, measured in found.items()}
    basis = _basis(cpu, time, found["app"])
    if basis is None:
        return None
    figures = cpu if basis is Basis.CPU else time
    whole, app = figures["app"], layers["app"]
    server = share_of(figures.get("server"), whole)
    if server is None or whole is None:
        return None
    framework = layers["framework"].baseline if "framework" in layers else None
    beneath = share_of(figures.get("framework"), whole)
    low = next((load.pace.rate for load in app.loads if isinstance(load.pace, Open)), None)
    profile = next(
        (profile for profile in profiles if profile.trial.question == app.name and not profile.failed), None
    )
    return OwnShare(
        contestant=app.contestants[0],
        basis=basis,
        total=statistics.fmean(whole.values.values()),
        server=server,
        beneath=beneath,
        framework=framework.framework if framework and beneath else "",
        rate=low if basis is Basis.TIME else None,
        functions=_functions(profile) if profile else {},
    )


def _functions(profile: Profile) -> dict[str, float]:
    seen = shows_work(profile.samples, profile.idle_share, profile.opaque_share)
    return dict(profile.share_by_function) if seen else {}


def is_known(share: OwnShare) -> bool:
    """Return whether the blocks agree enough on the server's share for it to be worth a sentence."""
    return share.server.high - share.server.low <= WIDEST


def matters_not(share: OwnShare) -> bool:
    """Return whether no server can save as much as the margin."""
    return share.server.high <= MARGIN


def share_of(part: Sample | None, whole: Sample | None) -> Interval | None:
    """Return the cost of a layer over that of the app, paired by block; None where they share no block."""
    if part is None or whole is None:
        return None
    pair = Comparison([replace(part, label="part"), replace(whole, label="whole")]).pair("part", "whole")
    return pair.ratio if pair else None


def _cpu_us(measured: Iterable[Measurement], noise: Noise) -> Sample | None:
    closed = [
        measurement
        for measurement in measured
        if isinstance(measurement.trial.load.pace, Closed) and _of_the_server(measurement)
    ]
    values = {
        measurement.trial.block: cost
        for measurement in closed
        if (cost := measurement.cpu_us_per_request) is not None and cost > 0
    }
    known = noise.cpu(cpus_of(closed)) if values else None
    return Sample("", values, noise=known.share, noise_df=known.df, hosts=hosts_of(closed)) if known else None


def _median_ms(measured: Iterable[Measurement], noise: Noise) -> Sample | None:
    every = list(measured)
    values = {
        measurement.trial.block: middle
        for measurement in every
        if not isinstance(measurement.trial.load.pace, Closed)
        and measurement.valid
        and (middle := measurement.load.due.p50) is not None
        and middle > 0
    }
    known = noise.latency("p50", statistics.median(values.values())) if values else None
    return Sample("", values, noise=known.share, noise_df=known.df, hosts=hosts_of(every)) if known else None


def _of_the_server(measurement: Measurement) -> bool:
    """Return whether its CPU per request is the server's: an empty handler may well outrun the generator."""
    fast = (FlagKind.GENERATOR_SATURATED, FlagKind.GENERATOR_LAGGED)
    return measurement.load.answers >= 1 and all(kind in fast for kind in measurement.doubts)


def _basis(
    cpu_us: Mapping[Layer, Sample | None],
    time_ms: Mapping[Layer, Sample | None],
    measured: Sequence[Measurement],
) -> Basis | None:
    """Return which cost decides; None where neither is known well enough."""
    cpu, time = cpu_us["app"], time_ms["app"]
    if time is None or cpu is None:
        # Too slow for a low rate: it is bound by CPU where its closed loop keeps one CPU busy.
        closed = [
            measurement
            for measurement in measured
            if cpu is not None and measurement.trial.block in cpu.values
        ]
        return Basis.CPU if closed and cpus_of(closed) >= BOUND_BY_CPU else None
    response_ms = _middle(time)
    longer_ms = response_ms - _middle(time_ms.get("server"))
    more_cpu_ms = (_middle(cpu) - _middle(cpu_us.get("server"))) / 1000
    waits = longer_ms >= MOST_OF_IT * response_ms and more_cpu_ms < BOUND_BY_CPU * longer_ms
    return Basis.TIME if waits else Basis.CPU


def _middle(sample: Sample | None) -> float:
    return statistics.median(sample.values.values()) if sample is not None else 0.0


# --- In words.


def sentence(share: OwnShare, called: str) -> str:
    """Return the share in a sentence: what of a request is the app's own, and what is the server's.

    «97 % of the 7.8 ms of CPU that a request takes on uvicorn are the app's own; no server saves more than 4 % of it»
    """
    whole = share.beneath or share.server
    own = max(0.0, 1 - whole.mid)
    framework = _framework(share)
    theirs = f", {percent(framework)} {share.framework}'s" if framework is not None else ""
    most = f"no server saves more than {math.ceil(share.server.high * 100)} % of it"
    if not matters_not(share):
        most = f"{percent(share.server.mid)} are the server's"
    if share.basis is Basis.CPU:
        return (
            f"{percent(own)} of the {_cost(share)} of CPU that a request takes on {called} are the app's own"
            f"{theirs}; {most}"
        )
    at = f" at {exact(share.rate)}" if share.rate is not None else ""
    return (
        f"{percent(own)} of the {_cost(share)} that a response takes{at} on {called} are the app's own, which waits"
        f"{theirs}; {most}"
    )


def _framework(share: OwnShare) -> float | None:
    """Return the framework's own part, where it is larger than the noise of the server's."""
    if share.beneath is None or share.beneath.mid <= share.server.high:
        return None
    return share.beneath.mid - share.server.mid


def _cost(share: OwnShare) -> str:
    if share.basis is Basis.CPU and share.total < 1000:
        return f"{number(share.total, 2)} µs"
    return f"{number(share.total / 1000 if share.basis is Basis.CPU else share.total, 2)} ms"


def where_it_goes(share: OwnShare) -> str:
    """Return the heaviest functions of its profile: «Where its CPU goes: 41 % render (jinja2/environment.py) · …»."""
    heaviest = sorted(share.functions.items(), key=lambda pair: (-pair[1], pair[0]))[:FRAMES]
    parts = [f"{percent(part)} {name}" for name, part in heaviest if part >= LEAST_TOLD]
    return f"Where its CPU goes: {' · '.join(parts)}" if parts else ""
