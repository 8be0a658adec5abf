"""Whose a request's cost is decides whether a server can matter to it."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.judge.made import CLOSED, HELLO_Q, INVALID, NOTE, failed, measured, steady, trial, verdict

from velodrome.judge.own_share import MARGIN, matters_not, own_share, sentence, where_it_goes
from velodrome.model.load import Load, Open
from velodrome.model.measurement import Flag, FlagKind, Measurement, Severity
from velodrome.model.profile import Profile
from velodrome.model.quantity import Interval
from velodrome.model.results import Result
from velodrome.model.study import Baseline, Layer, Question, Study
from velodrome.model.trial import Contestant
from velodrome.model.verdict import Basis, Outcome, OwnShare

pytestmark = pytest.mark.simulation

LOW = Load(Open(20), 2.0, 0.3)
APP = replace(HELLO_Q, loads=(CLOSED,))
LAYERS: tuple[Layer, ...] = ("app", "framework", "server")


def layer(name: Layer) -> Question:
    return replace(
        APP,
        name=f"hello~{name}",
        loads=(CLOSED, LOW),
        contestants=("uvicorn",),
        baseline=Baseline("hello", name, "flask" if name == "framework" else ""),
    )


def cost(
    name: Layer, cpu_us: Sequence[float], p50_ms: Sequence[float], rps: float = 100
) -> list[Measurement]:
    """What a layer costs in each block."""
    found = []
    for block, (cpu, middle) in enumerate(zip(cpu_us, p50_ms, strict=True)):
        found.append(measured(trial("uvicorn", layer(name), block), rps, cpu_us=cpu))
        low = measured(trial("uvicorn", layer(name), block, LOW), 20, cpu_us=cpu)
        found.append(replace(low, load=replace(low.load, due=replace(low.load.due, p50=middle))))
    return found


def study(*layers: Layer) -> Study:
    questions = (APP, *map(layer, layers))
    return Study("made", "Made up", questions, (Contestant("uvicorn"), Contestant("granian")))


def shared(results: Sequence[Result], *layers: Layer) -> OwnShare | None:
    return own_share(study(*(layers or LAYERS)), APP, results)


HEAVY = [
    *cost("app", [7800, 7900, 7700], [8.2, 8.1, 8.3]),
    *cost("framework", [560, 570, 550], [0.7, 0.7, 0.8]),
    *cost("server", [200, 205, 195], [0.3, 0.4, 0.3], 4000),
]
WAITS = [
    *cost("app", [300, 310, 290], [20.9, 20.8, 21.0], 3000),
    *cost("server", [150, 152, 148], [0.4, 0.4, 0.4], 6000),
]


def tied() -> list[Result]:
    """Two that cannot be told apart."""
    return [*steady("uvicorn", [125, 118, 131]), *steady("granian", [122, 127, 121])]


def test_of_an_app_bound_by_cpu_the_cpu_of_a_request_is_divided() -> None:
    found = shared(HEAVY)
    assert found is not None
    assert (found.contestant, found.basis, found.framework, found.rate) == (
        "uvicorn",
        Basis.CPU,
        "flask",
        None,
    )
    assert found.total == pytest.approx(7800)
    assert found.server.low < 200 / 7800 < found.server.high < MARGIN
    assert found.beneath is not None
    assert found.beneath.mid == pytest.approx(560 / 7800, rel=0.01)
    assert matters_not(found)
    text = sentence(found, "uvicorn · uvloop")
    assert text.startswith(
        "93 % of the 7.8 ms of CPU that a request takes on uvicorn · uvloop are the app's own"
    )
    assert "4.6 % flask's" in text


def test_of_one_that_waits_its_response_time_is() -> None:
    found = shared(WAITS, "app", "server")
    assert found is not None
    assert (found.basis, found.rate, found.beneath, found.framework) == (Basis.TIME, 20, None, "")
    assert found.total == pytest.approx(20.9)
    assert matters_not(found)
    assert "of the 21 ms that a response takes at 20/s" in sentence(found, "uvicorn")


def test_a_light_app_does_not_wait_although_waking_up_is_most_of_its_response_time() -> None:
    light = [
        *cost("app", [74, 75, 73], [0.34, 0.35, 0.36]),
        *cost("server", [70, 71, 69], [0.35, 0.36, 0.33]),
    ]
    found = shared(light, "app", "server")
    assert found is not None
    assert found.basis is Basis.CPU


def test_where_a_server_is_most_of_it_it_matters() -> None:
    light = [*cost("app", [60, 61, 59], [0.3] * 3, 9000), *cost("server", [55, 54, 56], [0.3] * 3, 9500)]
    found = shared(light, "app", "server")
    assert found is not None
    assert found.server.mid > 0.85
    assert not matters_not(found)


@pytest.mark.parametrize("missing", ["app", "server"])
def test_without_the_app_or_the_empty_handler_nothing_is_reported(missing: str) -> None:
    kept = [measurement for measurement in HEAVY if measurement.trial.question != f"hello~{missing}"]
    assert shared([*kept, failed(trial("uvicorn", layer("server")))]) is None
    assert own_share(replace(study(), questions=(APP,)), APP, HEAVY) is None


def test_without_an_empty_route_the_framework_counts_as_the_apps() -> None:
    kept = [measurement for measurement in HEAVY if measurement.trial.question != "hello~framework"]
    found = shared(kept)
    assert found is not None
    assert (found.beneath, found.framework) == (None, "")
    assert "97 % of the 7.8 ms" in sentence(found, "uvicorn")


def test_an_empty_handler_that_outruns_the_generator_still_tells_its_cpu_and_one_that_errs_tells_nothing() -> (
    None
):
    def flagged(flag: Flag) -> list[Measurement]:
        return [
            replace(measurement, flags=(flag,))
            if measurement.trial.question == "hello~server" and measurement.trial.load == CLOSED
            else measurement
            for measurement in HEAVY
        ]

    assert shared(flagged(INVALID)) == shared(HEAVY)  # generator-saturated
    assert shared(flagged(NOTE)) == shared(HEAVY)
    assert shared(flagged(Flag(FlagKind.ERRORS, Severity.INVALID, "All failed.", "Look why."))) is None


def test_one_too_slow_for_a_low_rate_is_bound_by_cpu_where_its_closed_loop_keeps_a_cpu_busy() -> None:
    def closed(cpu_us: float, rps: float) -> list[Measurement]:
        both = [*cost("app", [cpu_us] * 3, [1.0] * 3, rps), *cost("server", [200] * 3, [1.0] * 3)]
        return [measurement for measurement in both if measurement.trial.load == CLOSED]

    busy, asleep = shared(closed(900_000, 1)), shared(closed(900, 1))
    assert busy is not None
    assert busy.basis is Basis.CPU
    assert asleep is None


def test_what_ties_does_not_matter_where_the_server_is_below_the_margin() -> None:
    (found,) = verdict([*tied(), *HEAVY], *study(*LAYERS).questions).answers
    assert found.outcome is Outcome.DOES_NOT_MATTER
    assert set(found.best) == {"uvicorn", "granian"}
    assert "it does not matter which. 93 % of the 7.8 ms of CPU" in found.sentence
    assert found.to_settle == ""
    assert {standing.contestant for standing in found.standings} == {"uvicorn", "granian"}
    (untold,) = verdict(tied()).answers
    assert untold.outcome is Outcome.CANNOT_TELL


def test_who_may_be_behind_by_more_than_the_margin_is_not_called_as_good() -> None:
    raced: list[Result] = [*steady("uvicorn", [125, 118, 131]), *steady("granian", [100, 125, 110])]
    (untold,) = verdict(raced).answers
    assert set(untold.best) == {"uvicorn", "granian"}, "the race alone cannot tell"
    (found,) = verdict([*raced, *HEAVY], *study(*LAYERS).questions).answers
    assert (found.outcome, found.best) == (Outcome.DOES_NOT_MATTER, ("uvicorn",))
    assert "it does not matter which" not in found.sentence


def test_a_winner_stays_one_and_the_share_stands_beside() -> None:
    raced = [*steady("uvicorn", [125, 126, 124]), *steady("granian", [80, 81, 79])]
    (found,) = verdict([*raced, *HEAVY], *study(*LAYERS).questions).answers
    assert found.outcome is Outcome.WINNER
    assert any("are the app's own" in reason for reason in found.why)


def test_a_share_of_a_contestant_that_is_clearly_behind_says_nothing_of_those_that_tie() -> None:
    raced = [
        *steady("uvicorn", [50] * 3),
        *steady("granian", [122, 127, 121]),
        *steady("gevent", [125, 118, 131]),
    ]
    questions = study(*LAYERS).questions
    (found,) = verdict([*raced, *HEAVY], *questions).answers
    assert found.outcome is Outcome.CANNOT_TELL


def test_a_baseline_that_could_not_be_measured_is_reported_with_the_reason() -> None:
    server = failed(trial("uvicorn", layer("server")), "no module named flask")
    found = verdict([*tied(), server], *study(*LAYERS).questions)
    assert any("no module named flask" in note for note in found.notes)
    assert not any("no module named flask" in note for note in found.set_aside)


def test_the_heaviest_functions_of_the_profile_are_reported_and_no_more_than_five() -> None:
    functions = {
        f"render_{n} (shop/page.py)": share for n, share in enumerate([0.41, 0.22, 0.1, 0.09, 0.05, 0.04])
    }
    shares = {**functions, "a (b.py)": 0.01}
    profile = Profile(
        trial("uvicorn", layer("app")), "", samples=400, idle_share=0.1, share_by_function=shares
    )
    found = own_share(study(*LAYERS), APP, HEAVY, [profile])
    assert found is not None
    text = where_it_goes(found)
    assert "41 % render_0 (shop/page.py) · 22 % render_1" in text
    assert text.count("render_") == 5
    gone = replace(found, functions={"a (b.py)": 0.01})
    assert where_it_goes(gone) == ""


def test_a_share_that_the_blocks_do_not_agree_on_is_not_reported() -> None:
    restless = [*cost("app", [7800] * 3, [8.0] * 3), *cost("server", [300, 900, 4000], [0.3] * 3)]
    (found,) = verdict([*tied(), *restless], *study("app", "server").questions).answers
    assert found.outcome is Outcome.CANNOT_TELL
    assert found.own_share is not None
    assert not any("the app's own" in reason for reason in found.why)


def test_where_a_server_matters_its_share_is_reported_and_no_bound() -> None:
    share = OwnShare("uvicorn", Basis.CPU, 60, Interval(0.8, 0.85, 0.9), None)
    assert "15 % of the 60 µs of CPU" in sentence(share, "uvicorn")
    assert "85 % are the server's" in sentence(share, "uvicorn")


def test_the_bound_that_is_reported_is_never_below_the_interval() -> None:
    share = OwnShare("uvicorn", Basis.CPU, 7800, Interval(0.02, 0.026, 0.0301), None)
    assert "no server saves more than 4 % of it" in sentence(share, "uvicorn")


@pytest.mark.parametrize("blocks", [1, 3, 8])
def test_the_interval_of_a_share_covers_it_and_a_server_above_the_margin_seldom_passes(blocks: int) -> None:
    """400 worlds with the noise of two equal servers; `benchmarks/own_share.py` has 2 000 at four levels of it."""
    draw = random.Random(f"own share {blocks}")
    covered = passed = 0
    worlds = 400
    for _ in range(worlds):
        for true in (0.03, 0.07):
            app = [7800 * math.exp(draw.gauss(0, 0.04)) for _ in range(blocks)]
            server = [true * 7800 * math.exp(draw.gauss(0, 0.04)) for _ in range(blocks)]
            found = shared(
                [*cost("app", app, [8.0] * blocks), *cost("server", server, [0.3] * blocks)], "app", "server"
            )
            assert found is not None
            covered += found.server.low <= true <= found.server.high
            passed += true > MARGIN and matters_not(found)
    assert covered / (2 * worlds) >= 0.92
    assert passed / worlds <= 0.04
