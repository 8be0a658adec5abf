"""JUnit reports for continuous integration: suites of cases that passed, failed or were skipped.

Elements and attributes are those that Ant's schema and Jenkins' have in common, in Ant's order. The claims of a verdict
are one suite for each study: a claim that does not hold is a failure, an undecided claim is skipped.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from xml.etree import ElementTree as Tree

from velodrome.model.claim import Judged, Judgement
from velodrome.model.verdict import Verdict
from velodrome.report import claims
from velodrome.report.typeset import visible

NEVER = "1970-01-01T00:00:00"


class Outcome(StrEnum):
    """What became of a case."""

    PASSED = "passed"
    FAILED = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Case:
    """A test case; texts may be a server's."""

    classname: str
    name: str
    outcome: Outcome = Outcome.PASSED
    kind: str = ""
    """Of a failure or an error."""
    message: str = ""


@dataclass(frozen=True)
class Suite:
    """Cases that belong together."""

    name: str
    cases: Sequence[Case]
    properties: Mapping[str, str] = field(default_factory=dict)
    started_at: str = ""
    """ISO 8601."""
    output: str = ""
    seconds: float = 0.0
    """How long all of it took."""


def text(name: str, suites: Sequence[Suite]) -> str:
    """Return the whole document."""
    root = Tree.Element("testsuites", name=name)
    for suite in suites:
        _suite(root, suite)
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    Tree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Tree.tostring(root, encoding="unicode") + "\n"


def _suite(root: Tree.Element, suite: Suite) -> None:
    # The schema wants a time without its zone.
    at = suite.started_at[:19]
    count = [case.outcome for case in suite.cases].count
    element = Tree.SubElement(
        root,
        "testsuite",
        name=visible(suite.name),
        hostname="localhost",
        time=f"{suite.seconds:.3f}".rstrip("0").rstrip("."),
        timestamp=at if len(at) == len(NEVER) else NEVER,
        tests=str(len(suite.cases)),
        failures=str(count(Outcome.FAILED)),
        errors=str(count(Outcome.ERROR)),
        skipped=str(count(Outcome.SKIPPED)),
    )
    properties = Tree.SubElement(element, "properties")
    for name, value in suite.properties.items():
        Tree.SubElement(properties, "property", name=visible(name), value=visible(value))
    for case in suite.cases:
        _case(element, case)
    Tree.SubElement(element, "system-out").text = visible(suite.output)
    Tree.SubElement(element, "system-err")


def _case(suite: Tree.Element, case: Case) -> None:
    element = Tree.SubElement(
        suite, "testcase", classname=visible(case.classname), name=visible(case.name), time="0"
    )
    message = visible(case.message)
    if case.outcome is Outcome.SKIPPED:
        Tree.SubElement(element, "skipped", message=message)
    elif case.outcome is not Outcome.PASSED:
        Tree.SubElement(element, case.outcome.value, type=case.kind, message=message).text = message


OUTCOMES = {
    Judgement.HOLDS: Outcome.PASSED,
    Judgement.FAILS: Outcome.FAILED,
    Judgement.CANNOT_TELL: Outcome.SKIPPED,
}


def claims_text(verdicts: Iterable[Verdict]) -> str:
    """Return the whole document: a suite for each study."""
    return text("velodrome judge", [_suite_claims_junit(verdict) for verdict in verdicts])


def _suite_claims_junit(verdict: Verdict) -> Suite:
    cases = [_case_claims_junit(verdict.study, claim) for claim in verdict.claims]
    at = verdict.environment.get("started", "")
    summary = f"{claims.summary(verdict.claims)}." if verdict.claims else "This study has no claims."
    return Suite(verdict.study, cases, verdict.environment, at, summary)


def _case_claims_junit(study: str, judged: Judged) -> Case:
    rendered = claims.show_claim(judged)
    rows = (
        f"{row.about}: {row.here}, published {row.published}. {row.reason}".strip() for row in rendered.rows
    )
    parts = [rendered.reason, *rows]
    message = " ".join(part for part in parts if part)
    outcome = OUTCOMES[judged.judgement]
    return Case(f"velodrome.claims.{study}", f"{rendered.name} {rendered.says}", outcome, "claim", message)
