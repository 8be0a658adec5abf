"""The claims of a verdict as a JUnit report: one that does not hold fails, one that cannot be told is skipped."""

from collections.abc import Iterable

from velodrome.model.claim import Judged, Judgement
from velodrome.model.verdict import Verdict
from velodrome.report import claims, junit
from velodrome.report.junit import Case, Outcome, Suite

OUTCOMES = {
    Judgement.HOLDS: Outcome.PASSED,
    Judgement.FAILS: Outcome.FAILED,
    Judgement.CANNOT_TELL: Outcome.SKIPPED,
}


def text(verdicts: Iterable[Verdict]) -> str:
    """Return the whole document: a suite for each study."""
    return junit.text("velodrome judge", [_suite(one) for one in verdicts])


def _suite(verdict: Verdict) -> Suite:
    cases = [_case(verdict.study, one) for one in verdict.claims]
    at = verdict.environment.get("started", "")
    said = f"{claims.summary(verdict.claims)}." if verdict.claims else "This study has no claims."
    return Suite(verdict.study, cases, verdict.environment, at, said)


def _case(study: str, one: Judged) -> Case:
    told = claims.shown(one)
    rows = (f"{row.about}: {row.here}, published {row.published}. {row.reason}".strip() for row in told.rows)
    parts = [told.reason, *rows]
    message = " ".join(part for part in parts if part)
    outcome = OUTCOMES[one.judgement]
    return Case(f"velodrome.claims.{study}", f"{told.name} {told.says}", outcome, "claim", message)
