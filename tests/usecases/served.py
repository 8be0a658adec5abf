"""An app that stands on a stack, for tests that ask it by themselves."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from velodrome.model.app import App
from velodrome.model.load import Closed, Limits, Link, Load
from velodrome.model.trial import Contestant, Session, Trial
from velodrome.run.lab import Lab
from velodrome.run.racing.plan import plan_session
from velodrome.run.racing.session import Booted, ImpossibleError, boot, refusal
from velodrome.usecases.bench import UNLIMITED


@contextmanager
def standing(
    app: App, contestant: Contestant, lab: Lab, limits: Limits = UNLIMITED, link: Link | None = None
) -> Iterator[Booted]:
    """Serve an app on a stack. Raises AppNotServedError, or AppAnswersWrongError with status and first bytes."""
    trial = Trial(
        app.path,
        "app",
        app.recipe,
        contestant,
        Load(Closed(1), duration_s=1.0),
        limits,
        block=0,
        link=link,
        app=app,
    )
    with ExitStack() as running:
        try:
            booted = boot(plan_session(Session((trial,)), lab), lab, running)
        except ImpossibleError as error:
            raise refusal(app, contestant.label, error.kind, error.reason, error.last_lines) from error
        yield booted
