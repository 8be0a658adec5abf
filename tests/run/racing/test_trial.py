"""Each way a server can fail is a result with its reason, and nothing of any server is left."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial

import pytest
from tests.run import made
from tests.run.racing.failing_server import (
    LONGER,
    SHORT,
    failure,
    hostile_lab,
    kinds,
    nothing_left,
    only,
    scratch_folders,
    servers_of,
    trials,
)

from velodrome.guest import catalog
from velodrome.guest.recipe import Body, Recipe
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.model.errors import EnvironmentFailedError
from velodrome.model.load import Limits
from velodrome.model.measurement import (
    AnswerForm,
    Failed,
    FailureKind,
    FlagKind,
    IdleFacts,
    Measurement,
    Severity,
)
from velodrome.model.trial import Contestant, Session, Trial
from velodrome.run.drivers.driver import choose_driver
from velodrome.run.environments import guest_tree
from velodrome.run.environments.environment import Environment
from velodrome.run.lab import Lab
from velodrome.run.racing.plan import seed_of
from velodrome.run.racing.session import run_alone


@pytest.fixture(scope="module")
def lab() -> Lab:
    return hostile_lab()


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    nothing_left()


def test_a_session_gives_one_measurement_for_each_load_of_one_server(lab: Lab) -> None:
    results = list(run_alone(trials("answer", SHORT, LONGER), lab))
    for result, load in zip(results, (SHORT, LONGER), strict=True):
        assert isinstance(result, Measurement)
        assert result.trial.load == load
        assert result.load.ok > 10
        assert result.server.boot_s > 0
        assert result.server.cpu_s > 0
        assert result.command[1:3] == ("-m", "velodrome.guest.stacks.hostile")
        assert FlagKind.SERVER_DIED not in kinds(result)
    first, second = results
    assert isinstance(first, Measurement)
    assert isinstance(second, Measurement)
    assert first.command == second.command
    assert scratch_folders() == []


def test_idle_connections_are_held_through_a_load_and_gone_before_the_next(lab: Lab) -> None:
    first, second = run_alone(trials("answer", replace(SHORT, idle=25), SHORT), lab)
    assert isinstance(first, Measurement)
    assert isinstance(second, Measurement)
    assert first.idle == IdleFacts(asked=25, opened=25, accepted=25, still_open=25)
    assert second.idle is None
    held = [sample.fds for sample in (*first.server.samples, *second.server.samples)]
    assert first.server.threads_peak > 25
    assert second.server.threads_peak < 25, held
    assert FlagKind.IDLE_NOT_HELD not in kinds(first)


def test_a_model_that_cannot_hold_so_many_connections_has_died_in_its_own_words(lab: Lab) -> None:
    real = replace(lab, stacks=catalog.stacks(), guest_tree=guest_tree.export())
    select = Trial("study", "hello", made.HELLO, Contestant("io-select"), SHORT, Limits(), 0)
    too_many = replace(select, load=replace(SHORT, idle=1100))
    died, alive = run_alone(Session((too_many, select)), real)
    assert isinstance(died, Failed)
    assert died.failure is FailureKind.DIED
    assert died.reason.startswith("io-select died under load: ")
    assert died.last_lines[-1] == "ValueError: filedescriptor out of range in select()"
    assert isinstance(alive, Measurement), "the next load gets a fresh server"


def test_the_faults_of_a_published_server_are_named(lab: Lab) -> None:
    real = replace(lab, stacks=catalog.stacks(), guest_tree=guest_tree.export(), driver=choose_driver)
    recipe = replace(catalog.recipe("large"), cookie_bytes=2000)
    load = replace(SHORT, keepalive=False)
    trial = Trial("study", "cookie", recipe, Contestant("published-socketserver"), load, Limits(), 0)
    measured = only(list(run_alone(Session((trial,)), real)))
    assert isinstance(measured, Measurement)
    assert measured.form == AnswerForm(length_told=False, line_ends="LF")
    assert measured.load.outcomes["reset"] > 0
    assert {
        FlagKind.CLOSED_UNREAD,
        FlagKind.LENGTH_NOT_TOLD,
        FlagKind.BARE_LINE_ENDS,
        FlagKind.ERRORS,
    } <= set(kinds(measured))


def test_a_server_dead_at_start_fails_with_its_traceback_at_once(lab: Lab) -> None:
    began = time.monotonic()
    failed = failure(list(run_alone(trials("die-at-start"), lab)))
    assert time.monotonic() - began < lab.start_seconds
    assert failed.failure is FailureKind.START
    assert "exit 1" in failed.reason
    assert failed.last_lines[-1] == "RuntimeError: cannot <i>start</i>: no configuration"


@pytest.mark.parametrize(
    ("does", "kind", "sentence"),
    [
        ("answer-wrong", FailureKind.WRONG_ANSWER, "differs from byte 1 on: «script>alert(1)</script>"),
        ("answer-500", FailureKind.WRONG_ANSWER, "it answers status 500, not 200"),
        ("not-http", FailureKind.WRONG_ANSWER, "not HTTP: «220 mail.example ESMTP <ready>"),
        ("never-answer", FailureKind.NEVER_ANSWERED, "takes the connection but does not finish"),
        ("trickle", FailureKind.NEVER_ANSWERED, "takes the connection but does not finish"),
        ("never-listen", FailureKind.NEVER_ANSWERED, "no answer within 3 s: nothing listens on its port"),
    ],
)
def test_a_server_that_is_never_right_fails_with_what_came(
    lab: Lab, does: str, kind: FailureKind, sentence: str
) -> None:
    failed = failure(list(run_alone(trials(does), replace(lab, start_seconds=3.0))))
    assert failed.failure is kind
    assert sentence in failed.reason


def test_a_server_wrong_only_while_it_boots_is_measured(lab: Lab) -> None:
    result = only(list(run_alone(trials("answer-late"), lab)))
    assert isinstance(result, Measurement)
    assert result.server.boot_s > 0.4


def test_a_failed_start_fails_every_trial_of_the_session(lab: Lab) -> None:
    results = list(run_alone(trials("die-at-start", SHORT, LONGER), lab))
    assert [type(result) for result in results] == [Failed, Failed]
    assert [result.trial.load for result in results] == [SHORT, LONGER]


def test_a_server_that_dies_under_load_is_flagged_and_the_next_load_gets_a_fresh_one(lab: Lab) -> None:
    results = list(run_alone(trials("die-under-load", SHORT, LONGER), lab))
    assert len(results) == 2
    for result in results:
        assert isinstance(result, Measurement)
        assert 0 < result.load.ok < 60
        (flag,) = [flag for flag in result.flags if flag.kind is FlagKind.SERVER_DIED]
        assert flag.severity is Severity.INVALID
        assert "exit 7" in flag.sentence
        assert result.last_lines[-1] == "MemoryError: <b>no more</b>"


def test_a_server_that_dies_before_it_answered_anything_has_failed(lab: Lab) -> None:
    failed = failure(list(run_alone(trials("die-at-once-under-load"), lab)))
    assert failed.failure is FailureKind.DIED
    assert "died under load: exit 7" in failed.reason
    assert failed.last_lines[-1] == "MemoryError: <b>no more</b>"


def test_a_server_that_ignores_its_stop_is_killed_and_reported_as_hung(lab: Lab) -> None:
    results = list(run_alone(trials("ignore-stop", SHORT, LONGER), lab))
    assert FlagKind.HUNG_ON_STOP not in kinds(results[0])
    assert isinstance(results[1], Measurement)
    (flag,) = [flag for flag in results[1].flags if flag.kind is FlagKind.HUNG_ON_STOP]
    assert flag.severity is Severity.NOTE
    assert "did not end when it was asked to and was killed" in flag.sentence


def test_grandchildren_left_behind_are_ended_and_reported(lab: Lab) -> None:
    result = only(list(run_alone(trials("leave-children"), lab)))
    assert isinstance(result, Measurement)
    (flag,) = [flag for flag in result.flags if flag.kind is FlagKind.HUNG_ON_STOP]
    assert "left 3 of its processes running" in flag.sentence


def test_files_in_the_home_and_working_folder_of_a_server_are_gone(lab: Lab) -> None:
    result = only(list(run_alone(trials("leave-files"), lab)))
    assert FlagKind.HUNG_ON_STOP not in kinds(result)
    assert scratch_folders() == []


def test_a_server_that_prints_without_end_is_measured(lab: Lab) -> None:
    result = only(list(run_alone(trials("print"), lab)))
    assert isinstance(result, Measurement)
    assert result.load.ok > 0


def test_abandoning_a_session_stops_its_server_at_once(lab: Lab) -> None:
    with closing(run_alone(trials("ignore-stop", SHORT, LONGER), lab)) as results:
        first = next(results)
        assert isinstance(first, Measurement)
        assert len(servers_of(os.getpid())) == 1
        began = time.monotonic()
    assert time.monotonic() - began < 8
    assert scratch_folders() == []


def test_a_memory_limit_that_is_too_small_kills_the_server_and_says_so(lab: Lab) -> None:
    if not lab.where.get("memory"):
        pytest.skip("no control group for memory is writable here")
    large = Recipe("huge", "answers much", (Body(60_000_000),))
    results = list(run_alone(trials("answer", recipe=large, limits=Limits(memory_bytes=32 << 20)), lab))
    assert "its memory limit was reached" in failure(results).reason
    assert not list(lab.where["memory"].parent.glob(f"velodrome-*-{os.getpid()}-*"))


def test_an_environment_that_will_not_install_fails_the_session(lab: Lab) -> None:
    def broken(
        stack: Stack, python: str | None, packages: Mapping[str, str], served: Recipe | None = None
    ) -> Environment:
        raise EnvironmentFailedError(
            stack.name, "its packages could not be installed", "see above", ["no wheel"]
        )

    failed = failure(list(run_alone(trials("answer"), replace(lab, environment=broken))))
    assert failed.failure is FailureKind.INSTALL
    assert "its packages could not be installed" in failed.reason


def test_a_stack_that_cannot_even_make_its_command_fails_the_session(lab: Lab) -> None:
    def command(launch: Launch) -> Process:
        raise KeyError("workers")

    stacks = {"hostile": replace(lab.stacks["hostile"], command=command)}
    failed = failure(list(run_alone(trials("answer"), replace(lab, stacks=stacks))))
    assert failed.failure is FailureKind.START
    assert "KeyError: 'workers'" in failed.reason


def test_a_stack_that_is_not_there_or_cannot_serve_is_unavailable(lab: Lab) -> None:
    assert (
        failure(list(run_alone(trials("answer"), replace(lab, stacks={})))).failure is FailureKind.UNAVAILABLE
    )
    stacks = {"hostile": replace(lab.stacks["hostile"], cannot={"body": "it has nothing to say"})}
    failed = failure(list(run_alone(trials("answer"), replace(lab, stacks=stacks))))
    assert failed.failure is FailureKind.UNAVAILABLE
    assert "it has nothing to say" in failed.reason


def test_the_seed_of_arrivals_is_one_for_a_block_and_differs_between_blocks() -> None:
    of = partial(made.trial, load=made.OPEN)
    assert seed_of(of("uvicorn")) == seed_of(of("granian"))
    assert len({seed_of(of(block=block)) for block in range(100)}) == 100
