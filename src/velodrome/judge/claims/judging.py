"""Judges claims: one holds where all its checks hold, and does not hold here where any fails."""

from collections.abc import Sequence

from velodrome.judge.claims.arithmetic import contradictions
from velodrome.judge.claims.checking import check
from velodrome.judge.claims.finding_cells import Evidence
from velodrome.judge.words import sentence
from velodrome.model.claim import Checked, Claim, Judged, Judgement


def judge_claims(evidence: Evidence) -> tuple[Judged, ...]:
    """Return every claim of the study with its judgement."""
    return tuple(_judge(claim, evidence) for claim in evidence.study.claims)


def _judge(claim: Claim, evidence: Evidence) -> Judged:
    checked = tuple(check(one, evidence, claim.needs_cpus) for one in claim.checks)
    judgement = _judgement(checked)
    reason = sentence(_reason(judgement, checked))
    return Judged(claim, judgement, checked, reason, tuple(map(sentence, contradictions(claim))))


def _judgement(checked: Sequence[Checked]) -> Judgement:
    kinds = {one.judgement for one in checked}
    if Judgement.FAILS in kinds:
        return Judgement.FAILS
    return Judgement.HOLDS if kinds == {Judgement.HOLDS} else Judgement.CANNOT_TELL


def _reason(judgement: Judgement, checked: Sequence[Checked]) -> str:
    """Return why, by the first check that decides; each check has its own reason beside it."""
    if not checked:
        return "nothing here measures it"
    if judgement is Judgement.HOLDS:
        return (
            "all that was checked holds"
            if len(checked) > 1
            else checked[0].reason or "what was checked holds"
        )
    why = [one for one in checked if one.judgement is judgement]
    first = f"{why[0].check.about}: {why[0].reason}" if why[0].check.about else why[0].reason
    return first if len(why) == 1 else f"{len(why)} of {len(checked)} checks; {first}"
