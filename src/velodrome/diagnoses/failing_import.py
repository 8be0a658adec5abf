"""An import that fails in each request: what is not there is searched for in every folder of `sys.path`, each time."""

import re

from velodrome.diagnoses.fault import Doing, Experiment, Fault, Screened, doing
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms

STATEMENT = re.compile(r"\b(?:import|from)\s+(?P<module>[A-Za-z_][\w.]*)")


def screen(seen: Symptoms) -> Screened:
    """Look for searches for modules in the stacks of threads that are not idle."""
    found = doing(seen, "importing", "the search for modules that are to be imported", computes=True)
    if not isinstance(found, Doing):
        return found
    text = found.called.text if found.called else ""
    statement = STATEMENT.search(text)
    module = statement["module"] if statement else "it"
    cure = Cure(
        "import it once, when the app starts, and keep whether that worked; or install what is missing",
        found.where("where it is imported"),
        text or "try: import it  # in the handler",
        f"try: import {module}; except ImportError: {module.split('.')[0]} = None  # at the top of the module",
    )
    once = Treatment("modules that are not there are not searched for again", {"failing-imports": True})
    metrics = ("rps", "cpu_us")
    return found.suspect(Experiment(once, found.connections, cure, metrics))


fault = Fault(
    "failing-import",
    "each request tries to import what is not installed, which is searched for each time: try it once",
    ("httpcore#1103", "mcp-context-forge#1761"),
    "Requests wait while every folder of sys.path is searched for a module that is not there.",
    "With modules that were not found kept as such, throughput or CPU time per request is better.",
    screen,
)
