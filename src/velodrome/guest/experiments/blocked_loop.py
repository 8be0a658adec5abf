"""How long an event loop stands still: while a client of the loop looks a slow name up; with many tasks on it.

python -m velodrome.guest.experiments.blocked_loop resolver --client tornado [--resolver CLASS]
python -m velodrome.guest.experiments.blocked_loop crowd --tasks 10000 --period 0.05

Prints one line of JSON. A heartbeat every 10 ms on the same loop tells how late it ran.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import time
from typing import Any, Awaitable, Callable, Dict, List

from velodrome.guest.experiments.client_timeouts import Listeners, slow_names

BEAT_S = 0.01


async def heartbeat(late: List[float]) -> None:
    """Append how many seconds late each beat came."""
    loop = asyncio.get_event_loop()
    while True:
        due = loop.time() + BEAT_S
        await asyncio.sleep(BEAT_S)
        late.append(loop.time() - due)


def tornado(seconds: float, resolver: str) -> Callable[[str], Awaitable[Any]]:
    """Return a function that asks with Tornado's default client."""
    from tornado.httpclient import AsyncHTTPClient
    from tornado.netutil import Resolver

    if resolver:
        Resolver.configure(resolver)

    async def ask(url: str) -> Any:
        return await AsyncHTTPClient().fetch(url, connect_timeout=seconds, request_timeout=seconds)

    return ask


def aiohttp(seconds: float, resolver: str) -> Callable[[str], Awaitable[Any]]:
    """Return a function that asks with aiohttp's client."""
    import aiohttp as library

    async def ask(url: str) -> Any:
        chosen = library.ClientTimeout(total=seconds)
        async with library.ClientSession(timeout=chosen) as session, session.get(url) as answer:
            return await answer.read()

    return ask


CLIENTS = {"aiohttp": aiohttp, "tornado": tornado}


async def resolver(client: str, which: str, seconds: float) -> Dict[str, Any]:
    """Ask for a name that takes `seconds`, and tell how long the loop stood still meanwhile."""
    slow_names(seconds)
    listeners = Listeners()
    url = listeners.urls()["dns"]
    ask = CLIENTS[client](seconds + 0.5, which)
    late: List[float] = []
    beating = asyncio.ensure_future(heartbeat(late))
    await asyncio.sleep(3 * BEAT_S)
    try:
        await ask(url)
        ending = "an answer, which cannot be"
    except Exception as error:
        ending = "%s: %s" % (type(error).__name__, error)
    await asyncio.sleep(3 * BEAT_S)
    beating.cancel()
    return {"client": client, "resolver": which, "blocked_s": max(late), "ended": ending[:200]}


async def crowd(tasks: int, period: float, seconds: float) -> Dict[str, Any]:
    """Let many tasks sleep and wake in turn, and tell how late the loop is and how busy its CPU."""
    late: List[float] = []

    async def member(first: float) -> None:
        await asyncio.sleep(first)
        while True:
            await asyncio.sleep(period)

    crowd = [asyncio.ensure_future(member(period * number / tasks)) for number in range(tasks)]
    await asyncio.sleep(2 * period)
    beating = asyncio.ensure_future(heartbeat(late))
    before, began = _cpu_s(), time.monotonic()
    await asyncio.sleep(seconds)
    share = (_cpu_s() - before) / (time.monotonic() - began)
    beating.cancel()
    for task in crowd:
        task.cancel()
    late.sort()
    return {
        "tasks": tasks,
        "wakes_per_s": tasks / period,
        "late_p50_ms": late[len(late) // 2] * 1000,
        "late_p99_ms": late[int(len(late) * 0.99)] * 1000,
        "cpu_share": share,
    }


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser()
    kinds = parser.add_subparsers(dest="kind")
    slow = kinds.add_parser("resolver")
    slow.add_argument("--client", choices=sorted(CLIENTS), required=True)
    slow.add_argument(
        "--resolver", default="", help="class of Tornado's resolver, e.g. tornado.netutil.BlockingResolver"
    )
    slow.add_argument("--seconds", type=float, default=1.0)
    many = kinds.add_parser("crowd")
    many.add_argument("--tasks", type=int, required=True)
    many.add_argument("--period", type=float, default=0.05)
    many.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    if options.kind == "resolver":
        work = resolver(options.client, options.resolver, options.seconds)
    else:
        work = crowd(options.tasks, options.period, options.seconds)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    print(json.dumps(loop.run_until_complete(work)), flush=True)
    os._exit(0)  # a thread may still be resolving


if __name__ == "__main__":
    main()
