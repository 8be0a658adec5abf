"""One question: from made-up results to the words a person reads."""

import random
from dataclasses import replace

import pytest
from tests.judge.made import (
    CLOSED,
    CPU,
    FAST,
    HELLO_Q,
    INVALID,
    OPEN,
    SLOW,
    SPOILT_ITSELF,
    STOLEN,
    THIRD_Q,
    answer,
    failed,
    measured,
    steady,
    trial,
    verdict,
)

from velodrome.judge.answering import with_paste
from velodrome.model.results import Result
from velodrome.model.study import Question
from velodrome.model.verdict import Answer, Outcome, Verdict


def ranks(found: Answer) -> dict[str, int | None]:
    return {standing.contestant: standing.rank for standing in found.standings}


def test_one_winner_is_reported_with_its_lead_and_interval() -> None:
    found = answer([*FAST, *SLOW])
    assert (found.outcome, found.best) == (Outcome.WINNER, ("granian",))
    assert found.sentence.startswith("For an endpoint that answers at once, 84 bytes: granian · rsgi, 1.9")
    assert "the next, uvicorn · uvloop" in found.sentence
    assert ranks(found) == {"granian": 1, "uvicorn": 2}
    assert found.to_settle == ""
    loser = found.standings[1]
    assert loser.ratio_to_best is not None
    assert loser.ratio_to_best.low < 0.509 < loser.ratio_to_best.high


def test_a_small_lead_is_reported_in_percent() -> None:
    found = answer([*steady("granian", [1200] * 3), *steady("uvicorn", [1000] * 3)])
    assert "20 % [+" in found.sentence
    assert "ahead of uvicorn · uvloop" in found.sentence


def third_party() -> list[Result]:
    return [
        *steady("uvicorn", [197, 198, 196], THIRD_Q, cpu_us=610, memory_mb=48),
        *steady("gevent", [196, 197, 196], THIRD_Q, cpu_us=820, memory_mb=66),
        *steady("granian", [197, 197, 197], THIRD_Q, cpu_us=620, memory_mb=30),
        *steady("sync", [10, 10, 10], THIRD_Q, cpu_us=900),
    ]


def test_where_all_wait_the_ceiling_explains_and_cpu_then_memory_recommend() -> None:
    found = answer(third_party(), THIRD_Q)
    assert found.outcome is Outcome.TIE
    # granian and uvicorn cost the same CPU to 5 %, so memory decides between them; gevent costs more.
    assert found.best == ("granian", "uvicorn", "gevent")
    assert "granian · rsgi, uvicorn · uvloop or gunicorn · gevent" in found.sentence
    assert "gunicorn · sync cannot exceed 10/s, because 2 ÷ 0.2 s = 10/s" in found.sentence
    assert any("40 ÷ 0.2 s = 200/s, and 3 of 4 reach that" in why for why in found.why)
    assert any(
        "620 µs of CPU a request and 30 MB, where gunicorn · gevent takes 820 µs" in why for why in found.why
    )
    assert "more of them, not more blocks" in found.to_settle
    sync = next(row for row in found.standings if row.contestant == "sync")
    assert (sync.rank, sync.ceiling_rps, sync.ceiling) == (4, 10, "2 ÷ 0.2 s = 10/s")


def test_what_limited_the_recommended_one_is_named() -> None:
    assert "40 connections" in answer(third_party(), THIRD_Q).limit
    assert "200/s" in answer(third_party(), THIRD_Q).limit
    slots = answer([*steady("sync", [10, 10, 10], THIRD_Q, cpu_us=900, mean_ms=200.0)], THIRD_Q).limit
    assert "2 slots" in slots
    busy = answer([*steady("uvicorn", [1_000] * 3, cpu_us=970)]).limit
    assert "CPU" in busy
    assert "97 %" in busy
    assert answer([failed(trial("uvicorn"))]).limit == ""


def test_too_few_blocks_for_a_small_difference_say_so_and_how_many_would_do() -> None:
    found = answer(
        [
            *steady("granian", [1020, 1000, 1030], cpu_us=450),
            *steady("uvicorn", [1000, 1040, 1005], cpu_us=500),
        ]
    )
    assert found.outcome is Outcome.CANNOT_TELL
    assert "cannot tell granian · rsgi from uvicorn · uvloop: difference 0 % [−6, +7]" in found.sentence
    assert found.to_settle.endswith("would settle a difference of 3 %")
    assert "more blocks (" in found.to_settle


def test_many_blocks_without_a_difference_are_a_tie() -> None:
    draw = random.Random(3)
    blocks = [draw.gauss(1000, 15) for _ in range(40)], [draw.gauss(1000, 15) for _ in range(40)]
    found = answer([*steady("granian", blocks[0]), *steady("uvicorn", blocks[1], cpu_us=400)])
    assert (found.outcome, found.best[0], found.to_settle) == (Outcome.TIE, "uvicorn", "")


def test_what_the_lab_spoilt_never_wins_and_the_reason_is_reported() -> None:
    found = verdict([*steady("granian", [9000] * 3, flags=[STOLEN]), *SLOW])
    (only,) = found.answers
    assert only.best == ("uvicorn",)
    assert ranks(only) == {"uvicorn": 1, "granian": None}
    assert any(
        "granian · rsgi showed 9 000/s and would be first, but it is set aside" in why for why in only.why
    )
    assert found.set_aside == (
        "granian · rsgi, hello, closed-40: The host took 9 % of the CPUs. (blocks 1, 2 and 3)",
    )


def test_where_the_generator_was_the_limit_a_server_did_at_least_that_and_may_win_by_it() -> None:
    found = answer([*steady("granian", [9000] * 3, flags=[INVALID]), *SLOW])
    row = found.standings[0]
    assert (found.outcome, found.best) == (Outcome.WINNER, ("granian",))
    assert (row.contestant, row.place, row.bound) == ("granian", "1", "at least")
    assert "at least 4.4" in found.sentence
    assert "generator" in found.limit


def test_two_lower_bounds_are_not_told_apart_and_more_blocks_are_not_advised() -> None:
    found = answer(
        [*steady("granian", [9000] * 3, flags=[INVALID]), *steady("uvicorn", [5000] * 3, flags=[INVALID])]
    )
    assert found.outcome is Outcome.CANNOT_TELL
    assert [row.place for row in found.standings] == ["1–2", "1–2"]
    assert "more CPUs" in found.to_settle


def test_what_a_server_spoilt_itself_counts_and_keeps_it_from_winning() -> None:
    spoilt = [
        replace(measurement, flags=(SPOILT_ITSELF,)) if measurement.trial.block == 1 else measurement
        for measurement in FAST
    ]
    found = answer([*spoilt, *SLOW])
    row = found.standings[0]
    assert (row.contestant, row.bound, row.blocks_valid, row.blocks_done) == ("granian", "at most", 2, 3)
    assert row.throughput_rps is not None
    assert row.throughput_rps.mid == pytest.approx((4000 * 4100 * 3950) ** (1 / 3))
    assert found.best == ("uvicorn",)
    assert any("3 % of the requests failed" in why for why in found.why)


def test_who_lost_a_block_to_the_machine_is_ranked_and_not_recommended() -> None:
    spoilt = [
        measured(measurement.trial, 20, flags=[STOLEN]) if measurement.trial.block == 1 else measurement
        for measurement in FAST
    ]
    found = answer([*spoilt, *SLOW])
    row = found.standings[0]
    assert (row.contestant, row.place, row.blocks_done, row.blocks_valid) == ("granian", "1", 3, 2)
    assert row.notes == ("closed-40, set aside: The host took 9 % of the CPUs. (block 2)",)
    assert (found.outcome, found.deploy) == (Outcome.CANNOT_TELL, "")
    assert "only 2 of the 3 blocks of granian · rsgi count" in found.sentence


def test_who_has_one_block_of_three_is_not_ranked() -> None:
    spoilt = [
        measured(measurement.trial, 20, flags=[STOLEN]) if measurement.trial.block else measurement
        for measurement in FAST
    ]
    found = answer([*spoilt, *SLOW])
    assert ranks(found) == {"uvicorn": 1, "granian": None}
    assert "only 1 of its 3 blocks counts" in found.standings[1].notes[-1]


def test_of_those_tied_memory_decides_where_cpu_is_not_told_apart() -> None:
    def tied(cpu_us: float, memory_mb: int) -> tuple[str, ...]:
        few = steady("granian", [1000, 1001, 999], cpu_us=cpu_us, memory_mb=memory_mb)
        return answer([*few, *steady("uvicorn", [1000, 999, 1001], cpu_us=500, memory_mb=40)]).best

    # A server that is busy for half of the time: 4 % of CPU are nothing, 20 % of memory are something.
    assert tied(520, 32)[0] == "granian"
    assert tied(800, 32)[0] == "uvicorn"


def test_a_failed_contestant_is_last_with_its_reason() -> None:
    found = verdict([*(failed(trial("sync", block=b)) for b in range(3)), *SLOW])
    last = found.answers[0].standings[-1]
    assert (last.contestant, last.rank, last.throughput_rps) == ("sync", None, None)
    assert last.failed == "It did not start within 10 s (exit 1)."
    assert found.answers[0].best == ("uvicorn",)
    assert "gunicorn · sync, hello, closed-40: failed: it did not start" in found.set_aside[0]


def test_a_contestant_that_failed_once_is_ranked_by_what_it_did() -> None:
    found = answer([*FAST, *SLOW[:2], failed(trial("uvicorn", block=2), "it died")])
    row = found.standings[1]
    assert (row.rank, row.blocks_valid, row.blocks_done, row.failed) == (2, 2, 3, "")
    assert row.notes == ("closed-40, failed: it died. (block 3)",)


def test_when_all_failed_it_cannot_be_told_and_the_commonest_reason_is() -> None:
    found = answer([failed(trial(name, block=b)) for name in ("uvicorn", "sync") for b in range(3)])
    assert (found.outcome, found.best, found.deploy) == (Outcome.CANNOT_TELL, (), "")
    assert (
        "cannot tell, because no contestant could be measured, most often so: it did not start"
        in found.sentence
    )


def test_when_all_is_set_aside_it_cannot_be_told() -> None:
    found = answer(list[Result](steady("uvicorn", [10, 10, 10], flags=[STOLEN])))
    assert (found.outcome, found.best) == (Outcome.CANNOT_TELL, ())
    assert "every measurement was set aside, most often so: The host took 9 %" in found.sentence
    assert found.standings[0].throughput_rps is not None


def test_no_right_answer_at_all_is_zero_and_never_a_ratio() -> None:
    found = answer([*FAST, *steady("uvicorn", [0, 0, 0])])
    row = found.standings[1]
    assert row.throughput_rps is not None
    assert (row.rank, row.throughput_rps.mid, row.ratio_to_best, row.cpu_us_per_request) == (
        2,
        0.0,
        None,
        None,
    )
    assert "the only one with a correct response." in found.sentence
    assert "no response was correct" in answer(list[Result](steady("uvicorn", [0, 0, 0]))).sentence


def test_missing_percentiles_stay_missing() -> None:
    view = answer(list[Result](SLOW)).standings[0].latency[0]
    assert (view.p50_ms, view.p99_ms, view.max_ms, view.curve_due) == (None, None, None, ())
    damaged = [measured(measurement.trial, 10) for measurement in SLOW]
    object.__setattr__(damaged[0].load, "hdr_due", "damaged")
    assert answer(list[Result](damaged)).standings[0].latency[0].p50_ms is None


def test_latency_of_blocks_is_merged_and_compared_at_one_rate() -> None:
    trials: list[Result] = [*FAST, *SLOW, *steady("sync", [1900, 1950, 1900])]
    for block in range(3):
        trials.append(measured(trial("granian", block=block, load=OPEN), 100, latencies_ms=[1.0] * 400))
        trials.append(
            measured(trial("uvicorn", block=block, load=OPEN), 100, latencies_ms=[1.0] * 390 + [50.0] * 10)
        )
        trials.append(measured(trial("sync", block=block, load=OPEN), 20, latencies_ms=[900.0] * 400))
    found = answer(trials)
    view = found.standings[0].latency[1]
    assert (view.load, view.requests, round(view.p50_ms or 0, 2)) == ("open-100", 600, 1)
    assert (
        "At the same 100/s for all, p99 is lowest with granian · rsgi (1.00 ms) and highest with uvicorn · uvloop "
        "(50.0 ms)." in found.why
    )
    assert "gunicorn · sync does not keep up with 100/s." in found.why


def test_a_percentile_whose_intervals_meet_is_lowest_with_nobody() -> None:
    trials: list[Result] = [*FAST, *SLOW]
    for block in range(3):
        few, more = [1.0] * 98 + [4.0, 6.0], [1.0] * 98 + [5.0, 5.0]
        trials.append(measured(trial("granian", block=block, load=OPEN), 100, latencies_ms=few))
        trials.append(measured(trial("uvicorn", block=block, load=OPEN), 100, latencies_ms=more))
    (sentence,) = [why for why in answer(trials).why if why.startswith("At the same 100/s for all")]
    assert "lowest" not in sentence
    assert "differs clearly with nobody" in sentence


def test_a_question_with_open_loops_only_is_ranked_by_answers_over_latency() -> None:
    question = Question("open", HELLO_Q.recipe, (OPEN,))
    trials: list[Result] = []
    for block in range(3):
        trials.append(measured(trial("granian", question, block, OPEN), 100, mean_ms=1.0))
        trials.append(measured(trial("uvicorn", question, block, OPEN), 100, mean_ms=3.0))
    found = answer(trials, question)
    assert found.best == ("granian",)
    assert "in answers over mean latency" in found.sentence


def test_more_than_arithmetic_allows_is_pointed_out() -> None:
    found = answer(
        [*steady("sync", [50, 50, 50], THIRD_Q), *steady("uvicorn", [190, 195, 190], THIRD_Q)], THIRD_Q
    )
    assert any(
        "gunicorn · sync did 50.0/s, more than arithmetic allows it (2 ÷ 0.2 s = 10/s)" in why
        for why in found.why
    )


def test_a_cpu_bound_recipe_has_the_cpu_as_its_ceiling() -> None:
    question = Question("cpu", CPU, (CLOSED,))
    row = answer(list[Result](steady("uvicorn", [480, 490, 485], question)), question).standings[0]
    assert (row.ceiling_rps, row.ceiling) == (500, "1 ÷ 0.002 s = 500/s")


def test_the_command_line_to_paste_is_made_general() -> None:
    about, line = answer(list[Result](SLOW)).deploy.split("\n")
    assert line == "python -m server --bind=127.0.0.1:8000 yourmodule:app"
    assert about.startswith("# Measured for 1 CPU")


def test_what_is_not_settled_is_pasted_for_those_who_ask() -> None:
    noisy = [*steady("granian", [1020, 1000, 1030]), *steady("uvicorn", [1000, 1040, 1005])]
    found = answer(list[Result](noisy))
    assert (found.outcome, found.deploy) == (Outcome.CANNOT_TELL, "")
    assert found.best
    pasted = with_paste(Verdict("study", "A study", 1, (found,), ())).answers[0].deploy
    assert pasted.endswith("\npython -m server --bind=127.0.0.1:8000 yourmodule:app")


def test_knobs_and_interpreters_are_contestants_of_their_own() -> None:
    trials = [
        measured(trial("uvicorn", knobs={"workers": 2}, python="3.13"), 2000),
        measured(trial("uvicorn", python="3.13"), 1000),
        measured(trial("uvicorn"), 500),
    ]
    found = answer(list[Result](trials))
    assert set(ranks(found)) == {"uvicorn[workers=2]@3.13", "uvicorn@3.13", "uvicorn"}
    assert "uvicorn · uvloop ×2, Python 3.13" in found.sentence


def test_answers_to_requests_of_the_warm_up_count_as_throughput_and_cost() -> None:
    # Two sync workers under 40 connections: what arrives within the span was sent before it; `ok` is 0.
    slow = steady("sync", [10, 10, 10], THIRD_Q)
    for measurement in slow:
        object.__setattr__(measurement.load, "ok", 0)
        object.__setattr__(measurement.load, "outcomes", {"ok": 0, "unfinished": measurement.load.requests})
    row = answer([*slow, *steady("uvicorn", [197, 198, 196], THIRD_Q)], THIRD_Q).standings[1]
    assert row.throughput_rps is not None
    assert row.cpu_us_per_request is not None
    assert (row.rank, round(row.throughput_rps.mid), round(row.cpu_us_per_request.mid)) == (2, 10, 500)
    assert row.latency[0].errors == 0


def test_the_only_one_that_is_ranked_is_not_recommended_where_it_does_not_keep_up() -> None:
    slow = [
        measured(trial("sync", block=block, load=OPEN), 40, latencies_ms=[9.0] * 80) for block in range(3)
    ]
    found = answer([*steady("sync", [41, 40, 42]), *slow])
    assert found.best == ()
    assert found.deploy == ""
    assert found.outcome is Outcome.CANNOT_TELL
    assert "does not keep up with 100/s" in found.sentence
