"""Memory that grows with every request and never stops growing."""

from itertools import pairwise

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown
from velodrome.model.diagnosis import AS_IT_IS, Cure, Evidence, Probe
from velodrome.model.symptoms import Symptoms

LEAST_BYTES = 64
"""That a request leaves behind: less is how memory is handed out."""
LEAST_LOADS = 3


def screen(seen: Symptoms) -> Screened:
    """Look whether memory grew in each of the last loads of the screens, which are alike."""
    # The last loads are of one connection and of as many as fill it, in turns: these are alike.
    loads = seen.memory[::-1][::2][:LEAST_LOADS][::-1]
    if len(loads) < LEAST_LOADS:
        return Unknown("its memory over the screens could not be seen")
    (requests, first), (all_requests, last) = loads[0], loads[-1]
    each = (last - first) / max(all_requests - requests, 1)
    said = f"memory grew by {(last - first) / 1e6:.3g} MB over {all_requests - requests} requests"
    evidence = Evidence("counter", said, {"memory": [list(one) for one in seen.memory]})
    rises = all(later[1] > before[1] for before, later in pairwise(loads))
    if not rises or each < LEAST_BYTES:
        return Absent(said, (evidence,))
    if not seen.setting.plain:
        return Unknown(f"{said}: what it is asked cannot be sent by hand")
    cure = Cure(
        "bound what is kept from request to request (a cache with a largest size, a list that is emptied); "
        "tracemalloc, compared before and after some thousand requests, names the line that allocates it",
        "what outlives its request",
    )
    probe = Probe(
        "grow",
        "8 loads alike, one after the other, after 3 to fill what fills",
        "that leave more memory in use",
        {"loaded": 1, "least": LEAST_BYTES},
        unprovoked={"loaded": 0},
        seconds=10.0,
        worth=0.5,
    )
    dose = Experiment(AS_IT_IS, 0, cure, proof="dose", probe=probe)
    return Suspect(0.7, f"{said}: {each:.3g} bytes each", (dose,), (evidence,), loss=0.2)


fault = Fault(
    "growth",
    "memory grows with requests until the process is killed: something outlives its request; bound it",
    ("field practice",),
    "Something of each request is kept for good, and not only until a cache is full.",
    "Of loads that are alike, and follow those that fill caches, each leaves more memory in use; without load none is.",
    screen,
)
