"""A diff as a JUnit report: each figure a case, a regression a failure, what cannot be told a skipped one.

Of thresholds, which somebody asked for, one that cannot be told is an error: it did not pass.
"""

from velodrome.model.difference import Change, Diff, Gate
from velodrome.report import junit
from velodrome.report.diff_rows import Row, gate, sections, side
from velodrome.report.junit import Case, Outcome, Suite


def text(diff: Diff) -> str:
    """Return the whole document."""
    made, _ = sections(diff)
    properties = {
        "before": side(diff.before.name, diff.before.told),
        "after": side(diff.after.name, diff.after.told),
        **diff.environment,
    }
    at = diff.environment.get("started", "")
    suites = [
        Suite(section.title, list(map(_figure, section.rows)), properties, at, diff.sentence)
        for section in made
    ]
    if diff.gates:
        suites.append(Suite("thresholds", list(map(_threshold, diff.gates)), properties, at))
    return junit.text("velodrome diff", suites)


def _figure(row: Row) -> Case:
    one = row.difference
    _, before, after, moved, said = row.texts
    case = Case(f"velodrome.diff.{one.question}.{one.contestant}", f"{one.metric} {one.load}")
    told = f"{one.metric}: {before} before, {after} after: {moved}"
    if one.change is Change.REGRESSION:
        return Case(
            case.classname, case.name, Outcome.FAILED, "regression", one.reason or f"{told}: regression"
        )
    if one.change is Change.INSUFFICIENT:
        reason = f": {one.reason}" if one.more_blocks is None and one.reason else ""
        message = f"{told}: {said.partition(' [')[0]}{reason}"
        return Case(case.classname, case.name, Outcome.SKIPPED, message=message)
    return case


def _threshold(one: Gate) -> Case:
    name = f"{one.threshold.text}: {one.difference.cell} {one.difference.load}"
    outcome = {True: Outcome.PASSED, False: Outcome.FAILED, None: Outcome.ERROR}[one.held]
    kind = {True: "", False: "threshold", None: "insufficient data"}[one.held]
    return Case("velodrome.diff.thresholds", name, outcome, kind, gate(one))
