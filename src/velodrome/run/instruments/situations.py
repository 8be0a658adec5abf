"""Situations that a probe makes against a standing server: each does one odd thing, and counts what becomes of it.

    found = meet(server, Probe("slow", "10 requests while a client sends its head slowly", "late"))
    found.hits, found.of, found.outcomes

Each is a coroutine over a `Where`, whose further parameters are the probe's settings: all but those that need the
server itself can be tried on any server by address.
"""

import asyncio
import inspect
import os
import re
import resource
import secrets
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import combinations
from operator import attrgetter
from typing import NamedTuple, TypeVar

from velodrome.model.diagnosis import Met, Probe
from velodrome.model.errors import NoServerError
from velodrome.model.load import Closed, Load
from velodrome.model.quantity import significant
from velodrome.run.experiments import backlog
from velodrome.run.instruments import heartbeat, processes
from velodrome.run.instruments.clients import (
    SLACK_S,
    Answer,
    Client,
    Where,
    ask_fresh,
    late_after_s,
    request_once,
    some_at_once,
    tally,
    usual_s,
    where,
)
from velodrome.run.instruments.life_cycle import CALM_S, IN_FLIGHT, recycle, renew, stop
from velodrome.run.instruments.mixed_up import canary
from velodrome.run.instruments.standing import Standing
from velodrome.run.link import enter
from velodrome.run.machine import netlink
from velodrome.run.measuring import kernel
from velodrome.run.measuring.kernel import Throttling
from velodrome.run.racing.opening import host_beside
from velodrome.run.supervision import own_process

T = TypeVar("T")
SLOW_TIMES = 3.0
"""A request that never ends is waited for as long as `Where` says, or so many times what the fastest took, if that is
longer."""
OPENING = 16
"""At once."""
OPEN_S = 2.0


def meet(server: Standing, probe: Probe) -> Met:
    """Make a situation and return what was met. Raises NoServerError where nothing can be sent, or the server dies."""
    at = where(server.booted.target)
    label = server.trial.contestant.label
    if at is None:
        raise NoServerError(label, "its requests cannot be sent by hand")
    fastest = [load.load.fastest_ms for load in server.loads if load.load.fastest_ms is not None]
    took_ms = min(fastest, default=0.0)
    at = replace(at, patience_s=max(at.patience_s, SLOW_TIMES * took_ms / 1000))
    situation = SITUATIONS[probe.name]
    more = {"server": server} if "server" in inspect.signature(situation).parameters else {}

    def make() -> Met:
        with enter(server.booted.site.client):
            return asyncio.run(_make(situation(at, **probe.settings, **more)))

    with host_beside(server.booted.placed):
        found = beside_loops(make)
    if not probe.ends and (died := server.booted.server.exit()) is not None:
        raise NoServerError(label, f"{probe.about}: {died.sentence}", server.booted.server.last_lines())
    return found


def beside_loops(make: Callable[[], T]) -> T:
    """Call what runs an event loop, in another thread where one runs in this: a notebook has one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return make()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(make).result()


async def _make(situation: Awaitable[Met]) -> Met:
    return await situation


async def reuse(
    at: Where, idle_s: float, count: float = 16, after_s: float = 0.005, longer_s: float = 1.5
) -> Met:
    """Use connections again that were idle, up to `after_s` after the server has ended them.

    A proxy whose news of the end is so long on the way sends such requests. Where the server does not end a connection
    within `idle_s` and `longer_s`, it is used then.
    """

    async def one(number: int) -> Answer | None:
        await asyncio.sleep(number * 0.02)
        async with Client(at) as client:
            first = await client.request()
            if first.outcome != "ok":
                return None
            begin = time.monotonic()
            ended = await client.until_ended(idle_s + longer_s)
            idled.append(time.monotonic() - begin)
            if ended:
                await asyncio.sleep(after_s * number / count)
            return await client.request()

    idled: list[float] = []
    answers = [answer for answer in await asyncio.gather(*map(one, range(int(count)))) if answer is not None]
    lost = [answer for answer in answers if answer.outcome in {"reset", "refused"}]
    ended_s = min(idled, default=0.0)
    sentence = f"the server had ended the connection after {significant(ended_s)} s"
    return tally(lost, answers, sentence, idled_s=ended_s)


async def idle(at: Where, count: float, requests: float = 16, stay: float = 1) -> Met:
    """Keep connections open on each of which a request was answered, then send requests on fresh ones.

    `stay`: 0 closes each once its request was answered, so that those before are all that is left of it.
    """
    usual = await usual_s(at)
    patience_s = late_after_s(at, usual)
    until = time.monotonic() + OPEN_S
    async with AsyncExitStack() as opened:
        turn = asyncio.Semaphore(OPENING)

        async def opening() -> bool:
            async with turn:
                if time.monotonic() > until:
                    return False
                if not stay:
                    async with Client(at, patience_s) as client:
                        await client.request()
                    return False
                client = await opened.enter_async_context(Client(at, patience_s))
                return (await client.request()).outcome == "ok" and not client.has_ended

        kept = sum(await asyncio.gather(*(opening() for _ in range(int(count)))))
        answers = await ask_fresh(at, int(requests), patience_s)
    return _late(at, answers, usual, kept=kept)


async def slow(at: Where, clients: float, requests: float = 16, byte_s: float = 0.05) -> Met:
    """Send the heads of requests byte by byte, and requests on other connections meanwhile."""
    usual = await usual_s(at)
    head = at.with_headers(X_Slow="x" * 4096).head()

    async def slowly() -> None:
        async with Client(at) as client:
            for byte in head:
                if done.is_set() or client.has_ended:
                    return
                client.send(bytes([byte]))
                await asyncio.sleep(byte_s)

    done = asyncio.Event()
    sending = [asyncio.ensure_future(slowly()) for _ in range(int(clients))]
    await asyncio.sleep(2 * byte_s)
    answers = await ask_fresh(at, int(requests), late_after_s(at, usual))
    done.set()
    await asyncio.gather(*sending)
    return _late(at, answers, usual)


async def burst(
    at: Where, count: float, patience_s: float = 2.5, server: Standing | None = None, *, times: float = 1
) -> Met:
    """Connect many times at once, with a request each, and count those that are turned away or late by a second.

    So many `times` in turn, each burst for up to `patience_s` seconds.
    """
    data = at.with_headers(Connection="close").request
    before = _counter("ListenOverflows", server)
    address = (at.host, at.port)
    # Not in another thread: that would be in another network.
    knocks = [
        knock for _ in range(int(times)) for knock in backlog.burst(address, int(count), data, patience_s)
    ]
    overflows = _counter("ListenOverflows", server) - before
    slowest = max((knock.ended_s or patience_s for knock in knocks), default=0.0)
    return Met(
        sum(knock.late for knock in knocks),
        len(knocks),
        Counter(knock.outcome for knock in knocks),
        {"overflows": float(overflows), "slowest_ms": 1000 * slowest},
        f"the slowest after {significant(slowest, 2)} s, the listen queue overflowed {overflows} times",
    )


FEWEST_PAIRS = 4


async def again(at: Where, same: float = 1, pairs: float = 16, server: Standing | None = None) -> Met:
    """Send two requests, one right after the other: on the same connection, or (`same` 0) on two.

    Nothing counts where a worker was replaced meanwhile, and no connection that the server has ended: what becomes of
    these is another matter.
    """
    await asyncio.sleep(CALM_S)  # else the work behind the answers of the load before would be what is usual
    usual = await usual_s(at, SLACK_S)  # what is late by little counts
    workers = processes.workers(server, at.port) if server else set()
    late: list[Answer] = []
    every: list[Answer] = []
    until = time.monotonic() + OPEN_S
    for number in range(int(pairs)):
        if number >= FEWEST_PAIRS and time.monotonic() > until:
            break
        async with Client(at) as client, Client(at) as other:
            first = await client.request()
            if first.outcome != "ok" or first.headers.get("connection", "").lower() == "close":
                continue
            # Else the delayed acknowledgement, which is another fault, would look like this one.
            second = client if same else other
            second.acknowledge_at_once()
            answer = await second.request()
            if answer.outcome in {"reset", "refused"}:
                continue
            every.append(answer)
            if answer.outcome != "ok" or answer.seconds > usual + 0.02:
                late.append(answer)
    if server and processes.workers(server, at.port) != workers:
        return Met(0, 0, figures={"usual_ms": 1000 * usual})
    middle = sorted(one.seconds for one in every)[len(every) // 2] if every else 0.0
    sentence = f"{significant(1000 * middle)} ms in the middle, {significant(1000 * usual)} ms otherwise"
    return tally(late, every, sentence, middle_ms=1000 * middle, usual_ms=1000 * usual)


async def spread(at: Where, server: Standing, connections: float = 48, gap_s: float = 0.002) -> Met:
    """Open connections one after the other, a request on each, and count those that the busiest worker holds."""
    async with AsyncExitStack() as opened:
        answers = []
        for _ in range(int(connections)):
            client = await opened.enter_async_context(Client(at))
            answers.append(await client.request())
            await asyncio.sleep(gap_s)
        with enter(server.booted.site.server):
            inodes = {sock.inode for sock in netlink.established_sockets(at.port) or ()} - {0}
        held = processes.holders(server.booted.server.pid, inodes)
    most = max(held.values(), default=0)
    return Met(
        most,
        sum(held.values()),
        Counter(answer.outcome for answer in answers),
        {"workers": float(len(held))},
        "by process: " + ", ".join(map(str, sorted(held.values(), reverse=True))),
    )


FLIGHT, UPLOADING_S = 14_600, 0.05
"""Bytes of a request that a network delivers first (RFC 6928), and until the rest is there."""


async def upload(at: Where, size: float, requests: float = 16, server: Standing | None = None) -> Met:
    """Send requests with a body of so many bytes, 0: without one, and count those reset because of what was unread.

    Of a body that is made so large most comes later than its beginning, as over a network. Whether the answer of such a
    request arrives before the reset is a matter of the network as well: on loopback it mostly does. So what is reset
    counts, and what got no answer.
    """
    at = at.filled()
    big = replace(at, body=(at.body or b"x").ljust(int(size), b" ") if size else b"")
    first, cut = FLIGHT if size else len(big.request), 0

    async def send() -> Answer:
        nonlocal cut
        async with Client(big, at.patience_s) as client:
            if client.refused:
                return await client.request()
            client.send(big.request[:first])
            answer = asyncio.ensure_future(client.answer(time.monotonic()))
            await asyncio.sleep(UPLOADING_S)
            if answer.done() and client.has_ended:
                was_reset = await client.is_reset_by(big.request[first:])
                cut += was_reset  # not in one statement: others add meanwhile
            else:
                client.send(big.request[first:])
            return await answer

    before = _counter("TCPAbortOnClose", server)
    answers = await some_at_once(int(requests), send)
    unread = min(max(_counter("TCPAbortOnClose", server) - before, cut), len(answers))
    lost = sum(answer.outcome in {"reset", "timeout"} for answer in answers)
    return Met(
        max(lost, unread),
        len(answers),
        Counter(answer.outcome for answer in answers),
        {"unread": float(unread)},
        f"{unread} connections were closed unread, {lost} requests got no answer",
    )


async def storm(at: Where, server: Standing, clients: float, idle_s: float, stall_s: float = 0.3) -> Met:
    """Have clients send on connections that were idle for a while, all at once, while the server stalls.

    Who finds its connection ended opens another, and the listen queue has to take what the server cannot yet. Those
    count that were turned away, or were late by a second.
    """
    usual = await usual_s(at)
    before = _counter("ListenOverflows", server)
    opened = 0
    turn = asyncio.Semaphore(OPENING)
    ready, stalled = asyncio.Barrier(int(clients) + 1), asyncio.Event()

    async def one() -> Answer:
        nonlocal opened
        async with Client(at, at.patience_s + stall_s) as kept:
            async with turn:
                await kept.request()
            await ready.wait()
            await stalled.wait()
            if not kept.has_ended:
                return await kept.request()
        opened += 1
        begin = time.monotonic()
        answer = await request_once(at, at.patience_s + stall_s)
        return replace(answer, seconds=time.monotonic() - begin)

    sent = [asyncio.ensure_future(one()) for _ in range(int(clients))]
    await ready.wait()
    await asyncio.sleep(idle_s)
    tree = processes.tree(server.booted.server.pid)
    try:
        _signal(tree, signal.SIGSTOP)
        stalled.set()
        await asyncio.sleep(stall_s)
    finally:
        _signal(tree, signal.SIGCONT)
    answers = await asyncio.gather(*sent)
    overflows = _counter("ListenOverflows", server) - before
    late = [one for one in answers if one.outcome != "ok" or one.seconds >= max(backlog.LATE_S, 3 * stall_s)]
    sentence = f"{opened} connections opened at once, the listen queue overflowed {overflows} times"
    return tally(late, answers, sentence, opened=opened, overflows=overflows, usual_ms=1000 * usual)


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, number)


MOST_FILES = 1200
"""A limit of open files above this is out of reach of the clients of one proxy, and not tried."""
BEYOND = 64


async def wall(at: Where, server: Standing) -> Met:
    """Open more connections than the server may open files, a request on each, and count those without an answer."""
    limits = [processes.open_files(pid) for pid in processes.workers(server, at.port)]
    limit = min(limits, default=0)
    if not limit or limit > MOST_FILES:
        return Met(0, 0, figures={"limit": float(limit)})
    turn = asyncio.Semaphore(OPENING)
    # More than one worker may open: there is no telling which of them takes a connection.
    count = min(limit * len(limits) + BEYOND, 2 * MOST_FILES)
    until = time.monotonic() + WALL_S
    async with AsyncExitStack() as opened:
        if not opened.enter_context(_may_open(count + SPARE)):
            return Met(0, 0, figures={"limit": float(limit)})

        async def opening() -> Answer | None:
            async with turn:
                if time.monotonic() > until:
                    return None
                client = await opened.enter_async_context(Client(at, SLACK_S + OPEN_S / 4))
                return await client.request()

        found = await asyncio.gather(*(opening() for _ in range(count)))
    answers = [answer for answer in found if answer is not None]
    beyond = answers[-BEYOND:]
    failed = [answer for answer in beyond if answer.outcome != "ok"]
    right = sum(answer.outcome == "ok" for answer in answers)
    sentence = f"{right} connections were answered beside each other, {limit} files may be open"
    return tally(failed, beyond, sentence, limit=limit, answered=right)


WALL_S = 6.0
SPARE = 64
"""Files that this process has open besides."""


@contextmanager
def _may_open(count: int) -> Iterator[bool]:
    """Let this process open so many files meanwhile; yield whether it may."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    own_process.raise_limit("RLIMIT_NOFILE", count)
    try:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        yield soft == resource.RLIM_INFINITY or soft >= count
    finally:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def quota(at: Where, server: Standing, connections: float = 8, seconds: float = 1.0) -> Met:
    """Load the server, and count the periods in which its control groups had spent their share of the CPU.

    `paid` is the quota in CPUs where the groups show it; a quota that is spent in every period is about what is used.
    """
    pid = processes.busiest(server)
    groups = Throttling(pid)
    before = groups.periods()
    measured = server.run_closed_loop(int(connections), seconds)
    after = groups.periods()
    if before is None or after is None:
        return Met(0, 0)
    cpus = measured.server.cpu_s / measured.load.duration_s
    hits, of = after[1] - before[1], after[0] - before[0]
    paid = processes.quota_of(pid)
    figures = {"cpus": cpus} if paid is None else {"cpus": cpus, "paid": paid}
    of_what = "" if paid is None else f" of {significant(paid)} that the quota pays for"
    return Met(min(hits, of), of, {}, figures, f"{significant(cpus, 2)} CPUs used{of_what}")


BURST_S = 0.5


async def arenas(at: Where, server: Standing, bursts: float = 2, connections: float = 64) -> Met:
    """Count the megabytes that the server has for itself after bursts, and those of them in malloc's further arenas."""
    for _ in range(int(bursts)):
        server.run_closed_loop(int(connections), BURST_S)
        await asyncio.sleep(CALM_S)
    within, count = 0.0, 0
    for pid in processes.tree(server.booted.server.pid):
        for dirty in processes.heaps(pid):
            within += dirty
            count += 1
    every = processes.memory(server.booted.server.pid)
    return Met(
        round(min(within, every) / 1e6),
        round(every / 1e6),
        {},
        {"arenas": float(count), "bytes": within},
        f"{count} arenas",
    )


async def rest(at: Where, server: Standing) -> Met:
    """Count the hundredths of a CPU that the server's processes use while no request is in flight.

    Where they use some, it is counted for longer, from then on: what requests left to be done comes to its end.
    """
    await asyncio.sleep(CALM_S)
    pids = processes.tree(server.booted.server.pid)
    serving = set(pids) - processes.helpers(server)
    share = await _computes(serving, AT_REST_S)
    if share >= SOME_CPU:
        share = await _computes(serving, LONGER_AT_REST_S)
    return Met(round(100 * min(share, 1.0)), 100, {}, {"cpus": share})


async def _computes(pids: Collection[int], seconds: float) -> float:
    """Return how many CPUs processes use in the next seconds."""
    before, began = processes.cpu_s(pids), time.monotonic()
    await asyncio.sleep(seconds)
    return max(processes.cpu_s(pids) - before, 0.0) / (time.monotonic() - began)


AT_REST_S, LONGER_AT_REST_S, SOME_CPU = 1.0, 4.0, 0.05


async def swell(
    at: Where,
    server: Standing,
    *,
    least: float,
    bursts: float = 8,
    connections: float = 64,
    filling: float = 1,
) -> Met:
    """Load it in bursts, and count those after which it has more than `least` bytes more than before them."""
    pid = server.booted.server.pid
    before = processes.memory(pid)
    stayed: dict[str, float] = {}
    for number in range(int(filling + bursts)):
        server.run_closed_loop(int(connections), BURST_S)
        await asyncio.sleep(CALM_S)
        if number >= filling:
            stayed[f"burst_{number - int(filling)}"] = processes.memory(pid) - before
    hits = sum(one > least for one in stayed.values())
    most = max(stayed.values(), default=0.0)
    sentence = f"up to {significant(most / 1e6)} MB stayed"
    return Met(hits, len(stayed), {}, stayed, sentence)


COLD_ROUNDS = 3
KEPT = 0.25
"""Work of a second burst that is the same, over that of as many requests that are alone, up to which it is kept."""


async def stampede(at: Where, server: Standing, together: float = 1) -> Met:
    """Send requests at once that are the same and were never sent before, and count those that do the whole work again.

    By the work that others do for them, where there is some (`calls_and_cpu`); else by CPU time. What is done for each
    request anyway, also for the second of its kind, is no such work. New is a parameter of the query, or else the last
    number of the path; or what is kept of the request itself has expired.
    """
    at = at.filled()
    found = await _stampede(server, partial(_other_query, at), bool(together))
    if not found.of and _NUMBER.search(at.path) and at.method == "GET":
        numbers = secrets.SystemRandom().sample(range(1, NUMBERS + 1), NUMBERS)
        found = await _stampede(server, partial(_other_number, at, iter(numbers)), bool(together))
    calls = bool(server.booted.upstreams) or processes.calls_and_cpu(server)[0] > 0
    return await _expiring(at, server, bool(together)) if calls and not found.of else found


async def _stampede(server: Standing, cold: Callable[[], Where], together: bool) -> Met:
    alone = await _work(server, [cold()])
    much = attrgetter("calls" if alone.calls else "cpu_s")
    if not alone.right or (not alone.calls and alone.cpu_s < 2 * WORK_S):
        return Met(0, 0)
    again, every = 0.0, 0
    for _ in range(COLD_ROUNDS):
        new = cold()
        first = await _work(server, [new] * IN_FLIGHT, together=together)
        second = await _work(server, [new] * IN_FLIGHT, together=together)
        is_kept = much(second) <= KEPT * IN_FLIGHT * much(alone)
        if not is_kept or much(first) < KEPT * much(alone):  # the latter: it was there before
            return Met(0, 0, figures={"alone": much(alone), "second": much(second)})
        again += min(max(much(first) / much(alone) - 1, 0.0), IN_FLIGHT - 1)
        every += IN_FLIGHT - 1
    what = CALLS if alone.calls else "s of CPU"
    sentence = f"{significant(much(alone), 2)} {what} for one"
    return Met(round(again), every, {}, {"alone": much(alone)}, sentence)


KEPT_FOR_S = 4.0
"""What is kept for longer is not seen to expire."""


async def _expiring(at: Where, server: Standing, together: bool) -> Met:
    """Send a request again and again, in bursts, and count the work that others do for it now and then.

    Beyond that which they do for each: what is kept may be kept by others too, such as Redis.
    """
    until = time.monotonic() + KEPT_FOR_S
    # The first may find nothing kept; of those behind it the first that has others do more says what one does.
    alone = [await _work(server, [at]) for _ in range(2)]
    while alone[-1].calls <= (always := min(work.calls for work in alone)) and time.monotonic() < until:
        alone.append(await _work(server, [at]))
    each = alone[-1].calls - always
    if each <= 0 or not all(work.right for work in alone):
        return Met(0, 0)
    cold = list[float]()
    until = time.monotonic() + COLD_ROUNDS * KEPT_FOR_S
    while len(cold) < COLD_ROUNDS and time.monotonic() < until:
        work = await _work(server, [at] * IN_FLIGHT, together=together)
        if not work.right:
            return Met(0, 0)
        more = work.calls - always * IN_FLIGHT
        cold += [more] if more >= each else []
    if len(cold) < COLD_ROUNDS:
        return Met(0, 0, figures={"alone": each, "expired": float(len(cold))})
    again = sum(min(calls / each - 1, IN_FLIGHT - 1) for calls in cold)
    sentence = f"{significant(each, 2)} {CALLS} for one, each time that what was kept expired"
    return Met(round(again), COLD_ROUNDS * (IN_FLIGHT - 1), {}, {"alone": each}, sentence)


def _other_query(at: Where) -> Where:
    mark = "&" if "?" in at.path else "?"
    return replace(at, path=f"{at.path}{mark}velodrome={secrets.token_hex(6)}")


_NUMBER = re.compile(r"^([^?]*/)(\d{1,9})(?=[/?]|$)")
NUMBERS = 99
"""The last number of a path is changed to one of so many that follow it: there is often something behind these."""


def _other_number(at: Where, more: Iterator[int]) -> Where:
    more_by = next(more)
    path = _NUMBER.sub(lambda found: f"{found[1]}{int(found[2]) + more_by}", at.path)
    return replace(at, path=path, expected=None)


class _Work(NamedTuple):
    """What requests took."""

    calls: float
    """Work that others did."""
    cpu_s: float
    right: bool
    """Whether all were answered right."""


async def _work(server: Standing, requests: Sequence[Where], *, together: bool = True) -> _Work:
    """Return what requests take, at once or one after the other."""
    before = processes.calls_and_cpu(server)
    if together:
        answers = await asyncio.gather(*(request_once(request, request.patience_s) for request in requests))
    else:
        answers = [await request_once(request, request.patience_s) for request in requests]
    await asyncio.sleep(LEFT_S)
    calls, cpu_s = (
        after - earlier for after, earlier in zip(processes.calls_and_cpu(server), before, strict=True)
    )
    return _Work(calls, cpu_s, all(answer.outcome == "ok" for answer in answers))


async def epolls(at: Where, server: Standing, rest_s: float = 0.4) -> Met:
    """Count the processes of a server that wait on one epoll with another, and the CPU that they use at rest."""
    before = processes.calls_and_cpu(server)[1]
    await asyncio.sleep(rest_s)
    at_rest = (processes.calls_and_cpu(server)[1] - before) / rest_s
    tree = processes.tree(server.booted.server.pid)
    held = [(pid, number) for pid in tree for number in processes.epolls_of(pid)]
    sharing: set[int] = set()
    for (pid, number), (other, another) in combinations(held, 2):
        if pid != other and sharing.issuperset({pid, other}):
            continue
        same = kernel.same_open_file(pid, number, other, another) if pid != other else False
        if same is None:
            return Met(0, 0)
        if same:
            sharing |= {pid, other}
    sentence = f"{significant(at_rest, 2)} CPUs used at rest"
    return Met(len(sharing), len(tree), {}, {"cpus_at_rest": at_rest}, sentence)


LONG_S, WORK_S = 0.05, 0.01
"""A request that takes less, or computes less and calls nobody, is over before it matters that its client has left."""


async def leave(at: Where, server: Standing, leaves: float = 1) -> Met:
    """Have clients leave in the middle of their requests, and count for how many the work goes on all the same.

    By the work that others do for them where each has some (`calls_and_cpu`), else by CPU time; over what as many whole
    requests would still have taken then. `leaves` 0: the clients stay, and what is done behind their answers counts.
    """
    usual = await usual_s(at)
    if usual < LONG_S:
        return Met(0, 0, figures={"usual_ms": 1000 * usual})
    leaves_s, notices_s = usual / 3, min(LEFT_S, usual / 4)

    async def work(*, leaving: bool, takes_s: float | None = None) -> tuple[float, float, float]:
        """Return what is done for requests: from when their clients are gone on, or all of it.

        And how many seconds they had taken by then. `takes_s`: what they take if nobody leaves; None finds out. A
        request that waits first does nothing for long, and then goes on: nothing is over before.
        """
        async with AsyncExitStack() as opened:
            clients = [await opened.enter_async_context(Client(at, at.patience_s)) for _ in range(IN_FLIGHT)]
            before, began = processes.calls_and_cpu(server), time.monotonic()
            sent = [asyncio.ensure_future(client.request()) for client in clients]
            if leaving:
                await asyncio.sleep(leaves_s)
                for client in clients:
                    client.abort()
            await asyncio.gather(*sent)
            if takes_s is not None:
                await asyncio.sleep(notices_s)
                before = processes.calls_and_cpu(server)
            passed_s = time.monotonic() - began
            await asyncio.sleep((takes_s or 0.0) - passed_s)
        # What goes on has come to its end when nothing has been done for a while.
        until, last = time.monotonic() + at.patience_s, processes.calls_and_cpu(server)
        while time.monotonic() < until:
            await asyncio.sleep(max(LEFT_S, usual / 2))
            now = processes.calls_and_cpu(server)
            if now[0] == last[0] and now[1] - last[1] < WORK_S:
                break
            last = now
        now = processes.calls_and_cpu(server)
        return now[0] - before[0], now[1] - before[1], passed_s

    calls, cpu_s, took_s = await work(leaving=False)
    if calls < IN_FLIGHT and cpu_s < IN_FLIGHT * WORK_S:
        return Met(0, 0, figures={"cpu_ms": 1000 * cpu_s / IN_FLIGHT})
    calls_after, cpu_s_after, passed_s = await work(leaving=bool(leaves), takes_s=took_s)
    left = 1 - (passed_s if leaves else leaves_s + notices_s) / took_s
    if left < LEAST_LEFT:
        return Met(0, 0, figures={"usual_ms": 1000 * usual})
    by_calls = calls >= IN_FLIGHT
    share = (calls_after / calls if by_calls else cpu_s_after / cpu_s) / left
    hits = min(round(IN_FLIGHT * max(share, 0.0)), IN_FLIGHT)
    what = f"{calls_after:.0f} {CALLS}" if by_calls else f"{significant(cpu_s_after, 2)} s of CPU"
    return Met(
        hits,
        IN_FLIGHT,
        {},
        {"calls": calls_after, "cpu_s": cpu_s_after},
        f"{what} after their clients had left",
    )


CALLS = "calls, statements and waits"
"""Of the work that others do."""
LEFT_S = 0.05
"""After clients have left, at most: for their server to notice, and to finish what it is at."""
LEAST_LEFT = 0.2
"""Of what requests take, after that: less would be chance."""


LOADS, LOAD_S, LOADED = 8, 0.4, 8
FILLING, FILLED, FILLING_S = 3, 5_000, 8.0
"""Loads before those that count: so many, and until so many requests are answered or so many seconds have passed."""
SLOWLY, FILLING_AT_ONCE = 500, 64
"""Where those first loads are answered fewer times, an app that waits is filled by more connections from then on.

sqlite3 keeps what is left of 200 cursors of each connection before it looks: of a pool of 15 that is 3,000 requests.
"""


async def grow(
    at: Where, server: Standing, loaded: float = 1, least: float = 64, descriptors: float = 0
) -> Met:
    """Load it again and again alike, and count the loads that leave more in use, by so much a request.

    Of memory, in bytes; or of open descriptors. What as many connections leave with one request each is not counted: a
    server may keep what was a connection for as long as it would have kept that alive. Memory that no object of
    Python's has is what the allocator has not given back, or buffers of those connections: where live objects are
    counted, and do not rise with the requests, loads count only if each of them leaves `WITHOUT_OBJECTS`.
    """
    in_use, grain = (processes.descriptors, 0) if descriptors else (processes.memory, PAGES)
    pid = server.booted.server.pid
    outcomes: Counter[str] = Counter()

    async def carried(connections: int = LOADED) -> int:
        if not loaded:
            await asyncio.sleep(LOAD_S / 4)
            return 0
        load = server.run_closed_loop(connections, LOAD_S).load
        outcomes["ok"] += load.ok
        return int(load.answers)

    def left() -> tuple[float, float | None]:
        return in_use(pid), None if descriptors else server.live_blocks()

    def beyond(first: float, second: float, third: float) -> float:
        return third - second - max(second - first, 0)

    filled, loads, connections, began = 0, 0, LOADED, time.monotonic()
    more = loaded and not descriptors  # of these there would soon be none left
    while loads < FILLING or (more and filled < FILLED and time.monotonic() - began < FILLING_S):
        filled += await carried(connections)
        loads += 1
        if loads == FILLING and filled < SLOWLY:
            connections = FILLING_AT_ONCE
    grew, much, requests, figures, objects = 0, 0, 0, dict[str, float](), list[float]()
    first = left()
    for number in range(LOADS):
        if loaded:
            await asyncio.gather(*(request_once(at, at.patience_s) for _ in range(LOADED)))
        second = left()
        answered = await carried()
        third = left()
        risen = beyond(first[0], second[0], third[0])
        grew += risen > max(least * answered, grain)
        much += risen > max(WITHOUT_OBJECTS * answered, MUCH)
        figures[f"load_{number}"] = risen
        requests += answered
        if first[1] is not None and second[1] is not None and third[1] is not None:
            objects.append(beyond(first[1], second[1], third[1]))
        first = third
    sentence = f"{significant(sum(figures.values()), 4)} in all"
    if len(objects) < LOADS or much == LOADS:
        return Met(grew, LOADS, outcomes, figures, sentence)
    each = sum(objects) / max(requests, 1)
    hits = sum(one > 0 for one in objects)
    if each <= OBJECTS or sum(figures.values()) <= 0 or hits < STEADY:
        hits = 0
    return Met(hits, LOADS, outcomes, figures, f"{sentence}, {significant(each)} objects for each request")


PAGES = 16_384
"""Bytes: less is how memory is handed out."""
WITHOUT_OBJECTS = 1024
"""Bytes for each request, and none of them in objects: a buffer that grows, or what code in C keeps."""
MUCH = 256 * 1024
"""Bytes for each load, at least, where they are in no objects: an app of a few requests a second has allocated that
much for others before it is in its stride."""
OBJECTS = 0.25
"""Live objects that a request leaves: fewer are what comes and goes, up to 0.1 of an app that fills for long."""
STEADY = 7
"""Loads that leave more objects, at least, for these to be a leak: what comes and goes leaves more in half of them."""


async def crowd(at: Where, server: Standing, connections: float, seconds: float = 0.8) -> Met:
    """Keep so many requests in flight, and count those that are not answered right."""
    load = Load(Closed(int(connections)), seconds, 0.1, timeout_s=at.patience_s, drain_s=at.patience_s)
    facts = server.load(load).load
    wrong = {name: count for name, count in facts.outcomes.items() if name not in {"ok", "unfinished"}}
    hits = sum(wrong.values())
    example = str(facts.examples[0]) if facts.examples else ""
    return Met(hits, hits + facts.ok, facts.outcomes, {"connections": connections}, example)


HUNDREDTHS = 100


async def lateness(at: Where, server: Standing, connections: float, seconds: float = 2.0) -> Met:
    """Keep so many requests in work, and count the hundredths of the time for which the event loop is late.

    The server has a heartbeat.
    """
    seen = heartbeat.watch(server, int(connections), seconds)
    if not seen.seconds:
        return Met(0, 0)
    hits = round(HUNDREDTHS * min(seen.late_s / seen.seconds, 1.0))
    return Met(hits, HUNDREDTHS, {}, {"rps": seen.rps}, f"at {significant(seen.rps, 4)} requests/s")


HUNG_S, HUNG_TIMES, LONGEST_HANG_S = 1.5, 8.0, 8.0
"""Nothing is answered for so long, and for so many times as long as a request takes, where requests hang."""
HUNG_CPUS = 0.1


async def hang(at: Where, server: Standing, count: float) -> Met:
    """Send so many requests at once, and count those that are never answered while nobody computes for them."""
    usual = await usual_s(at)
    quiet_s = max(HUNG_S, HUNG_TIMES * usual)
    if quiet_s > LONGEST_HANG_S / 2:
        return Met(0, 0, figures={"usual_ms": 1000 * usual})
    async with AsyncExitStack() as opened:
        turn = asyncio.Semaphore(OPENING)

        async def opening() -> Client:
            async with turn:
                return await opened.enter_async_context(Client(at, LONGEST_HANG_S + quiet_s))

        clients = await asyncio.gather(*(opening() for _ in range(int(count))))
        sent = {asyncio.ensure_future(client.request()) for client in clients if not client.refused}
        waiting, hung = set(sent), False
        until = time.monotonic() + LONGEST_HANG_S
        while waiting and not hung and time.monotonic() < until:
            before = processes.calls_and_cpu(server)[1]
            done, waiting = await asyncio.wait(waiting, timeout=quiet_s, return_when=asyncio.FIRST_COMPLETED)
            hung = not done and processes.calls_and_cpu(server)[1] - before < HUNG_CPUS * quiet_s
        for client in clients:
            client.abort()
        answers = await asyncio.gather(*sent)
    lost = len(waiting) if hung else 0
    sentence = f"nothing was answered for {significant(quiet_s, 2)} s while the CPU was idle"
    outcomes = Counter(answer.outcome for answer in answers)
    return Met(lost, len(sent), outcomes, {"usual_ms": 1000 * usual}, sentence if hung else "")


WORN, WORN_LOAD_S, WEARING_S = 8, 1.0, 20.0
"""Requests that are counted; a closed loop that wears the server, and for how long there are some, at most."""
REST_TIMES, REST_S, LONGEST_REST_S = 2.0, 3.0, 10.0
"""For what is still in work to end: so many times as long as that takes one after the other, within these."""


async def worn(
    at: Where, server: Standing, requests: float = 0, connections: float = 4, usual_ms: float = 0
) -> Met:
    """Have so many requests answered, and count those after a rest that wait for longer or fail while nobody computes.

    They miss what others took before and never gave back. With 0 `connections` they are sent one after the other, until
    one of them is not answered. `usual_ms` is what a request took on the fresh server; 0: it is fresh.
    """
    usual = usual_ms / 1000 or await usual_s(at)
    late_s = late_after_s(at, usual)

    def misses(answer: Answer) -> bool:
        # A server that refuses by itself says so by these.
        refuses = answer.outcome == "bad_status" and answer.status in {429, 503}
        return answer.seconds >= late_s or (answer.outcome != "ok" and not refuses)

    answered, until = 0.0, time.monotonic() + WEARING_S
    while answered < requests and time.monotonic() < until:
        if not connections:
            if misses(await request_once(at, late_s)):
                break
            answered += 1
            continue
        try:
            answered += server.run_closed_loop(int(connections), WORN_LOAD_S).load.answers
        except NoServerError:
            break  # nothing is answered any more
    rested = time.monotonic() + min(max(REST_TIMES * connections * usual, REST_S), LONGEST_REST_S)
    while misses(await request_once(at, late_s)) and time.monotonic() < rested:
        await asyncio.sleep(late_s / 2)
    began, before = time.monotonic(), processes.calls_and_cpu(server)[1]
    answers = await ask_fresh(at, WORN, late_s)
    cpus = (processes.calls_and_cpu(server)[1] - before) / (time.monotonic() - began)
    missing = [answer for answer in answers if misses(answer)]
    if any(answer.seconds >= late_s for answer in missing) and cpus > HUNG_CPUS:
        missing = []  # they compute for longer
    return tally(
        missing,
        answers,
        f"{significant(1000 * usual)} ms otherwise",
        answered=answered,
        usual_ms=1000 * usual,
        cpus=cpus,
    )


AGEING_S = 10.0
"""For how long at most requests are answered between two loads."""


async def age(
    at: Where, server: Standing, connections: float, requests: float = 0, load_s: float = 1.0
) -> Met:
    """Measure a closed loop, and once more after so many requests, and count the hundredths of throughput that it lost.

    Loads in which nothing is answered right have none.
    """

    def rps() -> float:
        try:
            return float(server.run_closed_loop(int(connections), load_s).load.ok) / load_s
        except NoServerError:
            return 0.0

    fresh = rps()
    answered, until = 0.0, time.monotonic() + AGEING_S
    while answered < requests and time.monotonic() < until:
        now = rps()
        answered += now * load_s
        if not now:
            break
    aged = rps()
    lost = min(max(1 - aged / fresh, 0.0), 1.0) if fresh else 0.0
    sentence = f"{significant(fresh)}/s at first, {significant(aged)}/s after {answered:.0f} more requests"
    return Met(round(100 * lost), 100 if fresh else 0, {}, {"fresh_rps": fresh, "aged_rps": aged}, sentence)


# --- What they share.


def _counter(name: str, server: Standing | None) -> int:
    """Return what the kernel of the server's end counts; 0 where it counts nothing."""
    with enter(server.booted.site.server if server else None):
        return kernel.tcp_counters().get(name, 0)


def _late(at: Where, answers: Sequence[Answer], usual: float, **figures: float) -> Met:
    """Return those that were late, or not answered right."""
    late = [
        answer for answer in answers if answer.outcome != "ok" or answer.seconds > late_after_s(at, usual)
    ]
    return tally(late, answers, f"{significant(1000 * usual)} ms otherwise", usual_ms=1000 * usual, **figures)


SITUATIONS: Mapping[str, Callable[..., Awaitable[Met]]] = {
    one.__name__: one
    for one in (
        *(reuse, idle, slow, burst, canary, again, spread, upload, stop, leave, renew, grow, crowd, hang),
        *(lateness, recycle, storm, wall, quota, arenas, rest, swell, stampede, epolls, worn, age),
    )
}
