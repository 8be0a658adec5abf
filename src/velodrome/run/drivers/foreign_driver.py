"""A foreign load generator as a driver: found, asked in its dialect, warmed up, run, and believed only so far."""

import math
import os
from collections.abc import Sequence
from dataclasses import replace

from velodrome.model.errors import (
    DriverFailedError,
    DriverOutputError,
    MostlyFailedError,
    NothingAskedError,
    UnfitLoadError,
)
from velodrome.model.load import Load
from velodrome.model.measurement import UNTOLD, LoadFacts
from velodrome.run.drivers.dialect import Dialect, Words, one_request, open_to_all, steady
from velodrome.run.drivers.driver import OnEvent, Target
from velodrome.run.drivers.foreign import SLACK_S, Finished, spawn
from velodrome.run.drivers.told import Told
from velodrome.run.drivers.tool import Found

SATURATED = 0.95
"""Of the CPU time it could have had: beyond, the figures are its own. As the engine says of itself."""
MOSTLY = 0.5
"""Share of failed requests from which a rate is one of failures."""


class ForeignDriver:
    """Runs a tool on the CPUs given (all when none are)."""

    def __init__(
        self,
        dialect: Dialect,
        cpus: Sequence[int] = (),
        seed: int = 1,
        slack_s: float = SLACK_S,
    ) -> None:
        """`seed` is for velodrome's own arrivals: no tool takes one."""
        self.dialect, self.cpus, self.slack_s = dialect, tuple(cpus), slack_s

    @property
    def name(self) -> str:
        """As `Load.driver` says it."""
        return self.dialect.tool.name

    def run(self, load: Load, target: Target, on_event: OnEvent) -> LoadFacts:
        """Load `target`; see `Driver.run`.

        Raises UnfitLoadError, DriverMissingError or DriverTooOldError before anything is loaded, DriverError
        (in one of its kinds) when what it did is no result.
        """
        unfit = one_request(target) or steady(load) or self.dialect.unfit(load, target)
        unfit = unfit or open_to_all(self.dialect.words(load, target).arguments)
        if unfit is not None:
            raise UnfitLoadError(self.name, unfit.field, unfit.value, unfit.can)
        found = self.dialect.tool.find()
        warmed = self._warm_up(found, load, target, on_event)
        words = self.dialect.words(load, target)
        finished = self._spawn(found, words, load, on_event, measured=True)
        told = understand(self.dialect, found.version, finished, load)
        _mostly_right(self.name, told)
        facts = self._facts(load, target, finished, told)
        notes = (*warmed, *words.notes, *told.notes)
        return replace(facts, driver_version=found.version, driver_notes=notes)

    def _warm_up(self, found: Found, load: Load, target: Target, on_event: OnEvent) -> tuple[str, ...]:
        """Run it once unmeasured, for as long as asked: no tool separates a warm-up from its own figures."""
        if load.warmup_s <= 0:
            return ()
        seconds = math.ceil(load.warmup_s) if self.dialect.whole_seconds else load.warmup_s
        warmup = replace(load, duration_s=seconds, requests=None)
        self._spawn(found, self.dialect.words(warmup, target), warmup, on_event, measured=False)
        return (f"It was warmed up by a run of its own of {seconds:g} s, whose connections were not kept.",)

    def _spawn(self, found: Found, words: Words, load: Load, on_event: OnEvent, measured: bool) -> Finished:
        finished = spawn(
            (found.path, *words.arguments),
            self.cpus,
            span_s=load.duration_s + load.timeout_s + load.drain_s,
            slack_s=self.slack_s,
            files=words.files,
            on_event=on_event,
            measured=measured,
            hangs=self.dialect.hangs,
        )
        if finished.status != 0:
            hint = self.dialect.hint(finished)
            raise DriverFailedError(self.name, finished.status, finished.last_lines, hint)
        return finished

    def _facts(self, load: Load, target: Target, finished: Finished, told: Told) -> LoadFacts:
        threads = self.dialect.threads(load, len(self.cpus) or os.cpu_count() or 1)
        return LoadFacts(
            requests=told.requests,
            ok=told.ok,
            duration_s=told.duration_s,
            throughput_rps=told.throughput_rps,
            outcomes=told.outcomes,
            due=told.due,
            sent=told.sent,
            lag=UNTOLD,
            connections_asked=load.pace.connections,
            connections_opened=None,
            connections_reopened=None,
            connections_answered=None,
            mean_in_flight=None,
            generator_cpu_s=finished.cpu_s,
            generator_cpu_user_s=finished.cpu_user_s,
            generator_cpu_sys_s=finished.cpu_sys_s,
            generator_transport="",
            generator_saturated=saturated(finished, threads),
            engine_flags=(),
            series=told.series,
            hdr_due=told.hdr_due,
            hdr_sent=told.hdr_sent,
            examples=told.examples,
            generator_threads=threads,
            driver=self.name,
            driver_command=finished.argv,
            latency_is=self.dialect.latency_is,
            latency_corrected=told.corrected,
            checks=self.dialect.checks(target),
            blind=self.dialect.blind(target),
        )


def saturated(finished: Finished, threads: int) -> bool:
    """Return whether a tool that can use so many CPUs used them up, from its start to its end."""
    return finished.cpu_s >= SATURATED * finished.wall_s * threads


def understand(dialect: Dialect, version: str, finished: Finished, load: Load) -> Told:
    """Return what a report says. Raises DriverOutputError for one that is not understood."""
    try:
        return dialect.read(finished, load)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        # JSON of another shape fails in any of these ways
        what = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise DriverOutputError(dialect.tool.name, version, what, finished.last_lines) from error


def _mostly_right(name: str, told: Told) -> None:
    if not told.requests:
        raise NothingAskedError(name, told.duration_s)
    if told.failed > MOSTLY * told.requests:
        raise MostlyFailedError(name, told.failed, told.requests, told.examples)
