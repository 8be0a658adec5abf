"""A password is hashed on the event loop: slow by intention, and all others wait until it is done."""

import re
from dataclasses import replace

from velodrome.diagnoses.blocking_call import each_s, experiments, stacks_of, worst_place
from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown
from velodrome.model.diagnosis import BEATING, Probe
from velodrome.model.symptoms import HeldUp, Symptoms

LEAST = 0.05
"""Share of the time in which the loop's thread computes a hash, from which on it is looked into."""
CALLS = re.compile(
    r"\b(pbkdf2_hmac|scrypt|bcrypt|hashpw|checkpw|kdf|argon2|crypt|make_password|check_password"
    r"|(generate|check)_password_hash|(hash|verify)_password|pwd_context\.\w+)\s*\("
)
"""What such a call looks like where it stands: the code that computes is in C, and on no stack."""
FILES = (
    "/passlib/",
    "/bcrypt/",
    "/argon2/",
    "/pwdlib/",
    "/werkzeug/security.py",
    "/django/contrib/auth/hashers.py",
)
"""Packages that do nothing else."""
CONNECTIONS = 32
"""At least: with few in flight hardly any request meets the hash of another."""
EACH = 0.4
"""Hashes for each request that is alone, from which on all requests hash, and threads get no more of them done where
there is one CPU: who gains is whoever comes for something else, and finds the loop free. Not 1: the time that was
watched is longer than the load."""
HASHING = 8
"""Requests at once, for which the loop is late or not."""
LATE = 0.1
"""Share of the time with the loop late, from which on hashes are worth a diagnosis: all requests wait then."""
NEAR = 3
"""Frames, from the innermost, in whose lines the call has to stand."""
WHAT = (
    "hash in a thread: `await asyncio.to_thread(…)`, or `def` in place of `async def` where the framework runs that in "
    "a thread; hashing gives up the interpreter's lock"
)


def screen(seen: Symptoms) -> Screened:
    """Look for a hash that is computed on the loop's thread."""
    watched = seen.watched
    if watched is None or not watched.seconds:
        return Unknown("no heartbeat came out of its processes")
    if not watched.loop:
        return Absent("no asyncio event loop runs in its processes")
    hashing = [held_up for held_up in watched.held_up if hashes(held_up)]
    share = sum(held_up.ran_s for held_up in hashing) / watched.seconds
    sentence = f"the loop computes hashes of passwords for {share:.0%} of the time"
    if share < LEAST:
        return Absent(sentence)
    place, stacks = worst_place(hashing, lambda held_up: held_up.ran_s)
    worst = max(stacks, key=lambda held_up: held_up.ran_s)
    if not worst.named.own:
        return Unknown(f"{sentence}, outside of the app's own code")
    # With as many CPUs as hashes nothing but the others' latency can be better: that is the median, since most
    # requests hash nothing; the p99 is of those that do.
    metrics = ("rps", "p50_ms")
    hash_s = each_s(seen, place, stacks)
    made = experiments(seen, worst, hash_s, WHAT, metrics=metrics, least_connections=CONNECTIONS)
    if seen.setting.plain:
        # Where about half of the requests meet a hash, the median is now of these and now of the others.
        late = tuple(_of_lateness(experiment) for experiment in made if experiment.proof == "cure")
        first = () if _in_each(seen) else made[: len(late)]
        made = (*first, *late, *made[len(late) :])
    return Suspect(
        min(0.9, 0.5 + share),
        f"{sentence}, at {place}",
        made,
        stacks_of(watched, [worst]),
        loss=min(share, 0.9),
    )


def _in_each(seen: Symptoms) -> bool:
    """Whether every request hashes."""
    alone = seen.watched_alone
    if alone is None or not alone.rps:
        return False
    times = sum(held_up.times for held_up in alone.held_up if hashes(held_up))
    return times >= EACH * alone.rps * alone.seconds


def _of_lateness(made: Experiment) -> Experiment:
    """Return an experiment that counts for how long the loop is late."""
    probe = Probe(
        "lateness",
        f"a closed loop of {HASHING} connections",
        "hundredths of the time with the loop late",
        {"connections": HASHING},
        worth=LATE,
        seconds=4.0,
    )
    return replace(made, connections=0, probe=probe, seen_by=BEATING)


def hashes(held: HeldUp) -> bool:
    """Whether a stack is in the computing of a hash for passwords."""
    if any(CALLS.search(frame.text) for frame in held.stack[:NEAR]):
        return True
    files = [frame.file.replace("\\", "/") for frame in held.stack]
    return any(part in file for part in FILES for file in files)


fault = Fault(
    "hash-on-loop",
    "a burst of logins holds up everybody: passwords are hashed on the event loop; in a thread",
    ("akb#283",),
    "The event loop is late because its thread computes the hash of a password.",
    "Hashed in a thread, throughput or the median is better, or the loop is late no more. Where that cannot be done "
    "from outside, the call is made twice as long: throughput is worse.",
    screen,
)
