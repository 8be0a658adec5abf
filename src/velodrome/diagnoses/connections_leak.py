"""Connections or files that are opened for a request and never closed."""

from itertools import pairwise

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown
from velodrome.model.diagnosis import AS_IT_IS, Cure, Evidence, Probe
from velodrome.model.symptoms import Symptoms

LEAST_EACH = 0.01
"""Descriptors that a request leaves open, from which on it is looked into."""
LEAST_LOADS = 3


def screen(seen: Symptoms) -> Screened:
    """Look whether open descriptors rose with each of the last loads of the screens."""
    # The last loads are of one connection and of as many as fill it, in turns: these are alike.
    loads = seen.descriptors[::-1][::2][:LEAST_LOADS][::-1]
    if len(loads) < LEAST_LOADS:
        return Unknown("its open descriptors over the screens could not be seen")
    (requests, first), (all_requests, last) = loads[0], loads[-1]
    said = f"{last - first:.0f} more descriptors open after {all_requests - requests} requests"
    evidence = Evidence("counter", said, {"descriptors": [list(one) for one in seen.descriptors]})
    rises = all(later[1] > before[1] for before, later in pairwise(loads))
    if not rises or (last - first) / max(all_requests - requests, 1) < LEAST_EACH:
        return Absent(said, (evidence,))
    if not seen.setting.plain:
        return Unknown(f"{said}: what it is asked cannot be sent by hand")
    cure = Cure(
        "close what a request opens when it ends (a `with` block, or a client or pool that all requests share); under "
        "ASGI a Django database connection that is kept (CONN_MAX_AGE) is one for each request",
        "where the connection or file is opened",
    )
    probe = Probe(
        "grow",
        "8 loads alike, one after the other, after 3 to fill what fills",
        "that leave more descriptors open",
        {"loaded": 1, "descriptors": 1, "least": LEAST_EACH},
        unprovoked={"loaded": 0},
        seconds=10.0,
        worth=0.5,
    )
    dose = Experiment(AS_IT_IS, 0, cure, proof="dose", probe=probe)
    return Suspect(0.9, said, (dose,), (evidence,), loss=0.5)


fault = Fault(
    "connections-leak",
    "each request leaves a connection or file open, until there are no descriptors left: close it, or share it",
    ("gyrinx#2083",),
    "What a request opens is never closed.",
    "Of loads that are alike each leaves more descriptors open; without load none is opened.",
    screen,
)
