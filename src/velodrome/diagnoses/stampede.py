"""Identical requests that each do the work which is then kept: at first use, and each time it expires."""

from velodrome.diagnoses.fault import Counting, Fault, Screened, Unknown, counting
from velodrome.model.diagnosis import WORK_COUNTED, Cure, Probe, Treatment
from velodrome.model.symptoms import Setting, Symptoms

LEAST = 0.25


def look(setting: Setting) -> Probe:
    """Send a request that was never sent, many times at once."""
    return Probe(
        "stampede",
        "3 times 16 requests at once that are the same and new",
        "requests that do again what the first of them does",
        {"together": 1},
        unprovoked={"together": 0},
        seconds=1.5,
        seen_by=WORK_COUNTED,
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether they do the work together that is kept after the first."""
    probe = look(seen.setting)
    found = counting(
        seen,
        "stampede",
        probe,
        LEAST,
        none=Unknown(
            "nothing was seen that is kept by the query of a request or a number in its path, or that others do again "
            "when it has expired after 4 s at most: they do nothing that was seen and it computes little, or all is "
            "done for each request"
        ),
    )
    if not isinstance(found, Counting):
        return found
    cure = Cure(
        "one flight for each key: whoever comes meanwhile waits for its result, by a lock or a task for "
        "each key",
        "where the cache is filled",
        "if key not in cache: cache[key] = await work(key)",
        "async with locks[key]: if key not in cache: cache[key] = await work(key)",
    )
    single = Treatment("the same requests one behind the first", {"single-flight": True})
    return found.suspect(0.8, found.cured(single, cure), found.dose(cure), loss=0.3)


fault = Fault(
    "stampede",
    "a burst of cold requests does the same work as many times: one flight for each key",
    ("regluit#1265",),
    "Requests that come before the first has filled the cache find it empty.",
    "Of requests that are the same and come at once nearly all do"
    " the work; where they wait for the first, it alone does.",
    screen,
    look=look,
)
