"""An app that stands: booted on one stack as a race boots it, right answers given, held until the block is left.

with standing(app, Contestant("gunicorn-gthread", {"workers": 2}), lab) as booted:
    booted.server.url, booted.target
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from velodrome.model.app import App
from velodrome.model.load import Closed, Limits, Link, Load
from velodrome.model.trial import Contestant, Trial
from velodrome.run.lab import Lab
from velodrome.run.racing.boot import Booted, ImpossibleError, boot
from velodrome.track.refusing import refused

QUESTION = "app"
"""Name of the question where nothing but one app is asked about."""
ALONE = Load(Closed(1), duration_s=1.0)
UNLIMITED = Limits()


@contextmanager
def standing(
    app: App, contestant: Contestant, lab: Lab, limits: Limits = UNLIMITED, link: Link | None = None
) -> Iterator[Booted]:
    """Serve an app on a stack. Raises AppNotServedError, or AppAnswersWrongError with status and first bytes."""
    trial = Trial(
        app.path,
        QUESTION,
        app.recipe,
        contestant,
        ALONE,
        limits,
        block=0,
        link=link,
        app=app,
    )
    with ExitStack() as running:
        try:
            booted = boot(trial, lab, running)
        except ImpossibleError as error:
            raise refused(app, contestant.label, error.kind, error.reason, error.last_lines) from error
        yield booted


def warning(label: str, wrong: str) -> str:
    """Return the sentence for an app that answers not all it is asked rightly; `wrong` names the worst of it."""
    return (
        f"warning: on {label} not all that is asked is answered right: {wrong}. It is measured all the same and these "
        "answers count as errors; correct the app or the request, or leave it out"
    )
