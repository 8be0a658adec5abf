"""Requests in flight that are lost when the server is stopped, as it is at every deployment."""

from dataclasses import replace

from velodrome.diagnoses.fault import Absent, Counting, Fault, Screened, counting, losing
from velodrome.model.diagnosis import Cure, Probe
from velodrome.model.symptoms import Setting, Symptoms

LEAST = 0.05


def look(setting: Setting) -> Probe:
    """Stop the server under load."""
    probe = losing("the server gets the signal to stop (SIGTERM)", "stops", worth=2 * LEAST, ends=True)
    return replace(probe, settings={**probe.settings, "read": 1}) if setting.awaits else probe


def screen(seen: Symptoms) -> Screened:
    """Look whether requests in flight are answered."""
    probe = look(seen.setting)
    found = counting(
        seen,
        "lost-at-stop",
        probe,
        LEAST,
        none=Absent("requests are too short to be in flight at the signal to stop"),
    )
    if not isinstance(found, Counting):
        return found
    cure = Cure(
        "answer what is in flight before the end: no handler of SIGTERM of the app's own that exits, a server that "
        "ends in order, and more time for that than the longest request takes",
        "where SIGTERM is handled",
    )
    return found.suspect(0.9, found.dose(cure), loss=0.2)


fault = Fault(
    "lost-at-stop",
    "errors at every deployment: SIGTERM ends the server before requests in flight are answered; end in order",
    ("field practice",),
    "The server, or a handler of SIGTERM of the app's own, ends without waiting for what is in flight.",
    "Of requests in flight at SIGTERM some are never answered; without the signal all are.",
    screen,
    look=look,
)
