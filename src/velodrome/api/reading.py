"""`velodrome.read`: a stored run, its measurements as a table, and what is judged of them."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from velodrome.api import frames, showing
from velodrome.guest import catalog
from velodrome.judge.verdict import judge
from velodrome.model import quantity
from velodrome.model.measurement import Failed, Measurement
from velodrome.model.results import Result, Results
from velodrome.model.verdict import Verdict
from velodrome.report import names
from velodrome.report.typeset import estimate
from velodrome.run.faults import refusals
from velodrome.run.racing import store

HEADS = ("", "requests/s", "p50 ms", "p99 ms", "CPU µs/request", "memory MB")


@dataclass(frozen=True)
class Run(frames.Tabled):
    """A race that was run."""

    path: Path
    """Its folder."""
    results: Results

    @cached_property
    def verdict(self) -> Verdict:
        """What its measurements say: an answer for each question, with rankings and intervals."""
        return judge([self.results], catalog.stacks())

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """All that was measured, also what is set aside (`one.valid`)."""
        return tuple(one for one in self.results.trials if isinstance(one, Measurement))

    @property
    def failures(self) -> tuple[Failed, ...]:
        """What could not be measured, each with its reason."""
        return tuple(one for one in self.results.trials if isinstance(one, Failed))

    def rows(self) -> list[frames.Row]:
        """Return one row a trial."""
        return list(map(_row, self.results.trials))

    def __repr__(self) -> str:
        study = self.results.header.study
        return f"<run of {study.name}: {len(self.measurements)} measurements in {self.path}>"

    def _repr_html_(self) -> str:
        return "".join(
            showing.table(answer.sentence, HEADS, map(_standing, answer.standings), answer.why)
            for answer in self.verdict.answers
        )


@refusals()
def read(run: str | Path) -> Run:
    """Return a stored run, given its folder or its results.jsonl. Raises ResultsError."""
    path = Path(run)
    return Run(path if path.is_dir() else path.parent, store.read(path))


def _standing(one: Any) -> tuple[str, ...]:
    view = names.latency_view(one.latency)
    rate, cpu = one.throughput_rps, one.cpu_us_per_request
    return (
        f"{one.rank or '⚑'} {names.of_standing(one)}",
        estimate(rate) if rate else quantity.MISSING,
        names.milliseconds(view, "p50_ms"),
        names.milliseconds(view, "p99_ms"),
        estimate(cpu) if cpu else quantity.MISSING,
        quantity.megabytes(one.memory_bytes),
    )


def _row(one: Result) -> frames.Row:
    trial = one.trial
    row: dict[str, Any] = {
        "question": trial.question,
        "contestant": trial.label,
        "stack": trial.contestant.stack,
        "load": trial.load.label,
        "block": trial.block,
        "started_at": one.started_at,
        "valid": isinstance(one, Measurement) and one.valid,
        "throughput_rps": None,
        **{f"{name}_ms": None for name in _LATENCIES},
        "cpu_us": None,
        "memory_bytes": None,
        "requests": None,
        "ok": None,
        "flags": "",
        "failed": one.reason if isinstance(one, Failed) else "",
    }
    if isinstance(one, Failed):
        return row
    return row | {
        "throughput_rps": one.load.throughput_rps,
        **{f"{name}_ms": getattr(one.load.due, name) for name in _LATENCIES},
        "cpu_us": one.cpu_us_per_request,
        "memory_bytes": one.memory_bytes,
        "requests": one.load.requests,
        "ok": one.load.ok,
        "flags": ", ".join(sorted({flag.kind.value for flag in one.flags})),
    }


_LATENCIES = ("mean", "p50", "p90", "p99", "p99_9", "max")
