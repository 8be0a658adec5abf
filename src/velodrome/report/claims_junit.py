"""The claims of a verdict as a JUnit report: one that does not hold fails, one that cannot be told is skipped."""

from velodrome.model.claim import Judged, Judgement
from velodrome.model.verdict import Verdict
from velodrome.report import claims, junit
from velodrome.report.junit import Case, Outcome, Suite

OUTCOMES = {
    Judgement.HOLDS: Outcome.PASSED,
    Judgement.FAILS: Outcome.FAILED,
    Judgement.CANNOT_TELL: Outcome.SKIPPED,
}


def text(verdict: Verdict) -> str:
    """Return the whole document."""
    cases = [_case(verdict.study, one) for one in verdict.claims]
    at = verdict.environment.get("started", "")
    said = f"{claims.summary(verdict.claims)}." if verdict.claims else "This study has no claims."
    return junit.text("velodrome judge", [Suite(verdict.study, cases, verdict.environment, at, said)])


def _case(study: str, one: Judged) -> Case:
    told = claims.told(one)
    rows = (f"{row.about}: {row.here}, published {row.published}. {row.reason}".strip() for row in told.rows)
    parts = [told.reason, *rows]
    message = " ".join(part for part in parts if part)
    outcome = OUTCOMES[one.judgement]
    return Case(f"velodrome.claims.{study}", f"{told.name} {told.says}", outcome, "claim", message)
