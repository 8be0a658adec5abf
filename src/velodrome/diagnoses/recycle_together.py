"""Workers that are replaced all at once, since all of them count the same number of requests."""

from dataclasses import replace

from velodrome.diagnoses.fault import Absent, Counting, Fault, Screened, Unknown, counting
from velodrome.model.diagnosis import Cure, Probe, Treatment
from velodrome.model.symptoms import Setting, Symptoms

LOOKED, TOGETHER = 0.5, 0.1
"""Of a worker's life: those that are replaced within it of each other. The workers that the screens meet have drifted
apart already, so that whether any are replaced is about all that shows."""
LOAD_S, LONGEST_S = 5.0, 40.0
"""Of load; where a worker is known to be replaced after so many requests, until as many are as there are, at most."""
DRIFTS = 2.5
"""Times its life without a jitter that a worker may live with one as large, and not all get as many requests."""


def look(setting: Setting) -> Probe | None:
    """Load several workers, and see when they are replaced."""
    return _probe(setting, LOOKED) if setting.workers > 1 else None


def _lives_for(setting: Setting) -> int:
    """Return after how many requests a worker is replaced; 0: that is not known."""
    return int(setting.knobs.get("max_requests", 0))


def _probe(setting: Setting, within: float, lives_s: float = 0.0) -> Probe:
    longest_s = max(LONGEST_S, DRIFTS * lives_s) if _lives_for(setting) else 0.0
    return Probe(
        "recycle",
        f"a closed loop of 8 connections for {'some time' if longest_s else '5 s'} to {setting.workers} workers",
        "workers replaced together with half of the others",
        {"workers": setting.workers, "within": within, "longest_s": longest_s},
        seconds=max(LOAD_S, 1.5 * lives_s) + 0.6,
        worth=0.25,
        warm=False,
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether workers are replaced together."""
    probe = look(seen.setting)
    if probe is None:
        return Absent("one worker")
    found = counting(
        seen,
        "recycle-together",
        probe,
        none=_unseen(seen.setting),
    )
    if not isinstance(found, Counting):
        return found
    number = str(_lives_for(seen.setting) or "N")
    cure = Cure(
        "let each worker live for another number of requests",
        "the server's command line",
        f"--max-requests {number}",
        f"--max-requests {number} --max-requests-jitter {number} (uvicorn: --limit-max-requests-jitter {number})",
    )
    jitter = Treatment("max_requests with a jitter as large", {"jitter": True})
    lives_s = found.met.figures.get("lives_s", 0.0)
    cured = replace(found.cured(jitter, cure), probe=_probe(seen.setting, TOGETHER, lives_s))
    return found.suspect(0.8, cured, loss=0.1)


def _unseen(setting: Setting) -> Absent | Unknown:
    if lives_for := _lives_for(setting):
        return Unknown(
            f"each worker is replaced after {lives_for} requests, which {LONGEST_S:.0f} s of load were too few for: "
            "examine it with a smaller max_requests"
        )
    return Absent("hardly any worker was replaced under load: it has no small max_requests")


def glance(seen: Symptoms) -> str:
    """Look for as many workers that were replaced in one load as there are."""
    counted = seen.counted
    if counted is None or seen.workers < 2 or counted.replaced < seen.workers:
        return ""
    return f"{counted.replaced} processes of a server of {seen.workers} workers were replaced within one load"


fault = Fault(
    "recycle-together",
    "dips at regular times: max_requests replaces all workers at once; a jitter",
    ("gunicorn#3427",),
    "All workers count to the same max_requests, under load that is spread evenly, and end together.",
    "Half of the workers are replaced within a tenth of their life of each other; with a jitter far fewer are.",
    screen,
    look=look,
    glance=glance,
)
