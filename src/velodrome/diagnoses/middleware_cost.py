"""Starlette's BaseHTTPMiddleware runs the app in another task and hands the response over in streams, once for each."""

from velodrome.diagnoses.fault import Doing, Experiment, Fault, Screened, doing
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms


def screen(seen: Symptoms) -> Screened:
    """Look for BaseHTTPMiddleware's own work in the stacks of threads that are not idle."""
    found = doing(seen, "base-middleware", "the work of BaseHTTPMiddleware", computes=True)
    if not isinstance(found, Doing):
        return found
    cure = Cure(
        "write the middleware as plain ASGI",
        "the app's middleware",
        "class Timing(BaseHTTPMiddleware), or @app.middleware('http')",
        "class Timing: async def __call__(self, scope, receive, send): … await self.app(scope, receive, send)",
    )
    light = Treatment("BaseHTTPMiddleware in one task", {"base-middleware": "one-task"})
    metrics = ("rps", "cpu_us")
    return found.suspect(Experiment(light, found.connections, cure, metrics))


fault = Fault(
    "middleware-cost",
    "middleware costs more than the endpoint: BaseHTTPMiddleware starts a task for each request; plain ASGI",
    ("hindsight#4235",),
    "Requests cost the tasks and streams that BaseHTTPMiddleware makes for each.",
    "With BaseHTTPMiddleware calling the app in its own task, throughput or CPU time per request is better.",
    screen,
)
