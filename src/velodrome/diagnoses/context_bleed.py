"""Data of one request in the answer of another: something that belongs to a request is kept where all see it."""

from velodrome.diagnoses.fault import (
    Absent,
    Experiment,
    Fault,
    Screened,
    Suspect,
    Unknown,
    counted,
    met,
    said,
)
from velodrome.model.diagnosis import AS_IT_IS, Cure, Probe
from velodrome.model.symptoms import Setting, Symptoms

AT_ONCE = 32


def look(setting: Setting) -> Probe:
    """Give requests that are in flight together a name each."""
    return Probe(
        "canary",
        f"{AT_ONCE} requests in flight, each with a name of its own in its headers",
        "mixed up",
        {"connections": AT_ONCE},
        unprovoked={"connections": 1},
        seconds=1.5,
        worth=0.01,
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether an answer holds the name of another request."""
    probe = look(seen.setting)
    found = met(seen, "context-bleed")
    if isinstance(found, Unknown):
        return found
    if not found.of:
        return Unknown(
            "no answer holds anything of the headers of its request (X-Request-ID, X-Correlation-ID)"
        )
    evidence = counted(found, probe)
    if not found.hits:
        return Absent(said(found, probe), evidence)
    cure = Cure(
        "keep what belongs to a request in a ContextVar that is set in that request, or pass it on; not in a global, "
        "a thread local or an object that requests share",
        "where the request's data is kept",
    )
    dose = Experiment(AS_IT_IS, 0, cure, proof="dose", probe=probe)
    return Suspect(0.95, said(found, probe), (dose,), evidence, loss=0.9)


fault = Fault(
    "context-bleed",
    "data of one request in the answer of another: a global or thread local in place of a ContextVar",
    ("uvicorn#2167", "cpython#140947"),
    "Requests in flight together share what is to belong to one of them.",
    "Each request has a name of its own in its headers: with many in flight answers hold names of others, with one at "
    "a time none does.",
    screen,
    look=look,
)
