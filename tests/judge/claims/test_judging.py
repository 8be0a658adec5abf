"""A claim holds where all its checks hold; experiments, profiles and arithmetic count as well."""

from dataclasses import replace

import pytest
from tests.judge import made
from tests.judge.claims.made_claims import checked, judged, ratio, value

from velodrome.judge.claims import beside_its_table, beyond_littles_law, contradictions
from velodrome.model.claim import (
    Arithmetic,
    Check,
    Claim,
    Contradiction,
    Experiment,
    Figure,
    Finding,
    Judgement,
)
from velodrome.model.profile import Profile

FIELD = [*made.FAST, *made.SLOW]
TWICE = ratio("throughput_rps", "hello/granian", "hello/uvicorn", at_least=1.5, about="throughput")
THRICE = replace(TWICE, at_least=3.0)
UNKNOWN = replace(TWICE, at_least=1.965)
AT = "2026-11-20T12:00:00+00:00"


@pytest.mark.parametrize(
    ("checks", "judgement", "reason"),
    [
        ((TWICE,), Judgement.HOLDS, "what was checked holds."),
        ((TWICE, TWICE), Judgement.HOLDS, "all that was checked holds."),
        ((TWICE, UNKNOWN), Judgement.CANNOT_TELL, "throughput: the interval"),
        ((TWICE, UNKNOWN, THRICE), Judgement.FAILS, "throughput: all of 1.97×"),
        ((), Judgement.CANNOT_TELL, "nothing here measures it."),
    ],
)
def test_a_claim_is_as_good_as_its_worst_check(
    checks: tuple[Check, ...], judgement: Judgement, reason: str
) -> None:
    found = judged(Claim("X1", "it is so", checks), FIELD)
    assert found.judgement is judgement
    assert found.reason.startswith(reason)


def fact(metric: str, over: str | None = None, **bounds: object) -> Check:
    check = Check(
        Figure(metric, experiment="canary"), Figure(over, experiment="canary") if over else None, None, None
    )
    return replace(check, **bounds)  # type: ignore[arg-type]


def found(**facts: float | str | bool | None) -> Finding:
    return Finding(Experiment("canary", "canary"), AT, facts, "Seen.")


@pytest.mark.parametrize(
    ("check", "judgement"),
    [
        (fact("mismatches", at_most=0.0), Judgement.HOLDS),
        (fact("mismatches", at_least=1.0), Judgement.FAILS),
        (fact("thread_us", "greenlet_us", at_least=5.0), Judgement.HOLDS),
        (fact("hangs", equals=True), Judgement.HOLDS),
        (fact("hangs", equals=False), Judgement.FAILS),
        (fact("how", equals="DeadlineExceeded"), Judgement.HOLDS),
        (fact("nothing", at_least=1.0), Judgement.CANNOT_TELL),
        (fact("how", at_least=1.0), Judgement.CANNOT_TELL),
        (fact("thread_us", "mismatches", at_least=1.0), Judgement.CANNOT_TELL),
    ],
)
def test_facts_of_experiments_are_judged(check: Check, judgement: Judgement) -> None:
    facts = found(mismatches=0.0, thread_us=10.0, greenlet_us=1.0, hangs=True, how="DeadlineExceeded")
    assert checked(check, FIELD, findings=[facts]).judgement is judgement


def test_an_experiment_that_failed_was_not_run_or_did_not_end_says_so() -> None:
    check = fact("mismatches", at_most=0.0)
    assert checked(check, FIELD).reason == "the experiment canary was not run"
    skipped = checked(check, FIELD, form="quick", skipped=("canary",))
    assert skipped.reason == "the experiment canary was not run (the quick form leaves it out)"
    failed = Finding(Experiment("canary", "canary"), AT, failed="no gevent here")
    assert checked(check, FIELD, findings=[failed]).reason == (
        "the experiment canary could not be tried: no gevent here"
    )
    hung = Finding(Experiment("canary", "canary"), AT, {"timed_out": True}, "It was still running.")
    assert checked(check, FIELD, findings=[hung]).reason == "the experiment canary: It was still running."
    assert checked(fact("timed_out", equals=True), FIELD, findings=[hung]).judgement is Judgement.HOLDS


def profile(stack: str, **facts: object) -> Profile:
    return replace(Profile(made.trial(stack), AT, samples=1000), **facts)  # type: ignore[arg-type]


def test_profiles_are_judged_by_their_samples() -> None:
    profiles = [
        profile("granian", idle_share=0.8, depth_mean=15.0),
        profile("uvicorn", idle_share=0.4, depth_mean=30.0),
    ]
    idle = ratio("idle_share", "hello/granian", "hello/uvicorn", at_least=1.5)
    assert checked(idle, FIELD, profiles=profiles).judgement is Judgement.HOLDS
    deep = ratio("depth_mean", "hello/uvicorn", "hello/granian", at_least=1.9, at_most=2.1)
    assert checked(deep, FIELD, profiles=profiles).judgement is Judgement.HOLDS
    assert "no profile of granian" in checked(idle, FIELD).reason
    refused = [profile("granian", failed="ptrace is not allowed"), profiles[1]]
    assert checked(idle, FIELD, profiles=refused).reason.endswith(
        "could not be profiled: ptrace is not allowed"
    )
    assert checked(value("depth_max", "hello/granian", at_most=9.0), FIELD, profiles=profiles).reason == (
        "the profile has no depth"
    )


def test_a_published_rate_beyond_littles_law_is_reported_with_what_it_would_take() -> None:
    sentence = beyond_littles_law(Arithmetic(3, "workers", 200, 37.86))
    assert sentence == (
        "3 workers that each wait 200 ms cannot exceed 3 ÷ 0.2 s = 15/s; the published 37.86/s takes 7.6 of them, "
        "so it cannot have had 3 workers in all, or they did not wait 200 ms"
    )
    assert beyond_littles_law(Arithmetic(8, "workers", 200, 37.86)) == ""


def test_a_published_figure_beside_its_own_table_is_reported() -> None:
    sentence = beside_its_table(Contradiction("grpclib over threads", 0.3, 1571.05, 3746.87))
    assert sentence == (
        "the publication says 0.3 for grpclib over threads; its own table gives 1 571.05 ÷ 3 746.87 = 0.419"
    )
    assert beside_its_table(Contradiction("uvloop", 1.17, 1839.73, 1571.05)) == ""


def test_a_claim_tells_its_contradictions_whatever_was_measured() -> None:
    claim = Claim("X1", "it is so", (TWICE,), arithmetic=(Arithmetic(3, "workers", 200, 37.86),))
    assert len(contradictions(claim)) == 1
    result = judged(claim, FIELD)
    assert result.judgement is Judgement.HOLDS
    assert result.contradictions[0].endswith("or they did not wait 200 ms.")


def test_a_check_that_informs_decides_nothing_and_says_why_it_differs() -> None:
    beside = replace(THRICE, informs="on one CPU")
    claim = judged(Claim("X1", "it is so", (TWICE, beside)), FIELD)
    assert claim.judgement is Judgement.HOLDS
    assert [check.judgement for check in claim.checked] == [Judgement.HOLDS, Judgement.FAILS]
    assert claim.checked[1].reason == "on one CPU"
    same = judged(Claim("X1", "it is so", (TWICE, replace(TWICE, informs="on one CPU"))), FIELD)
    assert same.checked[1].reason == ""
    other_way = judged(Claim("X1", "it is so", (THRICE, replace(TWICE, informs="on one CPU"))), FIELD)
    assert other_way.judgement is Judgement.FAILS
    assert other_way.checked[1].reason == "on one CPU"
