"""A password is hashed on the event loop: slow by intention, and all others wait until it is done."""

import re
from dataclasses import replace

from velodrome.diagnoses.blocking_call import each_s, experiments, stacks_of, worst_place
from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown
from velodrome.model.diagnosis import Probe
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
EACH = 0.5
"""Of the time that a request takes alone, the hash: from here on all requests hash, and one CPU gets no more done in
threads. Who gains are those that hash nothing."""
HASHING, LATE_S = 8, 0.05
"""Requests that hash at once, while others come that do not; these are late after two hashes, and so long at least."""
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
    hashing = [one for one in watched.held_up if hashes(one)]
    share = sum(one.ran_s for one in hashing) / watched.seconds
    said = f"the loop computes hashes of passwords for {share:.0%} of the time"
    if share < LEAST:
        return Absent(said)
    place, stacks = worst_place(hashing, lambda one: one.ran_s)
    worst = max(stacks, key=lambda one: one.ran_s)
    if not worst.named.own:
        return Unknown(f"{said}, outside of the app's own code")
    hash_s = each_s(seen, place, stacks)
    # With as many CPUs as hashes nothing but the others' latency can be better: that is the median, since most
    # requests hash nothing; the p99 is of those that do.
    metrics = ("rps", "p50_ms")
    made = experiments(seen, worst, hash_s, WHAT, metrics=metrics, least_connections=CONNECTIONS)
    if seen.setting.plain and seen.slope is not None and hash_s * seen.slope.alone.rps >= EACH:
        made = tuple(_of_others(one, hash_s) if one.proof == "cure" else one for one in made)
    return Suspect(
        min(0.9, 0.5 + share),
        f"{said}, at {place}",
        made,
        stacks_of(watched, [worst]),
        loss=min(share, 0.9),
    )


def _of_others(made: Experiment, hash_s: float) -> Experiment:
    """Return an experiment that counts what requests suffer that hash nothing."""
    late_s = max(2 * hash_s, LATE_S)
    about = (
        f"requests that hash nothing, for a path that the app does not have, while {HASHING} hash: late after "
        f"{1000 * late_s:.3g} ms"
    )
    probe = Probe(
        "bystander", about, "late", {"connections": HASHING, "late_s": late_s}, seconds=4.0, worth=0.3
    )
    return replace(made, connections=0, probe=probe)


def hashes(held: HeldUp) -> bool:
    """Whether a stack is in the computing of a hash for passwords."""
    if any(CALLS.search(one.text) for one in held.stack[:NEAR]):
        return True
    files = [one.file.replace("\\", "/") for one in held.stack]
    return any(part in file for part in FILES for file in files)


fault = Fault(
    "hash-on-loop",
    "a burst of logins holds up everybody: passwords are hashed on the event loop; in a thread",
    ("akb#283",),
    "The event loop is late because its thread computes the hash of a password.",
    "Hashed in a thread, throughput or the median is better, or requests that hash nothing are late no more. Where "
    "that cannot be done from outside, the call is made twice as long: throughput is worse.",
    screen,
)
