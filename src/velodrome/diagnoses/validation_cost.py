"""FastAPI validates what a handler returns once more, and serializes it, before it is encoded."""

from velodrome.diagnoses.fault import Doing, Experiment, Fault, Screened, doing
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms


def screen(seen: Symptoms) -> Screened:
    """Look for the validation of responses in the stacks of threads that are not idle."""
    found = doing(seen, "validation", "the validation of responses", computes=True)
    if not isinstance(found, Doing):
        return found
    cure = Cure(
        "where the handler's data is known to be right, return a response, which is not validated again",
        "the handler that returns much",
        "return rows  # validated against response_model, and serialized",
        "return JSONResponse(rows)",
    )
    off = Treatment("no validation of responses that are the same without", {"validation": "off"})
    # Of what a handler returns as objects, and of FastAPI that serializes as text, nothing is the same without.
    twice = Treatment("responses validated twice", {"validation": "twice"})
    metrics, connections = ("rps", "cpu_us"), found.connections
    return found.suspect(
        Experiment(off, connections, cure, metrics),
        Experiment(twice, connections, cure, metrics, proof="dose"),
    )


fault = Fault(
    "validation-cost",
    "CPU time grows with the response: FastAPI validates it again; return a Response",
    ("fastapi#2615", "airflow#59082"),
    "Requests wait while responses are validated.",
    "Without validation, where the response is the same, throughput or CPU time per request is better. Elsewhere "
    "responses are validated twice: it is worse.",
    screen,
)
