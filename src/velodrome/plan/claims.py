"""Claims of a study, as its file tells them: published conclusions, and by which figures they are judged again.

[[claims]]
name = "G1"
says = "gevent gives nearly three times the throughput"
[[claims.checks]]
metric = "throughput_rps"
of = "third-party/gevent"
over = "third-party/sync"
published = 2.63
at_least = 1.5
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from velodrome.model.claim import (
    Arithmetic,
    Check,
    Claim,
    Contradiction,
    Figure,
    PublishedRow,
    PublishedTable,
)
from velodrome.model.condition import METRICS
from velodrome.model.study import Study
from velodrome.plan.findings import Findings, Place, nearest
from velodrome.plan.schema import (
    ArithmeticTable,
    CheckTable,
    ClaimTable,
    ContradictionTable,
    PublishedRowTable,
    PublishedTableTable,
)


@dataclass(frozen=True)
class Cells:
    """Looks names up in one study; what is wrong with them is in `findings`."""

    study: Study
    findings: Findings

    def loads(self, cell: str) -> list[str] | None:
        """Return the labels of the loads under which a cell is measured; None: there is no such cell."""
        for question, contestant in self.study.pairs():
            if cell == f"{question.name}/{contestant.label}":
                return [load.label for load in question.loads]
        return None

    def found(self, cell: str, at: Place) -> list[str] | None:
        """Return the same, after telling at `at` that there is no such cell."""
        loads = self.loads(cell)
        if loads is None:
            cells = [f"{question.name}/{contestant.label}" for question, contestant in self.study.pairs()]
            self.findings.add(at, f"'{cell}' is no question/contestant of this study; {nearest(cell, cells)}")
        return loads

    def check_load(self, load: str, loads: Sequence[str], at: Place) -> None:
        """Tell at `at` if a question has no such load."""
        if load not in loads:
            self.findings.add(at, f"'{load}' is no load of that question; {nearest(load, loads)}")


def read_claims(entries: list[Any], at: Place, study: Study, findings: Findings) -> tuple[Claim, ...]:
    """Return the claims that a list of tables tells of a study; what is wrong is in `findings`."""
    reader = _Reader(study, findings)
    read = [reader.claim(entry, (*at, index)) for index, entry in enumerate(entries)]
    findings.once(at, [(claim.name, (*at, index)) for index, claim in enumerate(read) if claim])
    return tuple(claim for claim in read if claim)


@dataclass(frozen=True)
class _Reader:
    """Reads claims about one study; what is wrong with them is in `findings`."""

    study: Study
    findings: Findings

    @property
    def cells(self) -> Cells:
        """What the study has cells for."""
        return Cells(self.study, self.findings)

    def claim(self, entry: object, at: Place) -> Claim | None:
        findings = self.findings
        table = findings.check_in_part(ClaimTable, entry, at)
        if table is None:
            return None
        checks = [self.check(check, (*at, "checks", index)) for index, check in enumerate(table.checks)]
        sums = table.arithmetic if isinstance(table.arithmetic, list) else [table.arithmetic]
        arithmetic = [
            findings.check(ArithmeticTable, written, (*at, "arithmetic"))
            for written in sums
            if written is not None
        ]
        contradictions = [
            findings.check(ContradictionTable, contradiction, (*at, "contradictions", index))
            for index, contradiction in enumerate(table.contradictions)
        ]
        if not (checks or arithmetic or contradictions):
            cure = "give it [[claims.checks]], arithmetic or contradictions"
            findings.add(at, f"has nothing to be judged by; {cure}")
        if any(checks) and all(check.informs for check in checks if check):
            findings.add(at, "has checks that inform alone; leave informs out where one is to decide")
        return Claim(
            table.name,
            table.says,
            tuple(check for check in checks if check),
            table.needs_cpus,
            table.remark,
            tuple(
                Arithmetic(
                    arithmetic_table.slots,
                    arithmetic_table.what,
                    arithmetic_table.wait_ms,
                    arithmetic_table.published_rps,
                )
                for arithmetic_table in arithmetic
                if arithmetic_table
            ),
            tuple(
                Contradiction(contradiction.about, contradiction.says, contradiction.a, contradiction.b)
                for contradiction in contradictions
                if contradiction
            ),
        )

    def check(self, entry: object, at: Place) -> Check | None:
        before = self.findings.count
        table = self.findings.check(CheckTable, entry, at)
        if table is None:
            return None
        self._refuse_trivial(table, at)
        if table.experiment is not None:
            figure, over = self._facts(table, table.experiment, at)
        else:
            figure, over = self._cells(table, at)
        than = None
        if table.than is not None:
            first, second = (
                self._figure(table, (cell, self._same(table.load, cell)), (*at, "than", index))
                for index, cell in enumerate(table.than)
            )
            than = first, second
            if over is None or table.experiment is not None:
                self.findings.add((*at, "than"), "compares two ratios of cells; give of and over as well")
        if self.findings.count > before:
            return None
        return Check(
            figure,
            over,
            table.at_least,
            table.at_most,
            table.published,
            table.equals,
            table.about,
            than,
            table.bound_ms,
            table.informs,
        )

    def _refuse_trivial(self, table: CheckTable, at: Place) -> None:
        """A check that nothing could fail is no check."""
        low, high, add = table.at_least, table.at_most, self.findings.add
        if low is None and high is None and table.equals is None:
            add(at, "does not state when it holds; give at_least, at_most or equals")
        elif table.equals is not None and (table.experiment is None or table.over is not None):
            add((*at, "equals"), "is for a fact of an experiment, without over; give at_least or at_most")
        elif table.equals is not None and (low is not None or high is not None):
            add((*at, "equals"), "stands beside a bound; give one of the two")
        elif low is not None and high is not None and low > high:
            add((*at, "at_least"), f"{low:g} is above at_most, {high:g}; no number is both")

    def _facts(self, table: CheckTable, experiment: str, at: Place) -> tuple[Figure, Figure | None]:
        """Return the figures of a check by an experiment: `metric` and `over` name facts of it."""
        names = [known.name for known in self.study.experiments]
        if experiment not in names:
            near = nearest(experiment, names)
            self.findings.add((*at, "experiment"), f"'{experiment}' is no experiment of this study; {near}")
        if table.of is not None:
            self.findings.add((*at, "of"), "stands beside experiment; give one of the two")
        over = Figure(table.over, experiment=experiment) if table.over is not None else None
        return Figure(table.metric, experiment=experiment), over

    def _cells(self, table: CheckTable, at: Place) -> tuple[Figure, Figure | None]:
        """Return the figures of a check by cells."""
        if table.metric not in METRICS:
            near = nearest(table.metric, METRICS)
            self.findings.add((*at, "metric"), f"'{table.metric}' is no metric; {near}")
        if table.of is None:
            self.findings.add((*at, "of"), 'is missing; give a question/contestant, or experiment = "…"')
            return Figure(table.metric), None
        figure = self._figure(table, (table.of, table.load), (*at, "of"))
        if table.over is None:
            return figure, None
        load = table.over_load if table.over_load is not None else self._same(table.load, table.over)
        return figure, self._figure(table, (table.over, load), (*at, "over"))

    def _figure(self, table: CheckTable, cell_and_load: tuple[str, str], at: Place) -> Figure:
        """Return the figure of a cell under a load, after telling what of it there is not."""
        cell, load = cell_and_load
        loads = self.cells.found(cell, at)
        if loads is not None and load:
            key = "over_load" if at[-1] == "over" and table.over_load is not None else "load"
            self.cells.check_load(load, loads, (*at[:-1], key))
        return Figure(table.metric, cell, load)

    def _same(self, load: str, cell: str) -> str:
        """Return a load for another cell: the same load where its question has it, else its first that fits."""
        return load if load in (self.cells.loads(cell) or ()) else ""


def read_tables(
    entries: list[Any], at: Place, study: Study, findings: Findings
) -> tuple[PublishedTable, ...]:
    """Return the published tables that a list of tables tells; what is wrong is in `findings`."""
    read = [_table(entry, (*at, index), study, findings) for index, entry in enumerate(entries)]
    return tuple(published_table for published_table in read if published_table)


def _table(entry: object, at: Place, study: Study, findings: Findings) -> PublishedTable | None:
    before = findings.count
    table = findings.check(PublishedTableTable, entry, at)
    if table is None:
        return None
    for index, metric in enumerate(table.metrics):
        if metric not in METRICS:
            findings.add((*at, "metrics", index), f"'{metric}' is no metric; {nearest(metric, METRICS)}")
    rows = []
    for index, table_row in enumerate(table.rows):
        row = _row(table_row, (*at, "rows", index), tuple(table.loads), study, findings)
        if row and len(row.published) != len(table.metrics):
            count = f"{len(row.published)} figures stand for {len(table.metrics)} metrics"
            findings.add(
                (*at, "rows", index, "published"), f'{count}; give one for each, "" where none is given'
            )
        rows.append(row)
    if findings.count > before:
        return None
    return PublishedTable(
        table.title, tuple(table.metrics), tuple(row for row in rows if row), tuple(table.loads)
    )


def _row(
    entry: object, at: Place, loads: tuple[str, ...], study: Study, findings: Findings
) -> PublishedRow | None:
    row = findings.check(PublishedRowTable, entry, at)
    if row is None:
        return None
    cells = Cells(study, findings)
    there = cells.found(row.of, (*at, "of"))
    if there is None:
        return None
    place = "loads" if row.loads else "of"
    for load in row.loads or loads:
        cells.check_load(load, there, (*at, place))
    return PublishedRow(
        row.of, tuple(figure if figure != "" else None for figure in row.published), tuple(row.loads)
    )
