"""The traps of clients and loops: each experiment finds on this machine what is known of it."""

import pytest
from tests.run.experiments.findings import found, number

from velodrome.guest import catalog
from velodrome.model.claim import Experiment
from velodrome.model.errors import ProgramError
from velodrome.run.environments import guest_tree
from velodrome.run.experiments.programs import run_program
from velodrome.run.experiments.running import run_experiment
from velodrome.run.lab import Lab


@pytest.fixture(scope="module")
def lab() -> Lab:
    return Lab(catalog.stacks(), guest_tree.export([]))


def test_a_chain_of_calls_passes_the_scheduler_more_often_than_an_answer_at_once(lab: Lab) -> None:
    hops = {}
    for recipe in ("hello", "chain-125ms"):
        finding = found(lab, "scheduler-hops", stacks=("aiohttp",), recipe=recipe, requests=10)
        hops[recipe] = number(finding, "callbacks_per_request.aiohttp")
        assert 1 <= number(finding, "futures_per_request.aiohttp") < 200
    assert 1 <= hops["hello"] < hops["chain-125ms"] / 3


def test_a_timeout_covers_the_answer_and_not_always_the_name(lab: Lab) -> None:
    finding = found(lab, "client-timeouts", stacks=("waitress",), timeout_ms=300, name_ms=1500)
    assert finding.facts["silence_covered.urllib3"] is True
    assert finding.facts["connect_covered.urllib3"] is True
    assert finding.facts["dns_covered.urllib3"] is False
    assert number(finding, "dns_s.urllib3") > 1.4
    assert "urllib3 looking the name up" in finding.sentence


def test_a_blocking_resolver_stops_the_loop_and_a_threaded_one_does_not(lab: Lab) -> None:
    finding = found(lab, "blocked-resolver", name_ms=1500)
    assert number(finding, "blocked_ms.tornado-blocking") > 1400
    for client in ("tornado", "aiohttp"):
        assert number(finding, f"blocked_ms.{client}") < 1200


def test_a_crowd_of_tasks_is_measured_tenfold_by_tenfold(lab: Lab) -> None:
    finding = found(lab, "crowded-loop", fewest=10, most=100, period_ms=100)
    assert {name.rpartition(".")[2] for name in finding.facts} == {"10", "100"}
    assert 0 <= number(finding, "cpu_share.100") <= 1.1


def test_gunicorn_patches_for_greenlets_and_not_for_sync(lab: Lab) -> None:
    finding = found(lab, "gunicorn-greenlets", requests=8)
    assert finding.facts["patched.gunicorn-gevent"] is True
    assert finding.facts["patched.gunicorn-sync"] is False
    assert number(finding, "at_once.gunicorn-gevent") >= 2
    assert number(finding, "at_once.gunicorn-sync") == 1


def test_a_program_that_dies_is_reported_with_its_last_words(lab: Lab) -> None:
    made = lab.environment(lab.stacks["waitress"], None, {})
    with pytest.raises(ProgramError) as caught:
        run_program(made, lab, "velodrome.guest.experiments.no_such_program")
    assert "velodrome.guest.experiments.no_such_program" in str(caught.value)
    assert "exit status 1" in str(caught.value)
    assert "No module named" in str(caught.value)
    with pytest.raises(ProgramError, match=r"it did not end within 0\.2 s"):
        run_program(made, lab, "http.server", "--bind=127.0.0.1", "0", limit_s=0.2)


def test_a_crowd_of_nobody_is_refused(lab: Lab) -> None:
    finding = run_experiment(Experiment("one", "crowded-loop", {"fewest": 0}), lab)
    assert "fewest" in finding.failed
    assert "at least 1" in finding.failed
