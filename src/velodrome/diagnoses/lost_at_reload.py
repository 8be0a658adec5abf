"""Requests that are lost while the server replaces its workers on SIGHUP, as it does at every new version."""

from velodrome.diagnoses.fault import (
    LEAST_LOST,
    Absent,
    Counting,
    Fault,
    Screened,
    Unknown,
    counting,
    losing,
)
from velodrome.model.diagnosis import Cure, Probe
from velodrome.model.symptoms import Setting, Symptoms


def look(setting: Setting) -> Probe | None:
    """Reload the server under load, where it can reload."""
    return losing("the server gets the signal to reload (SIGHUP)", "reloads") if setting.reloads else None


def screen(seen: Symptoms) -> Screened:
    """Look whether requests are answered while it reloads."""
    probe = look(seen.setting)
    if probe is None:
        return Absent("it does not reload on SIGHUP")
    none = Unknown("no request was sent while it reloaded")
    found = counting(seen, "lost-at-reload", probe, LEAST_LOST, none)
    if not isinstance(found, Counting):
        return found
    cure = Cure(
        "have old workers answer what they took before they end (no handler of SIGTERM of the app's own that exits, "
        "more time than the longest request takes), or start a second server and move the proxy to it",
        "how a new version is deployed",
        "SIGHUP under load",
    )
    return found.suspect(0.9, found.dose(cure), loss=0.1)


fault = Fault(
    "lost-at-reload",
    "errors at every reload: SIGHUP ends workers before what they took is answered; end in order",
    ("field practice",),
    "Workers end at a reload without waiting for what is in flight, or nobody listens meanwhile.",
    "Under an open loop requests are lost while the server reloads; without the reload none is.",
    screen,
    look=look,
)
