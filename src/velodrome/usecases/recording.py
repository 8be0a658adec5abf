"""The run folder of a search: each load is on the disk before the next begins, and is gone on with from there.

    with recorded(folder, header, resume=False) as record:
        with Bench(trial, lab, record=record) as bench:
            bench.rate(300, demands)
        record.results            # all there is, also of before a resume, in order

It is the file of a race (`run/racing/store.py`) whose lines say which start of a server they are of, and why they were
made (`Step`). Whatever a search comes to it makes of `record.results` alone, by a pure function, so that `velodrome
judge` comes to the same of the file, and a search that is resumed goes on from what that function says.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from velodrome.judge.search.holding import Slope
from velodrome.model.errors import RaceInterruptedError
from velodrome.model.measurement import Measurement, Purpose, Step
from velodrome.model.results import Header, Result, Results, Sought
from velodrome.model.study import Question, Study
from velodrome.model.trial import Contestant, Trial
from velodrome.run.racing.race import begun_now
from velodrome.run.racing.store import Store


def header(trial: Trial, sought: Sought, title: str, contestants: tuple[Contestant, ...]) -> Header:
    """Return the header of a search whose loads are of this trial, for these contestants."""
    question = Question(trial.question, trial.recipe, (), link=trial.link, limits=trial.limits, app=trial.app)
    study = Study(trial.study, title, (question,), contestants, blocks=1, limits=trial.limits)
    return begun_now(study, sought)


class Record:
    """What a search has measured, in the order it did; made by `recorded`, or kept in memory only."""

    def __init__(self, store: Store | None = None, before: Results | None = None) -> None:
        self._store = store
        self.results: list[Result] = list(before.trials) if before else []
        self.checks: list[Result] = list(before.checks) if before else []
        """Trials that are no part of the search itself (`Trial.part`)."""
        self._keys = {one.trial.key for one in self.results}
        steps = [one.step for one in self.results if one.step is not None]
        self._boot = max((step.boot for step in steps), default=0)
        self._number = max((step.number for step in steps), default=0)
        self._before_s = max((step.spent_s for step in steps), default=0.0)
        self._began = time.monotonic()

    @property
    def spent_s(self) -> float:
        """Seconds of measuring so far; what lies between an interruption and its resume is not counted."""
        return self._before_s + time.monotonic() - self._began

    def numbered(self, trial: Trial) -> Trial:
        """Return a trial as the next repeat of its contestant under its load: no two in a file have the same key."""
        block = 0
        while replace(trial, block=block).key in self._keys:
            block += 1
        return replace(trial, block=block)

    def begin(self) -> None:
        """Count the time from here on: environments exist."""
        self._began = time.monotonic()

    def booted(self) -> int:
        """Return the number of the start of a server that is made now."""
        self._boot += 1
        return self._boot

    def ask(self) -> None:
        """Begin something that takes a load, or several where the machine spoils some."""
        self._number += 1

    def keep(
        self,
        result: Result,
        boot: int,
        purpose: Purpose,
        rising_per_s: float | None = None,
        backlog: Slope | None = None,
    ) -> Result:
        """Append a result with its step; on return it is on the disk. Raises OutputError."""
        level = (backlog.per_s, backlog.error) if backlog is not None else ()
        step = Step(self._number, boot, purpose, round(self.spent_s, 3), rising_per_s, *level)
        kept: Result = replace(result, step=step)
        if self._store is not None:
            self._store.append(kept)
        self.results.append(kept)
        self._keys.add(kept.trial.key)
        return kept

    def keep_check(self, result: Result) -> None:
        """Append a trial that is no part of the search itself. Raises OutputError."""
        if self._store is not None:
            self._store.append(result)
        self.checks.append(result)

    def leave_out(self, seconds: float) -> None:
        """Count so many seconds that have passed not as the search's."""
        self._began += seconds

    @staticmethod
    def now() -> str:
        """Return the time as results tell it."""
        return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def recorded(folder: Path, of: Header, resume: bool = False) -> Iterator[Record]:
    """Begin the folder of a search, or go on with it; where nothing came of it at all it is removed.

    Raises OutputError, ResultsExistError; on resume ResultsError, StudyChangedError, ResultsInUseError;
    RaceInterruptedError on Ctrl-C.
    """
    store, before = Store.resume(folder, of) if resume else (Store.create(folder, of), None)
    record = Record(store, before)
    try:
        yield record
    except KeyboardInterrupt:
        done, cure = len(record.results), f"Go on with --resume {folder}"
        raise RaceInterruptedError(str(store.path), done, done, cure) from None
    finally:
        measured = any(isinstance(one, Measurement) for one in record.results)
        if measured or resume:
            store.close()
        else:
            store.discard()
