"""Data of one request in the answer of another: something that belongs to a request is kept where all see it."""

from velodrome.diagnoses.fault import Counting, Fault, Screened, Unknown, counting
from velodrome.model.diagnosis import Cure, Probe
from velodrome.model.symptoms import Setting, Symptoms

AT_ONCE = 32


def look(setting: Setting) -> Probe:
    """Give requests that are in flight together a name each."""
    return Probe(
        "canary",
        f"{AT_ONCE} requests in flight, each with a name of its own",
        "mixed up",
        {"connections": AT_ONCE},
        unprovoked={"connections": 1},
        seconds=1.5,
        worth=0.01,
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether an answer holds the name of another request."""
    probe = look(seen.setting)
    found = counting(
        seen,
        "context-bleed",
        probe,
        none=Unknown(
            "no answer holds anything of the headers of its request (X-Request-ID, X-Correlation-ID, and those given "
            "with it) or of its query"
        ),
    )
    if not isinstance(found, Counting):
        return found
    cure = Cure(
        "keep what belongs to a request in a ContextVar that is set in that request, or pass it on; not in a global, "
        "a thread local or an object that requests share",
        "where the request's data is kept",
    )
    return found.suspect(0.95, found.dose(cure), loss=0.9)


fault = Fault(
    "context-bleed",
    "data of one request in the answer of another: a global or thread local in place of a ContextVar",
    ("uvicorn#2167", "cpython#140947"),
    "Requests in flight together share what is to belong to one of them.",
    "Each request has a name of its own in its headers, or its query: with many in flight answers hold names of "
    "others, with one at a time none does.",
    screen,
    look=look,
)
