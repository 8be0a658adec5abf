"""The run folder of a search: each load is on the disk before the next begins, and is gone on with from there.

    with open_record(folder, header, resume=False) as record:
        with Bench(trial, lab, record=record) as bench:
            bench.rate(300, demands)
        record.results            # all there is, also of before a resume, in order

It is the file of a race (`run/racing/store.py`) whose lines say which start of a server they are of, and why they were
made (`Step`). Whatever a search comes to it makes of `record.results` alone, by a pure function, so that `velodrome
judge` comes to the same of the file, and a search that is resumed goes on from what that function says.

There are two ways to get there. A tuning takes all stored loads in at once, in whatever order. A search for a capacity
makes one load after the other, and which is next follows from those before: `record.replay()` hands it the stored
loads in that order, and it measures what is not there.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from statistics import median

from velodrome.judge.search.holding import Slope, of_the_moment
from velodrome.model.errors import RaceInterruptedError, ResultsError
from velodrome.model.load import Closed, Load
from velodrome.model.measurement import Failed, FailureKind, Measurement, Purpose, Step
from velodrome.model.quantity import Interval
from velodrome.model.results import Header, Result, Results, Sought
from velodrome.model.study import Question, Study
from velodrome.model.trial import Contestant, Trial
from velodrome.run.racing.race import new_header
from velodrome.run.racing.store import Store

START_S = 5.0
"""Start, warm-up and stop of a server, about: what a budget must have room for."""
AROUND_S = 1.2
"""Beside what is measured of a load: its own warm-up, its drain, the reading of facts."""
PROVING, LEAST_PROOF_S = 1 / 6, 5.0
"""Of a budget, for the proof at most; and a proof is so long at least."""


def header(trial: Trial, sought: Sought, title: str, contestants: tuple[Contestant, ...]) -> Header:
    """Return the header of a search whose loads are of this trial, for these contestants."""
    question = Question(trial.question, trial.recipe, (), link=trial.link, limits=trial.limits, app=trial.app)
    study = Study(trial.study, title, (question,), contestants, blocks=1, limits=trial.limits)
    return new_header(study, sought)


class NotStoredError(Exception):
    """A search that is judged again asks for a load that nobody made: it was interrupted, or ended by `reason`."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


SAME = 1e-6
"""Rates that differ by less are the same: another machine rounds otherwise."""


class Record:
    """What a search has measured, in the order it did; made by `open_record`, or kept in memory only."""

    def __init__(
        self,
        append: Callable[[Result], None] = lambda _: None,
        before: Results | None = None,
        path: str = "results.jsonl",
    ) -> None:
        """`append` gets each result as it is measured, `before` has those that there are; `path` is for errors."""
        self._append, self._path = append, path
        self._waiting: deque[list[Result]] = deque()
        """Stored loads that are still to be replayed, by their number."""
        self._current: deque[Result] = deque()
        """Those of the load that the search makes now."""
        self.at_s = 0.0
        """Seconds of measuring up to the end of the last load, replayed or made."""
        self.ended_by = ""
        """Why no server could be had for the last load, as far as it is stored."""
        self.results: list[Result] = list(before.trials) if before else []
        self.checks: list[Result] = list(before.checks) if before else []
        """Trials that are no part of the search itself (`Trial.part`)."""
        self.first_block = 0
        """The number that the first repeat of a contestant under a load gets here."""
        self._keys = {result.trial.key for result in self.results}
        steps = [result.step for result in self.results if result.step is not None]
        self._boot = max((step.boot for step in steps), default=0)
        self._number = max((step.number for step in steps), default=0)
        self._before_s = max((step.spent_s for step in steps), default=0.0)
        self._began = time.monotonic()

    @property
    def spent_s(self) -> float:
        """Seconds of measuring so far; what lies between an interruption and its resume is not counted."""
        return self._before_s + time.monotonic() - self._began

    def number(self, trial: Trial) -> Trial:
        """Return a trial as the next repeat of its contestant under its load: no two in a file have the same key."""
        block = self.first_block
        while replace(trial, block=block).key in self._keys:
            block += 1
        return replace(trial, block=block)

    def begin(self) -> None:
        """Count the time from here on: environments exist."""
        self._began = time.monotonic()

    def next_boot(self) -> int:
        """Return the number of the start of a server that is made now."""
        self._boot += 1
        return self._boot

    def ask(self) -> None:
        """Begin something that takes a load, or several where the machine spoils some. Raises ResultsError."""
        if self._current:
            raise self._other(self._current[0], "another load")
        self._current, self.ended_by = deque(self._waiting.popleft() if self._waiting else ()), ""
        self._number = _number_of(self._current[0]) if self._current else self._number + 1

    # Replaying.

    def replay(self) -> None:
        """Answer from here on with what is stored, in its order, until there is no more."""
        self._waiting = deque([*group] for _, group in groupby(self.results, key=_number_of))
        self.at_s = 0.0

    @property
    def replays(self) -> bool:
        """Whether something that is stored was not replayed yet."""
        return bool(self._waiting or self._current)

    def replayed(self, load: Load, purpose: Purpose, most: int) -> Result | None:
        """Return what is stored of a load; None: it was not made, or what was made of it does not count.

        A load that the machine spoilt counts if it was the last of `most`, or if the search went on from it: killed in
        between, it is made again under its number, as it would have been. A server that did not start ended the search,
        and is started again. Raises ResultsError where another load is stored in its place.
        """
        taken: list[Result] = []
        while self._current and _purpose_of(self._current[0]) is purpose:
            taken.append(self._current.popleft())
        if self._current and not taken:
            raise self._other(self._current[0], purpose.value)
        if not taken:
            return None
        self.at_s = max(result.step.spent_s for result in taken if result.step is not None)
        if not _same(taken[0].trial.load, load):
            raise self._other(taken[0], load.label)
        counted = [
            result
            for result in taken
            if isinstance(result, Measurement) or result.failure is FailureKind.DIED
        ]
        self.ended_by = (
            "" if counted else next(result.reason for result in taken if isinstance(result, Failed))
        )
        if not counted:
            return None
        last, went_on = counted[-1], bool(self._waiting or self._current)
        spoilt = isinstance(last, Measurement) and of_the_moment(last) is not None
        return None if spoilt and not went_on and len(taken) < most else last

    def _other(self, stored: Result, wanted: str) -> ResultsError:
        """Return what is raised where a search asks for something else than what is stored."""
        number, found = _number_of(stored), stored.trial.load.label
        why = (
            f"load {number} of the search is {found}, and this velodrome would make {wanted} there: judge it with the "
            "velodrome that measured it, or measure again"
        )
        return ResultsError(self._path, 0, why)

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
        self.at_s = step.spent_s
        self._append(kept)
        self.results.append(kept)
        self._keys.add(kept.trial.key)
        return kept

    def take_in(self, results: Sequence[Result], boots: dict[int, int], *, final: bool) -> list[Result]:
        """Append what a host measured of one request, numbered and timed as here. Raises OutputError.

        `boots` has the number here of each start there that is known already, and gets the rest.
        """
        kept: list[Result] = []
        for _, group in groupby(results, key=_number_of):
            self._number += 1
            for result in group:
                assert result.step is not None, "loads of a search say where they stand in it"
                if result.step.boot not in boots:
                    boots[result.step.boot] = self.next_boot()
                step = replace(
                    result.step,
                    number=self._number,
                    boot=boots[result.step.boot],
                    spent_s=round(self.spent_s, 3),
                    final=final,
                )
                kept.append(replace(result, step=step))
                self._append(kept[-1])
                self.results.append(kept[-1])
                self._keys.add(result.trial.key)
        return kept

    def keys_of(self, contestant: Contestant) -> list[str]:
        """Return the keys of all trials of a contestant."""
        return [result.trial.key for result in self.results if result.trial.contestant == contestant]

    def reserve(self, keys: Iterable[str]) -> None:
        """Give no trial one of these keys: another host has made one."""
        self._keys.update(keys)

    def keep_check(self, result: Result) -> None:
        """Append a trial that is no part of the search itself. Raises OutputError."""
        self._append(result)
        self.checks.append(result)

    def leave_out(self, seconds: float) -> None:
        """Count so many seconds that have passed not as the search's."""
        self._began += seconds


def _number_of(result: Result) -> int:
    return result.step.number if result.step is not None else 0


def _purpose_of(result: Result) -> Purpose | None:
    return result.step.purpose if result.step is not None else None


def _same(stored: Load, wanted: Load) -> bool:
    """Whether two loads were requested by the same step of a search; their warm-up depends on the server's past."""
    if isinstance(stored.pace, Closed) or isinstance(wanted.pace, Closed):
        return stored.pace == wanted.pace
    kinds = stored.pace.kind == wanted.pace.kind and stored.pace.arrivals == wanted.pace.arrivals
    return kinds and math.isclose(stored.pace.rate, wanted.pace.rate, rel_tol=SAME)


def cold_starts(results: Iterable[Result]) -> tuple[float, ...]:
    """Return of each start of a server how long it took to its first right answer, seconds."""
    found = {
        result.step.boot: result.server.boot_s
        for result in results
        if isinstance(result, Measurement) and result.step is not None
    }
    return tuple(found.values())


def cold_start(took_s: Sequence[float]) -> Interval | None:
    """Return the shortest, the median and the longest of several starts, seconds; None: there was none."""
    return Interval(min(took_s), median(took_s), max(took_s)) if took_s else None


@contextmanager
def open_record(folder: Path, of: Header, resume: bool = False) -> Iterator[Record]:
    """Begin the folder of a search, or go on with it; where nothing came of it at all it is removed.

    Raises OutputError, ResultsExistError; on resume ResultsError, StudyChangedError, ResultsInUseError;
    RaceInterruptedError on Ctrl-C.
    """
    store, before = Store.resume(folder, of) if resume else (Store.create(folder, of), None)
    record = Record(store.append, before, str(store.path))
    try:
        yield record
    except KeyboardInterrupt:
        done, cure = len(record.results), f"Go on with --resume {folder}"
        raise RaceInterruptedError(str(store.path), done, done, cure) from None
    finally:
        measured = any(isinstance(result, Measurement) for result in record.results)
        if measured or resume:
            store.close()
        else:
            store.discard()
