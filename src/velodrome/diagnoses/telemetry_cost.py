"""Traces of every request: OpenTelemetry's or Sentry's spans cost more than what they measure."""

from velodrome.diagnoses.fault import Doing, Experiment, Fault, Screened, doing
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms


def screen(seen: Symptoms) -> Screened:
    """Look for tracing in the stacks of threads that are not idle."""
    found = doing(seen, "telemetry", "OpenTelemetry or Sentry", computes=True)
    if not isinstance(found, Doing):
        return found
    cure = Cure(
        "trace a share of the requests",
        "the server's environment, or where tracing is set up",
        "every request is traced",
        "OTEL_TRACES_SAMPLER=parentbased_traceidratio OTEL_TRACES_SAMPLER_ARG=0.05; "
        "sentry_sdk.init(traces_sample_rate=0.05)",
    )
    off = Treatment("no request traced", {"telemetry": "off"})
    metrics = ("rps", "cpu_us")
    return found.suspect(Experiment(off, found.connections, cure, metrics))


fault = Fault(
    "telemetry-cost",
    "each request is traced, which costs more than to answer it: sample",
    ("lite-bootstrap#187", "sentry-python#4660"),
    "Requests cost the spans that are recorded and exported of them.",
    "With no request sampled, throughput or CPU time per request is better.",
    screen,
)
