"""Responses that are compressed while the loop waits: tens of milliseconds for a large one, at the usual level 9."""

from velodrome.diagnoses.fault import Doing, Experiment, Fault, Screened, doing
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms


def screen(seen: Symptoms) -> Screened:
    """Look for compression in the stacks of threads that are not idle."""
    found = doing(seen, "compression", "compression", computes=True)
    if not isinstance(found, Doing):
        return found
    own = found.called if seen.compressed else None
    cure = Cure(
        "leave compression to the proxy; or compress less: a lower level, and no small responses",
        own.place if own else "the app's middleware",
        own.text if own else "GZipMiddleware(…): level 9, from 500 bytes on",
        "no compression behind a proxy that compresses; else compresslevel=1",
    )
    treatment = Treatment("no compression, as if no client accepted it", {"compression": "off"})
    if seen.compressed:  # perhaps by code of the app's own
        treatment = Treatment("compression that only stores (level 0)", {"compression": "stored"})
    metrics = ("rps", "cpu_us")
    return found.suspect(Experiment(treatment, found.connections, cure, metrics))


fault = Fault(
    "gzip-on-loop",
    "large responses hold up all others: they are compressed on the event loop; let the proxy do that",
    ("starlette#3410",),
    "Requests wait while the response to another one is compressed.",
    "Answered as if no client accepted compression, or with bodies that are stored and not deflated, throughput or CPU "
    "time per request is better.",
    screen,
)
