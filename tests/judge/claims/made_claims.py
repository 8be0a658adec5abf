"""Claims on made-up results: one call, one check."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.judge import made

from velodrome.judge.verdict import judge
from velodrome.model.claim import Check, Checked, Claim, Figure, Finding, Judged
from velodrome.model.profile import Profile
from velodrome.model.results import Result
from velodrome.model.study import Question


def figure(metric: str, cell: str, load: str = "") -> Figure:
    return Figure(metric, cell, load)


def ratio(metric: str, of: str, over: str, **bounds: Any) -> Check:
    found = Check(figure(metric, of), figure(metric, over), None, None)
    return replace(found, **bounds)


def value(metric: str, of: str, load: str = "", **bounds: Any) -> Check:
    return replace(Check(figure(metric, of, load), None, None, None), **bounds)


def judged(
    claim: Claim,
    trials: Sequence[Result],
    questions: Sequence[Question] = (made.HELLO_Q,),
    findings: Sequence[Finding] = (),
    profiles: Sequence[Profile] = (),
    **study: Any,
) -> Judged:
    run = made.results(trials, questions)
    header = replace(run.header, study=replace(run.header.study, claims=(claim,), **study))
    verdict = judge(
        [replace(run, header=header, findings=tuple(findings), profiles=tuple(profiles))], made.STACKS
    )
    (found,) = verdict.claims
    return found


def checked(check: Check, trials: Sequence[Result], needs_cpus: int = 1, **more: Any) -> Checked:
    (found,) = judged(Claim("X1", "it is so", (check,), needs_cpus), trials, **more).checked
    return found
