"""What bounded experiments came to, as lines of text."""

from collections.abc import Sequence

from velodrome.model.claim import Fact, Finding
from velodrome.model.quantity import MISSING, number
from velodrome.report.typeset import visible


def told(finding: Finding) -> str:
    """Return one finding as a sentence, or why there is none."""
    if finding.failed:
        return visible(f"could not be tried: {finding.failed}")
    return visible(finding.sentence) or facts(finding)


def facts(finding: Finding) -> str:
    """Return the facts of a finding on one line: `mismatches.uvicorn 0, timed_out no`."""
    return ", ".join(f"{visible(name)} {fact(value)}" for name, value in finding.facts.items())


def fact(value: Fact) -> str:
    """Return one fact as people read it."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return visible(value) if isinstance(value, str) else number(value)


def rows(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    """Return name and sentence of each finding."""
    return [(visible(finding.experiment.name), told(finding)) for finding in findings]
