"""UP: the simulated third parties take longer, and what becomes of a request that is alone and of throughput.

    found = step(trial, lab, AS_IT_IS, connections=64)
    found.in_sequence     3.0: a request makes three calls, one after the other
    found.slots           15.2: throughput follows 1 / the time of a call, as if 15 could be in it at once

Each step is a fresh server with fresh third parties. What requests take longer is set against what a call takes
longer, so that everything else that a request does falls out.
"""

import asyncio
from statistics import median
from urllib.parse import urlsplit

from velodrome.model.diagnosis import Treatment
from velodrome.model.symptoms import Step, Stepped
from velodrome.model.trial import Trial
from velodrome.run.instruments.clients import Client, Where
from velodrome.run.instruments.situations import beside_loops
from velodrome.run.instruments.standing import Standing, figures, standing
from velodrome.run.lab import Lab
from velodrome.run.link import entered

TIMES = 2.0
LEAST_MS = 20.0
"""By which a call takes longer, at least: shorter steps are lost among the rest of a request."""
MOST_TIMES = 40.0
ASKED = 5
"""Calls of each third party by which it is known how long one takes."""
ALONE, WAVES = 4, 3
"""Requests of the load of one connection, and of each connection of the other, at least."""
SECONDS, LONGEST_S = 1.0, 8.0


def step(trial: Trial, lab: Lab, treatment: Treatment, connections: int) -> Stepped | None:
    """Measure an app whose third parties take as long as they do, and longer; None: there are none, or without time.

    Raises NoServerError, AppAnswersWrongError.
    """
    if trial.app is None or not trial.app.third_parties:
        return None
    with standing(trial, lab, treatment) as server:
        before = _step(server, 1.0, connections)
    if not before.waited_ms:
        return None
    times = min(max(TIMES, 1 + LEAST_MS / before.waited_ms), MOST_TIMES)
    slower = Treatment(f"third parties take {times:.3g} times as long", third_parties=times)
    with standing(trial, lab, treatment.plus(slower)) as server:
        after = _step(server, times, connections)
    return Stepped(connections, before, after) if after.waited_ms > before.waited_ms else None


def _step(server: Standing, times: float, connections: int) -> Step:
    server.warm()
    waited_ms = _waited_ms(server)
    alone = figures(server.closed(1, SECONDS / 2))
    if alone.rps * SECONDS / 2 < ALONE:
        alone = figures(server.closed(1, min(ALONE * alone.mean_ms / 1000, LONGEST_S)))
    seconds = min(max(SECONDS, WAVES * alone.mean_ms / 1000), LONGEST_S)
    measured = server.closed(connections, seconds)
    full = figures(measured)
    calls = measured.upstream.requests / measured.load.answers if measured.upstream else 0.0
    cpus = measured.server.cpu_s / measured.load.duration_s
    return Step(times, waited_ms, alone.p50_ms, calls, full.rps, cpus)


def _waited_ms(server: Standing) -> float:
    """Return for how long third parties keep a call: the mean of their medians."""

    async def took_ms(url: str) -> float:
        parts = urlsplit(url)
        at = Where(parts.hostname or "", parts.port or 80, parts.path or "/")

        async def once() -> float:
            async with Client(at) as client:
                await client.request()  # the connection is no part of it
                return 1000 * (await client.request()).seconds

        return median(await asyncio.gather(*(once() for _ in range(ASKED))))

    async def all_of_them() -> list[float]:
        return [await took_ms(one.url) for one in server.booted.upstreams]

    def latencies() -> list[float]:
        # They are on the server's side of a link.
        with entered(server.booted.site.server):
            return asyncio.run(all_of_them())

    each = beside_loops(latencies)
    return sum(each) / len(each) if each else 0.0
