"""A call in an `async def` that waits without awaiting: the loop stands still, and so do all other requests."""

import ast
from collections import defaultdict
from collections.abc import Callable, Sequence

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown, filling, stops_at
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Frame, HeldUp, Symptoms, Watched

LEAST = 0.02
"""Share of the time in which the loop's thread was blocked, from which on it is looked into."""
OTHERS = 0.5
"""CPU time of other threads, over the time in which the loop's was blocked."""
LEAST_DOSE_S = 0.001
LEAST_MS = 3.0
"""Of a request, where only throughput is known: what is shorter may be the system's own."""
GREEN = ("gevent",)
"""Packages whose loop runs greenlets: `driver-not-green` looks after those."""
NO_THREADS = ("trio", "tornado")
"""Those in whose loop no call can be moved to a thread from outside."""


def screen(seen: Symptoms) -> Screened:
    """Look for a place that blocks the loop's thread while nothing computes."""
    watched = seen.watched
    if watched is None or not watched.seconds:
        return Unknown("no heartbeat came out of its processes")
    if not watched.loop:
        return Absent("no asyncio event loop runs in its processes")
    if watched.late_s >= LEAST * watched.seconds and not watched.blocked_s + watched.ran_s:
        return Unknown(
            "the loop was late, and this system does not say whether its thread computed meanwhile"
        )
    if watched.loop.startswith(GREEN):
        return Absent("greenlets serve, and no coroutines")
    places = [held_up for held_up in watched.held_up if not in_logging(held_up)]
    share = sum(held_up.blocked_s for held_up in places) / watched.seconds
    if share < LEAST:
        computes = ": it computes" if watched.ran_s > watched.blocked_s else ""
        late = f"the loop was late for {watched.late_s / watched.seconds:.1%} of the time, blocked for {share:.1%}"
        why = f"{late}{computes}" if watched.late_s else "the loop was never late"
        return Absent(why, stacks_of(watched, watched.held_up[:1]))
    place, stacks = worst_place(places, lambda held_up: held_up.blocked_s)
    blocked, ran = (sum(getattr(stack, name) for stack in stacks) for name in ("blocked_s", "ran_s"))
    worst = max(stacks, key=lambda held_up: held_up.blocked_s)
    why = (
        f"{place} holds up the loop for {(blocked + ran) / watched.seconds:.0%} of the time under load, and computes "
        f"for {ran / (blocked + ran):.0%} of that"
    )
    named = worst.named
    return (
        Suspect(
            # Where another thread computes meanwhile, the loop's may well wait for the interpreter's lock.
            0.3 if watched.others_s > OTHERS * watched.blocked_s else min(0.95, 0.5 + share),
            why,
            experiments(seen, worst, each_s(seen, place, stacks), WHAT),
            stacks_of(watched, [worst]),
            loss=min(share, 0.9),
        )
        if named.own
        else Unknown(f"the loop is blocked for {share:.0%} of the time, outside of the app's own code")
    )


WHAT = (
    "do not wait in the event loop: an async client, `await asyncio.to_thread(…)`, or `def` in place of `async def` "
    "where the framework runs that in a thread"
)


def in_logging(held: HeldUp) -> bool:
    """Whether a stack is in a handler of `logging`, which `log-blocks` looks after."""
    return any(
        frame.file.replace("\\", "/").endswith(("/logging/__init__.py", "/logging/handlers.py"))
        for frame in held.stack
    )


def worst_place(every: Sequence[HeldUp], seconds: Callable[[HeldUp], float]) -> tuple[str, list[HeldUp]]:
    """Return the place that takes longest, and every stack with it as the innermost of the app's own."""
    places: dict[str, list[HeldUp]] = defaultdict(list)
    for held_up in every:
        places[held_up.named.place].append(held_up)
    return max(places.items(), key=lambda item: sum(map(seconds, item[1])))


def each_s(seen: Symptoms, place: str, stacks: Sequence[HeldUp]) -> float:
    """Return how long one call takes: of one connection where it shows there, as under load calls follow each other."""
    alone = (
        [held_up for held_up in seen.watched_alone.held_up if held_up.named.place == place]
        if seen.watched_alone
        else []
    )
    every = alone or stacks
    return sum(held_up.seconds for held_up in every) / sum(held_up.times for held_up in every)


def experiments(
    seen: Symptoms,
    held: HeldUp,
    each_s: float,
    what: str,
    *,
    metrics: tuple[str, ...] = ("rps", "p99_ms"),
    least_connections: int = 0,
) -> tuple[Experiment, ...]:
    """Return the call in a thread, judged by `metrics`, and where that cannot be, made as much longer as it takes."""
    connections = max(filling(seen), least_connections)
    named, awaiting = held.named, held.awaiting
    cure = Cure(
        what,
        (awaiting or named).place,
        (awaiting or named).text.strip(),
        in_a_thread(awaiting) if awaiting else "",
    )
    found = []
    no_threads = seen.watched is not None and seen.watched.loop.startswith(NO_THREADS)
    if awaiting is not None and awaiting.column is not None and not no_threads:
        moved = Treatment(f"{awaiting.place} in a thread", {"in-thread": [awaiting.site()]})
        found.append(Experiment(moved, connections, cure, metrics))
    return (*found, dose(named, each_s, connections, cure))


def dose(named: Frame, each_s: float, connections: int, cure: Cure) -> Experiment:
    """Return a call made twice as long."""
    more_s = max(each_s, LEAST_DOSE_S)
    longer = Treatment(
        f"{named.place} takes {significant(1000 * more_s)} ms longer",
        {"longer": [{**named.site(), "more_s": more_s}]},
    )
    return Experiment(longer, connections, cure, ("rps",), "dose")


def in_a_thread(frame: Frame) -> str:
    """Return the line with its call awaited in a thread; empty where the call is not all on one line."""
    line = frame.text.encode()
    if frame.column is None or frame.end_column is None or frame.end_line not in (0, frame.line):
        return ""
    call = line[frame.column : frame.end_column].decode(errors="replace")
    try:
        tree = ast.parse(call, mode="eval").body
    except SyntaxError:
        return ""
    if not isinstance(tree, ast.Call):
        return ""
    words = [ast.unparse(node) for node in (tree.func, *tree.args)]
    words += [
        f"{keyword.arg}={ast.unparse(keyword.value)}" if keyword.arg else f"**{ast.unparse(keyword.value)}"
        for keyword in tree.keywords
    ]
    before, after = (
        line[: frame.column].decode(errors="replace"),
        line[frame.end_column :].decode(errors="replace"),
    )
    awaited = f"await asyncio.to_thread({', '.join(words)})"
    whole = f"({awaited})" if after[:1] in {".", "[", "("} else awaited
    return f"{before}{whole}{after}".strip()


def stacks_of(watched: Watched, held: Sequence[HeldUp]) -> tuple[Evidence, ...]:
    """Return stacks as evidence."""
    return tuple(
        Evidence(
            "stack",
            f"{held_up.named.place} in {held_up.named.function}: {held_up.named.text.strip()}",
            {
                "frames": [f"{frame.function} ({frame.place})" for frame in held_up.stack],
                "seconds": held_up.seconds,
                "blocked_s": held_up.blocked_s,
                "ran_s": held_up.ran_s,
                "times": held_up.times,
                "of_s": watched.seconds,
            },
        )
        for held_up in held
    )


def glance(seen: Symptoms) -> str:
    """Look for one request in work at a time while nothing computes."""
    sentence = stops_at(seen, 1)
    if not sentence or seen.slope is None:
        return ""
    top = seen.slope.plateau
    if 1000 * seen.workers / top.rps < LEAST_MS:
        return ""
    return f"{sentence}: something waits on the event loop"


fault = Fault(
    "blocking-call",
    "one slow endpoint slows all, CPU idle: a synchronous call in an async def; def, a thread, or an async client",
    ("hindsight#2942", "skypilot#10523"),
    "The event loop is late because a call on its thread waits, and does not compute.",
    "Moved to a thread, the call costs other requests nothing: throughput or p99 is better. Where it cannot be moved "
    "from outside, it is made twice as long: throughput is worse.",
    screen,
    glance=glance,
)
