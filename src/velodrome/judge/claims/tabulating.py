"""Sets published tables beside what was measured here, figure by figure, without judging them."""

from velodrome.judge.claims.finding_cells import Evidence
from velodrome.judge.claims.measuring import measure
from velodrome.judge.figures.number import Missing
from velodrome.model.claim import Check, Figure
from velodrome.model.published import Compared, Here, Line, PublishedRow, PublishedTable


def tabulate(table: PublishedTable, evidence: Evidence) -> Compared:
    """Return every figure of a published table with what was measured here, or why there is nothing."""
    lines = [
        Line(
            row.of,
            _called(row, evidence),
            metric,
            published,
            tuple(
                _here(Figure(metric, row.of, load), evidence) for load in row.loads or table.loads or ("",)
            ),
        )
        for row in table.rows
        for metric, published in zip(table.metrics, row.published, strict=True)
    ]
    return Compared(table.title, tuple(lines))


def _here(figure: Figure, evidence: Evidence) -> Here:
    driver = _driver(figure, evidence)
    found = measure(Check(figure, None, None, None), evidence)
    if isinstance(found, Missing):
        return Here(figure.load, driver, None, found.reason)
    return Here(figure.load, driver, found.interval, limit=found.limit.side if found.limit else "")


def _driver(figure: Figure, evidence: Evidence) -> str:
    """Return the generator of a figure's load."""
    of_question, _, _ = figure.cell.partition("/")
    question = next((one for one in evidence.study.questions if one.name == of_question), None)
    loads = {load.label: load.driver for load in question.loads} if question else {}
    return loads.get(figure.load, "velodrome")


def _called(row: PublishedRow, evidence: Evidence) -> str:
    """Return how the system reads in a table, or its cell where nothing is known of it."""
    cell = evidence.cell(Figure("", row.of))
    return row.of if isinstance(cell, Missing) else cell.runner.called
