"""Situations in which a server stops, reloads or has its workers replaced, or another one starts beside it.

Those of `situations.py` are made against a server that goes on as it is.
"""

import asyncio
import os
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from threading import Event

from velodrome.model.diagnosis import Met
from velodrome.model.errors import AppNotServedError, NoServerError
from velodrome.model.quantity import significant
from velodrome.run.instruments import processes
from velodrome.run.instruments.clients import (
    Answer,
    Where,
    ask_fresh,
    late_after_s,
    request_once,
    tally,
    usual_s,
    where,
)
from velodrome.run.instruments.standing import Standing

IN_FLIGHT = 16
"""Requests that are sent at once."""
STOP_S = 2.0
"""For a request in flight at the signal to stop, beyond what it takes otherwise."""
FAILS_ANYWAY = 1
"""Of these, without any event; of more it cannot be told whether the event lost them."""
SHORTEST_S, LONGEST_S = 0.004, 2.0
"""Requests that take less are over before a signal meets them. For those that take longer, servers get more time to end
where they are deployed than here (`SUPERVISION` in `guest/stack.py`): that they are lost says nothing."""
LATEST, IN_TURN = 0.7, 3.0
"""Of the time that a request takes: what comes later finds too many answered; from where on several take turns."""
BEFORE_S, AFTER_S = 0.3, 2.0
"""Of the open loop around an event in the life of the server."""
MOST_RATE = 100.0
"""Requests per second of it, at most; half of what the server can do, if that is less."""


async def stop(
    at: Where,
    server: Standing,
    *,
    stops: float = 0,
    reloads: float = 0,
    replaces: float = 0,
    requests: float = 0,
    read: float = 0,
) -> Met:
    """Have the server stop, reload or replace a worker under an open loop, and count requests that are never answered.

    Each request has a connection of its own; right before the event some are sent at once, so that there are requests
    in flight. Where the server goes on, all from there on count. Where it stops, those that were sent before: whoever
    sends it requests knows of the stop, and `later` is what became of the others. `requests`: so many at least, where
    the server itself replaces workers after a number of them. `read`: the event waits until an event loop has read all
    that are sent at once: whoever it happens to in the moment before is one in thousands, elsewhere.
    """
    usual = await usual_s(at)
    if stops and usual < SHORTEST_S:
        return Met(0, 0, figures={"usual_ms": 1000 * usual})
    if usual > LONGEST_S:
        return Met(0, 0, figures={"usual_ms": 1000 * usual, "outlasts_s": usual})
    began = time.monotonic()
    together = await asyncio.gather(*(request_once(at, at.patience_s) for _ in range(IN_FLIGHT)))
    together_s = time.monotonic() - began
    rate = min(MOST_RATE, IN_FLIGHT / together_s / 2)
    if (wrong := sum(answer.outcome != "ok" for answer in together)) > FAILS_ANYWAY:
        return Met(0, 0, figures={"usual_ms": 1000 * usual, "fails_anyway": wrong, "of": IN_FLIGHT})
    # Of requests that the loop works on one after the other the last is read when the others are answered.
    reading_s = together_s - usual if read and together_s < IN_TURN * usual else 0.0
    lead_s = max(usual / 3, reading_s)
    if lead_s > LATEST * usual:
        return Met(0, 0, figures={"usual_ms": 1000 * usual})
    long_s = max(AFTER_S, min(requests / rate, 3 * AFTER_S))
    # Who comes while a new worker starts waits for it, and is not lost.
    patience_s = late_after_s(at, usual) + STOP_S + (0 if stops else server.booted.boot_s)
    event_s = BEFORE_S + lead_s
    steady = [number / rate for number in range(int((event_s + long_s) * rate))]
    begin = time.monotonic() + 0.01

    async def due(after_s: float) -> tuple[float, float, Answer]:
        """Return when it was sent, when it ended, and how."""
        await asyncio.sleep(max(begin + after_s - time.monotonic(), 0.0))
        sent_s = time.monotonic() - begin
        answer = await request_once(at, patience_s)
        return sent_s, time.monotonic() - begin, answer

    sent = [asyncio.ensure_future(due(one)) for one in sorted([*steady, *[BEFORE_S] * IN_FLIGHT])]
    await asyncio.sleep(max(begin + event_s - time.monotonic(), 0.0))
    # Taken before it: what it ends is reset while this is still in the call.
    happened_s = time.monotonic() - begin
    happened = _happen(at, server, stops, reloads, replaces)
    answers = await asyncio.gather(*sent)
    if not happened:
        return Met(0, 0, figures={"usual_ms": 1000 * usual})
    # One that was answered before the event says nothing of it. How long its answer took would not do to know that: a
    # connection takes a while to open as well.
    ended = [(answer, sent_s) for sent_s, ended_s, answer in answers if ended_s >= happened_s]
    counted = [answer for answer, sent_s in ended if not stops or sent_s < happened_s]
    found = tally(
        [one for one in counted if one.outcome != "ok"],
        counted,
        f"{significant(1000 * usual)} ms otherwise, {significant(rate)} requests/s",
        usual_ms=1000 * usual,
        rate=rate,
        seconds=time.monotonic() - begin - happened_s,
    )
    later = Counter(f"later {answer.outcome}" for answer, sent_s in ended if stops and sent_s >= happened_s)
    return replace(found, outcomes={**found.outcomes, **later})


def _happen(at: Where, server: Standing, stops: float, reloads: float, replaces: float) -> bool:
    """Let it happen to the server; return whether it could."""
    first = server.booted.server.pid
    pid, number = first, int(signal.SIGHUP)
    if stops:
        number = server.booted.server.serving.process().stop_signal
    elif replaces:
        workers = processes.workers(server, at.port) - {first}
        if not workers:
            return False
        pid, number = min(workers), int(signal.SIGTERM)
    elif not reloads:
        return True  # nothing has to
    with suppress(OSError):
        os.kill(pid, number)
    return True


WATCH_S = 0.02
STARTED_S, MOST_STARTING_S = 0.4, 4.0
"""No process came for so long: all workers are there, which gunicorn starts up to 0.1 s apart; at most waited for."""


async def recycle(
    at: Where,
    server: Standing,
    *,
    workers: float,
    within: float,
    connections: float = 8,
    seconds: float = 5.0,
    longest_s: float = 0.0,
) -> Met:
    """Load the server, and count the workers that it replaces when it replaces half of the others.

    `within` that share of how long they live. Only the first that are replaced count, as many as there are workers:
    later ones drift apart by themselves. While they are fewer the load goes on, for up to `longest_s`: who is not
    replaced by then was not replaced together with others.
    """
    # A worker that is still being started would count as one that replaced another.
    await _all_started(server)
    seen: dict[int, float] = {}
    done = Event()

    def watch() -> None:
        while not done.is_set():
            now = time.monotonic()
            for pid in processes.tree(server.booted.server.pid)[1:]:
                seen.setdefault(pid, now)
            time.sleep(WATCH_S)

    answers, watch_once = 0.0, set(processes.tree(server.booted.server.pid))
    with ThreadPoolExecutor(1) as thread:
        began = time.monotonic()
        watching = thread.submit(watch)
        try:
            while True:
                answers += server.run_closed_loop(int(connections), seconds, keepalive=False).load.answers
                too_long = time.monotonic() - began + seconds >= longest_s
                if too_long or len(seen.keys() - watch_once) >= workers:
                    break
        finally:
            done.set()
            watching.result()
    births = sorted(at_s for pid, at_s in seen.items() if pid not in watch_once)
    figures = {"requests": answers, "replaced": float(len(births))}
    if len(births) < (1 if longest_s else workers):
        return Met(0, 0, figures=figures)
    births = births[: int(workers)]
    lives_s = sum(births) / len(births) - began
    others = [sum(abs(other - birth) <= within * lives_s for other in births) - 1 for birth in births]
    together = sum(count >= workers / 2 for count in others)
    sentence = f"a worker lives for {significant(lives_s, 2)} s"
    return Met(together, int(workers), {}, {**figures, "lives_s": lives_s}, sentence)


async def _all_started(server: Standing) -> None:
    """Wait till the processes of a server stay the same."""
    begun, until = processes.tree(server.booted.server.pid), time.monotonic() + MOST_STARTING_S
    since = time.monotonic()
    while time.monotonic() < min(since + STARTED_S, until):
        await asyncio.sleep(WATCH_S)
        if (now := processes.tree(server.booted.server.pid)) != begun:
            begun, since = now, time.monotonic()


COLD_S, COLD_AT_START_S, COLD_TIMES = 0.05, 0.15, 3.0
"""By which the first request of a worker, or of a server that is started, takes longer, and how many times as long, for
it to be cold."""
RENEWED_S, BOOTS, CALM_S = 6.0, 3, 0.2
"""For another worker to be there: so long, or so many times what the server took to start; and how long it does nothing
when it is ready."""


async def renew(
    at: Where, server: Standing, replaced: float = 0, started: float = 0, rounds: float = 6
) -> Met:
    """Count the workers whose first request is slow: those that take the place of one that is ended, or whole servers.

    Where nobody replaces a worker, another server is `started` beside this one. Each is first at rest.
    """
    usual = await usual_s(at)
    hits, made, slowest = 0, 0, 0.0
    cold_s = max(usual + (COLD_AT_START_S if started else COLD_S), COLD_TIMES * usual)
    for _ in range(int(rounds)):
        if started:
            answers = await _first_of_another(server, at.patience_s)
        else:
            answers = await _first_of_workers(at, server, replaced)
        if not answers:
            break
        made += 1
        longest = max(answer.seconds for answer in answers)
        hits += longest > cold_s
        slowest = max(slowest, longest)
    sentence = f"up to {significant(1000 * slowest)} ms, {significant(1000 * usual)} ms otherwise"
    return Met(hits, made, {}, {"slowest_ms": 1000 * slowest, "usual_ms": 1000 * usual}, sentence)


async def _first_of_workers(at: Where, server: Standing, replaced: float) -> list[Answer]:
    """Return answers of workers, one of which has been `replaced`; empty: nobody replaces one that ends."""
    workers = processes.workers(server, at.port)
    if replaced:
        if not workers or server.booted.server.pid in workers:
            return []  # nobody replaces the first process
        with suppress(OSError):
            os.kill(min(workers), signal.SIGTERM)
        if not await _wait_for_new_worker(server, at.port, workers):
            return []
    # With several workers it is one of a few at once that meets the new one.
    return await ask_fresh(at, 1 if len(workers) < 2 else 4 * len(workers), at.patience_s)


async def _first_of_another(server: Standing, patience_s: float) -> list[Answer]:
    """Return the answer to the first request of a server that is started beside this one; empty: it did not start."""
    with suppress(NoServerError, AppNotServedError), server.another() as another:
        there = where(another.booted.target)
        if there is not None and await _wait_for_new_worker(another, there.port, set()):
            return await ask_fresh(replace(there, patience_s=patience_s), 1, patience_s)
    return []


async def _wait_for_new_worker(server: Standing, port: int, before: set[int]) -> bool:
    """Wait till a worker is there that was not, and does nothing more; return whether one came."""
    until = time.monotonic() + max(RENEWED_S, BOOTS * server.booted.boot_s)
    last: tuple[set[int], float] = (set(), 0.0)
    while time.monotonic() < until:
        await asyncio.sleep(CALM_S)
        fresh = processes.workers(server, port) - before
        cpu_s = processes.calls_and_cpu(server)[1]
        if fresh and (fresh, cpu_s) == last:
            return True
        last = fresh, cpu_s
    return bool(last[0])
