"""`velodrome.diff`: what became worse or better between two runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from velodrome.api import tables
from velodrome.api.apps import Asks, asked_of, limits_of, mix_of, seconds_of, terms_of
from velodrome.api.runs import Run, read
from velodrome.judge.regression import DiffCriteria, criteria
from velodrome.model.difference import Change, Diff, Difference
from velodrome.model.errors import UsageError
from velodrome.model.load import Arrivals
from velodrome.report import differences
from velodrome.run.faults import refusals
from velodrome.run.supervision import scratch
from velodrome.usecases import apps
from velodrome.usecases import diff as revising
from velodrome.usecases.diff import DiffSpec
from velodrome.usecases.quiet import Quiet
from velodrome.usecases.terms import Terms


@dataclass(frozen=True)
class Differences(tables.Tabled):
    """What changed, and whether thresholds were kept."""

    diff: Diff

    @property
    def change(self) -> Change:
        """The answer: `Change.REGRESSION`, `IMPROVEMENT`, `SAME` or `INSUFFICIENT`."""
        return self.diff.change

    @property
    def sentence(self) -> str:
        """The answer, for people."""
        return self.diff.sentence

    @property
    def regressions(self) -> tuple[Difference, ...]:
        """The figures that became worse."""
        return tuple(
            difference for difference in self.diff.differences if difference.change is Change.REGRESSION
        )

    @property
    def kept(self) -> bool | None:
        """Whether all thresholds were kept; None: a threshold is undecided."""
        held = {gate.held for gate in self.diff.gates}
        return False if False in held else None if None in held else True

    def markdown(self) -> str:
        """Return a comment for a pull request."""
        return differences.markdown_text(self.diff)

    def junit(self) -> str:
        """Return a JUnit report."""
        return differences.junit_text(self.diff)

    def rows(self) -> list[tables.Row]:
        """Return one row a figure."""
        return [
            {
                "question": difference.question,
                "contestant": difference.contestant,
                "load": difference.load,
                "metric": difference.metric,
                "before": difference.before,
                "after": difference.after,
                "low": difference.interval.low if difference.interval else None,
                "ratio": difference.interval.mid if difference.interval else None,
                "high": difference.interval.high if difference.interval else None,
                "change": difference.change.value,
                "margin": difference.margin,
                "chance": difference.chance,
                "chance_in_all": difference.chance_in_all,
                "more_blocks": difference.more_blocks,
                "reason": difference.reason,
            }
            for difference in self.diff.differences
        ]

    def __repr__(self) -> str:
        return f"<{self.diff.change.value}: {self.diff.sentence}>"

    def _repr_html_(self) -> str:
        found, reasons = differences.sections(self.diff)
        found_tables = [
            tables.table(section.title, differences.HEADS, (row.texts for row in section.rows))
            for section in found
        ]
        numbered = [f"[{number}] {reason}" for number, reason in enumerate(reasons, 1)]
        below = [self.diff.sentence, *numbered, *self.diff.notes]
        return tables.table(differences.headline(self.diff), (), (), below) + "".join(found_tables)


@refusals()
def diff(
    before: str | Path | Run,
    after: str | Path | Run | None = None,
    *,
    thresholds: Sequence[str] = (),
    margins: Sequence[str] = (),
    metrics: Sequence[str] = (),
    app: str = "",
    **how: Any,
) -> Differences:
    """Compare two runs of one machine, or the two revisions of one run (`after` left out).

    With `app`, an import path, `before` and `after` are revisions of git, which are raced against each other first;
    `how` is what `velodrome.compare` takes of requests, load and app, and `blocks` or `budget` (`"10m"`).

    `thresholds` are such as `"p99 +10%"`, `margins` such as `"5%"` or `"p99=20%"`, `metrics` those that are looked at.
    Raises DifferentMachinesError, NotTwoSidesError, ThresholdError, ResultsError, GitError, RevisionError.
    """
    looked = criteria(thresholds, margins, metrics)
    if app:
        if not isinstance(before, str) or not isinstance(after, str):
            raise UsageError("name two revisions: diff('HEAD~1', 'HEAD', app=…)")
        return Differences(raced(before, after, app, looked, **how))
    if how:
        raise UsageError(f"{', '.join(how)}: only where two revisions of an app are raced; name it: app=…")
    first, second = _run(before), None if after is None else _run(after)
    if second is None:
        return Differences(revising.stored(first.results, None, looked))
    named = (str(first.path), str(second.path))
    return Differences(revising.stored(first.results, second.results, looked, named))


def _run(run: str | Path | Run) -> Run:
    return run if isinstance(run, Run) else read(run)


DEFAULTS = Terms()
SECONDS = 3.0


def raced(
    before: str,
    after: str,
    app: str,
    looked: DiffCriteria,
    *,
    requests: Asks = ("GET /",),
    connections: int = DEFAULTS.connections,
    rate: float | None = None,
    duration: float | str = SECONDS,
    stacks: Sequence[str] = (),
    cpus: int | None = None,
    memory: str = "",
    link: str = "",
    arrivals: Arrivals = DEFAULTS.arrivals,
    workers: int | None = None,
    blocks: int | None = None,
    budget: float | str = revising.BUDGET_S,
    out: str | Path | None = None,
    wait: bool = False,
    **of_app: Any,
) -> Diff:
    """Check both revisions out, race them until all is settled, the budget is spent or so many blocks, and compare.

    Results go into `out`; without it into a temporary folder that is gone when this process ends. `of_app` as in
    `velodrome.compare`; `cwd` is a folder of the repository. Raises GitError, RevisionError, NotFromRevisionError and
    what a race raises.
    """
    names, extra = apps.named(stacks)
    terms = terms_of(
        limits_of(cpus, memory),
        connections=connections,
        rate=rate,
        duration=duration,
        link=link,
        stacks=names,
        workers=workers,
        arrivals=arrivals,
    )
    spec = DiffSpec(
        asked_of(app, mix_of(requests), **of_app),
        before,
        after,
        terms,
        extra,
        seconds_of(budget),
        blocks,
        wait,
    )
    where = Path(out) if out is not None else scratch.made("api") / "run"
    return revising.diff(spec, looked, where, Quiet())
