"""A bench: one contestant, served, on which loads are measured one after the other.

    with Bench(trial, lab) as bench:
        bench.alone()
        probe, measured = bench.rate(300, demands)

It is booted for the first load, and anew when it died or did not come to rest after too much load.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

from velodrome.guest.recipe import Recipe
from velodrome.judge.load_figures import beyond_of, figures_of
from velodrome.judge.search.holding import (
    ALONE_S,
    DRAIN_S,
    FAILING,
    WARMUP_S,
    Backlog,
    Demands,
    OneByOne,
    Slope,
    Tried,
    enough_s,
    of_the_lab,
    of_the_moment,
    probe,
    share_failed,
    warmup_s,
    wrong_anyway,
)
from velodrome.model.app import App
from velodrome.model.errors import AppNotServedError, NoServerError, VelodromeError
from velodrome.model.load import INDEPENDENT, Arrivals, Closed, Limits, Link, Load, Open, Schedule
from velodrome.model.measurement import Failed, FailureKind, Measurement, Purpose
from velodrome.model.search import Probe, Sample
from velodrome.model.trial import Contestant, Session, Trial
from velodrome.run.drivers.driver import LoadEvent, OnEvent
from velodrome.run.lab import Lab
from velodrome.run.link import enter
from velodrome.run.racing.opening import host_beside
from velodrome.run.racing.plan import plan_session
from velodrome.run.racing.session import (
    Booted,
    ImpossibleError,
    Pasted,
    boot,
    measure,
    of_label,
    refusal,
    warning,
)
from velodrome.run.racing.store import now
from velodrome.usecases.recording import NotStoredError, Record


def not_served(app: App, label: str, error: NoServerError) -> AppNotServedError:
    """Return what is raised where a bench has no server, and it is the app's fault."""
    return AppNotServedError(
        app.path, label, *of_label(label, error.reason, error.last_lines), tried=error.tried
    )


QUESTION = "app"
"""Name of the question where there is nothing but one app."""
UNLIMITED = Limits()

COLD_S = 1.5
"""Of warm-up on top, of the first open loop after a boot: its caches are empty and its threads are not started."""
RECOVERY_REQUESTS = 3
"""So many in a row, on one connection."""
AS_FAST = 3.0
"""An answer takes no longer than so many times what it took before any load."""
LEAST_MS = 1.0
RECOVERY_PAUSE_S = 0.1


def wait_for_recovery(
    ask: Callable[[float], tuple[int, float] | None], alone_ms: float, patience_s: float
) -> bool:
    """Return whether `RECOVERY_REQUESTS` answers in a row come about as fast as one alone did, within the patience.

    Where that is not known (0), right answers are enough. `ask` makes them, for so many seconds at most, and returns
    how many were right and what the slowest took, milliseconds; None: there is no server any more.
    """
    until = time.monotonic() + patience_s
    while (left_s := until - time.monotonic()) > 0:
        found = ask(left_s)
        if found is None:
            return False
        right, slowest_ms = found
        if right == RECOVERY_REQUESTS and (not alone_ms or slowest_ms <= max(AS_FAST * alone_ms, LEAST_MS)):
            return True
        time.sleep(RECOVERY_PAUSE_S)
    return False


SECONDS = 3.0
"""Of each trial, by default."""
WAITS, MOST_WARMUP_S = 2.0, 2.0
"""Of an open loop on top, so many times what an answer takes alone: its connections are opened in this time."""
WARM_CONNECTIONS, WARM_S = 16, 1.5
"""Of what warms a server up that was started anew."""
CONNECTIONS = 1000
"""An open loop may open so many, or more where the service's own wait needs them."""
SPARE = 1.5
PATIENCE_S = 3.0
"""Until a server has done with too much. Then it is better served anew: a server that goes on with requests whose
clients have left may be busy for long."""
AGAIN, PAUSE_S = 2, 1.0
"""A trial that the machine spoilt at that moment is made so often again, each time a little later."""


def trial_of(
    study: str,
    recipe: Recipe,
    contestant: Contestant,
    limits: Limits,
    *,
    app: App | None = None,
    python: str = "",
    link: Link | None = None,
) -> Trial:
    """Return what a bench is made of; its load is set each time."""
    question = recipe.name.replace("/", "-")
    load = Load(Closed(1), duration_s=1.0)
    return Trial(
        study, question, recipe, contestant, load, limits, block=0, python=python, app=app, link=link
    )


def alone_load(recipe: Recipe, seconds: float = ALONE_S) -> Load:
    """Return the load of one connection: long enough for some responses of a recipe that waits."""
    wait_s = recipe.wait_ms / 1000
    return Load(Closed(1), 3 * wait_s if wait_s > seconds / 2 else seconds, 0.1, drain_s=_drain_s(recipe))


def closed_load(recipe: Recipe, connections: int, seconds: float) -> Load:
    """Return the load of a closed loop."""
    return Load(Closed(connections), seconds, WARMUP_S, drain_s=_drain_s(recipe))


def _drain_s(recipe: Recipe) -> float:
    return DRAIN_S + recipe.wait_ms / 1000


class Bench:
    """One contestant under one load after the other; loads of the trial it is made of are not looked at."""

    def __init__(
        self,
        trial: Trial,
        lab: Lab | None,
        seconds: float = SECONDS,
        alone_ms: float = 0.0,
        *,
        warn: Callable[[str], None] | None = None,
        record: Record | None = None,
        arrivals: Arrivals = INDEPENDENT,
        pasted: Pasted | None = None,
    ) -> None:
        """`alone_ms` is what an answer takes alone, where that is known; else ask `alone` first.

        `warn` gets at the first boot which requests of a mix are answered wrongly; `record` keeps each load, and is
        read first for those that it has (`Record.replay`). Without a lab those are all there are: any other raises
        NotStoredError. With `pasted` servers are started by the lines that it returns.
        """
        self.trial, self.seconds, self.arrivals = trial, seconds, arrivals
        self._lab = lab
        self._running = ExitStack()
        self._booted: Booted | None = None
        self._number = 0
        self._alone_ms = alone_ms
        self._alone = OneByOne()
        self._surely = False
        """Whether it got requests one after the other until that shows how much is answered wrongly at any rate."""
        self._warn, self._pasted = warn, pasted
        self._cold = True
        """Whether no open loop has warmed the server up yet."""
        self._record = record or Record()
        self._boot = 0
        """Number of the server that runs, in the record."""
        self.boots = 0

    @property
    def trials(self) -> int:
        """How many loads it has measured."""
        return self._number

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the server; the next load boots another."""
        self._booted, self._cold = None, True
        self._running.close()

    def alone(self, seconds: float = ALONE_S) -> Measurement:
        """Measure one connection: what a request takes when nobody is before it.

        Raises NoServerError; AppAnswersWrongError where an app answers, and not as it is to.
        """
        self._record.ask()
        found = self._one_by_one(alone_load(self.trial.recipe, seconds))
        if isinstance(found, Failed) or not found.load.answers or not found.load.sent.mean:
            raise NoServerError(self.trial.contestant.label, why_nothing(found), found.last_lines)
        self._alone_ms = found.load.sent.mean
        return found

    def warm(self, purpose: Purpose) -> None:
        """Start a server anew and ask it for a while, so that no candidate is measured colder than another.

        `purpose` is what it is started for. Raises NoServerError or AppAnswersWrongError where it does not start.
        """
        self.stop()
        self._record.ask()
        load = Load(Closed(WARM_CONNECTIONS), WARM_S, 0.0, drain_s=_drain_s(self.trial.recipe))
        trial = self._record.number(replace(self.trial, load=load))
        self._serving(trial, purpose)
        # What does not bear that is shown so by the load that follows.
        with suppress(NoServerError):
            self._measure(load, Purpose.WARM_UP)

    def wrong_anyway(self, demands: Demands) -> str:
        """Return which share of answers is wrong at any rate, and what to do; empty: not so much that it is known."""
        return wrong_anyway(self._alone, demands.every)

    def rate(
        self, rate: float, demands: Demands, seconds: float | None = None, purpose: Purpose = Purpose.RATE
    ) -> tuple[Probe, Measurement | None]:
        """Measure an open loop, given up early where the backlog rises.

        Raises NoServerError, or AppAnswersWrongError where it had to be booted again and does not answer as it did.
        """
        watched = Backlog(rate)

        def on_event(event: LoadEvent) -> bool:
            if event.kind == "started":
                watched.begin()
            return event.kind != "tick" or watched.goes_on(event.facts)

        load = self._open_load(
            Open(rate, self.arrivals, self._room(rate)), demands.seconds(rate, seconds or self.seconds)
        )
        self._record.ask()
        found = self._measure(load, purpose, on_event, watched)
        if isinstance(found, Failed):
            boot = found.step.boot if found.step is not None else 0
            return Probe(rate, False, self._died(found), overdone=True, boot=boot), None
        if not (probed := of_rate(rate, found, demands, self._alone)).held:
            self._recover()
        if not probed.overdone and self._is_in_doubt(found, demands):
            self._ask_surely()
            probed = of_rate(rate, found, demands, self._alone)
        return probed, found

    def run_to_end(self, pace: Open | Schedule, seconds: float, purpose: Purpose) -> Measurement | Failed:
        """Measure an open loop to its end, whatever comes of it: a backlog that grows is what it is to show.

        The server is not checked for having recovered. Raises as `rate` does.
        """
        most = pace.rate if isinstance(pace, Open) else pace.top
        load = self._open_load(replace(pace, connections=self._room(most)), seconds)
        self._record.ask()
        found = self._measure(load, purpose)
        if isinstance(found, Failed):
            self.stop()
        return found

    def _open_load(self, pace: Open | Schedule, seconds: float) -> Load:
        """Return the load of an open loop, which warms a server up longer that was booted for it."""
        cold_s = COLD_S if self._cold else 0.0
        self._cold = False
        return Load(
            pace,
            duration_s=seconds,
            warmup_s=warmup_s(seconds) + cold_s + min(WAITS * self._alone_ms / 1000, MOST_WARMUP_S),
            drain_s=_drain_s(self.trial.recipe),
        )

    def _room(self, rate: float) -> int:
        """Return how many connections an open loop may open at a rate."""
        return max(CONNECTIONS, round(SPARE * rate * self.trial.recipe.wait_ms / 1000))

    def connections(
        self, count: int, seconds: float | None = None, purpose: Purpose = Purpose.CLOSED
    ) -> tuple[Sample, Measurement | None]:
        """Measure a closed loop. Raises as `rate` does."""
        self._record.ask()
        found = self._measure(closed_load(self.trial.recipe, count, seconds or self.seconds), purpose)
        if isinstance(found, Failed):
            return Sample(count, 0.0, self._died(found)), None
        flag = of_the_lab(found) or of_the_moment(found)
        return Sample(count, found.load.throughput_rps, flag.sentence if flag else ""), found

    def _one_by_one(self, load: Load) -> Measurement | Failed:
        found = self._measure(load, Purpose.ALONE)
        if isinstance(found, Measurement):
            self._alone = self._alone.and_of(found.load.outcomes)
        return found

    def _is_in_doubt(self, found: Measurement, demands: Demands) -> bool:
        """Whether a rate that was kept up with breaks by wrong answers, and it is not known whether all others do."""
        failed = share_failed(found.load.outcomes, demands.every)
        return not self._surely and failed > FAILING and not self.wrong_anyway(demands)

    def _ask_surely(self) -> None:
        """Send enough requests one after the other to show how much is answered wrongly at any rate."""
        self._surely = True
        self._one_by_one(replace(alone_load(self.trial.recipe), duration_s=enough_s(self._alone_ms, ALONE_S)))

    def _measure(
        self, load: Load, purpose: Purpose, also: OnEvent | None = None, watched: Backlog | None = None
    ) -> Measurement | Failed:
        """Return what is stored of a load, or measure it, again where the machine had something else to do.

        Raises as `rate` does.
        """
        if (stored := self._record.replayed(load, purpose, AGAIN + 1)) is not None:
            self._cold = True  # the server that it ran on is gone
            return stored
        for _ in range(AGAIN + 1):
            # The arrivals of a block are the same for every candidate (`plan.seed_of`): the first load of a rate
            # meets the same arrivals on each of them.
            trial = self._record.number(replace(self.trial, load=load))
            booted, lab = self._serving(trial, purpose)
            self._number += 1
            with host_beside(booted.placed):
                found = measure(trial, booted, lab, also)
            rising = watched.rising.per_s if watched is not None and watched.rising is not None else None
            backlog = watched.slope if watched is not None else None
            found = self._record.keep(found, self._boot, purpose, rising, backlog)
            if booted.server.exit() is not None:
                self.stop()
            if isinstance(found, Failed):
                if found.failure is FailureKind.DIED:
                    return found
                # The load itself came to nothing; a server that is served anew may bear it.
                self.stop()
            elif of_the_moment(found) is None:
                return found
            time.sleep(PAUSE_S)
        if isinstance(found, Failed):
            raise NoServerError(trial.contestant.label, found.reason, found.last_lines)
        return found

    def _serving(self, trial: Trial, purpose: Purpose) -> tuple[Booted, Lab]:
        """Return the server, booted now where none runs, and its lab. Raises NotStoredError without one."""
        lab = self._lab
        if lab is None:
            raise NotStoredError(self._record.ended_by)
        if self._booted is None:
            self._boot = self._record.next_boot()
            try:
                plan = plan_session(Session((self.trial,)), lab)
                self._booted = boot(plan, lab, self._running, self._pasted)
            except ImpossibleError as why:
                self._running.close()
                failed = Failed(trial, now(), why.kind, why.reason, why.last_lines)
                self._record.keep(failed, self._boot, purpose)
                label, app = self.trial.contestant.label, self.trial.app
                if app is not None and why.kind is FailureKind.WRONG_ANSWER:
                    raise refusal(app, label, why.kind, why.reason, why.last_lines) from why
                raise NoServerError(label, why.reason, why.last_lines, tried=not why.kind.is_missing) from why
            if self._warn is not None and self._booted.wrong and not self.boots:
                self._warn(warning(self.trial.contestant.label, self._booted.wrong))
            self.boots += 1
        return self._booted, lab

    def _died(self, failed: Failed) -> str:
        self.stop()
        return failed.reason

    def _recover(self) -> None:
        booted, lab = self._booted, self._lab
        if booted is None or lab is None:
            return
        if not wait_for_recovery(lambda left_s: _few(booted, lab, left_s), self._alone_ms, PATIENCE_S):
            self.stop()


def _few(booted: Booted, lab: Lab, left_s: float) -> tuple[int, float] | None:
    """Send a few requests on one connection; return right answers and what the slowest took, ms, if it serves at
    all."""
    if booted.server.exit() is not None:
        return None
    until = time.monotonic() + left_s
    few = Load(
        Closed(1), duration_s=PATIENCE_S, timeout_s=PATIENCE_S, drain_s=0.1, requests=RECOVERY_REQUESTS
    )
    try:
        with enter(booted.site.client):
            driver = lab.driver(few.driver, booted.placed, 1)
            facts = driver.run(few, booted.target, lambda _: time.monotonic() < until)
    except VelodromeError:
        return None
    return facts.ok, facts.sent.max or 0.0


def of_rate(rate: float, found: Measurement, demands: Demands, alone: OneByOne) -> Probe:
    """Return whether a rate held, from what is stored of its load; `alone`: requests sent one after the other."""
    facts, pace, step = found.load, found.trial.load.pace, found.step
    boot = step.boot if step is not None else 0
    rising = backlog = None
    if step is not None and step.rising_per_s is not None:
        rising = Slope(step.rising_per_s, 0.0)
    if step is not None and step.backlog_per_s is not None:
        backlog = Slope(step.backlog_per_s, step.backlog_error_per_s or 0.0)
    tried = Tried(
        rate,
        facts.outcomes,
        facts.ended_rps,
        figures_of(facts, open_loop=True),
        rising,
        alone,
        seconds=facts.duration_s,
        backlog=backlog,
        beyond=beyond_of(facts),
        boot=boot,
        scatter=pace.scatter(facts.duration_s) if isinstance(pace, Open) else 0.0,
    )
    probed = probe(tried, demands)
    # What held although others took CPU holds without them, and what is wrong at any rate is not wrong because of them.
    flag = of_the_lab(found) or (None if probed.held or probed.everywhere else of_the_moment(found))
    if flag is None:
        return probed
    return Probe(rate, None, spoilt=flag.sentence, boot=boot, seconds=facts.duration_s)


def why_nothing(found: Measurement | Failed) -> str:
    """Return why a load that should show what an answer takes shows nothing."""
    if isinstance(found, Failed):
        return found.reason
    detail = f": {found.load.examples[0]}" if found.load.examples else ""
    return f"nothing was answered right{detail}"
