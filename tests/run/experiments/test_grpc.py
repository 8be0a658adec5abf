"""What publications say of grpcio under gevent, of channels and loops, and of its two kinds of channel, is tried."""

import pytest
from tests.run.experiments.findings import found, number

from velodrome.guest import catalog
from velodrome.guest.grpc.greeter import PEER
from velodrome.guest.stack import Process
from velodrome.model.errors import ServerNotReadyError
from velodrome.run.environments import guest_tree
from velodrome.run.experiments.programs import Served, environment_of, listening
from velodrome.run.lab import Lab


@pytest.fixture(scope="module")
def lab() -> Lab:
    return Lab(catalog.stacks(), guest_tree.export([]))


def test_out_of_gevents_mode_a_server_answers_nobody_and_a_client_calls_one_by_one(lab: Lab) -> None:
    finding = found(lab, "grpc-gevent-mode", calls=2, deadline_ms=700, calls_at_once=5, ms=400)
    assert finding.facts["server_status.in"] == "OK"
    assert finding.facts["server_status.out"] == "DEADLINE_EXCEEDED"
    assert (finding.facts["server_ok.in"], finding.facts["server_ok.out"]) == (2, 0)
    assert finding.facts["client_ok.in"] == finding.facts["client_ok.out"] == 5
    assert 0.4 <= number(finding, "client_s.in") < 1.6
    assert number(finding, "client_s.out") > 1.99
    assert "without it end DEADLINE_EXCEEDED" in finding.sentence


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_channel_made_at_start_up_works_and_one_made_earlier_is_of_another_loop(
    lab: Lab, loop: str
) -> None:
    finding = found(lab, "grpc-channel-loop", loop=loop, requests=2)
    assert finding.facts["answered.start-up"] == 2
    assert finding.facts["error.start-up"] == ""
    for moment in ("before-loop", "on-import"):
        # Of the pinned release. Should a newer one put up with it, this is what tells.
        assert finding.facts[f"answered.{moment}"] == 0
        error = str(finding.facts[f"error.{moment}"])
        assert "attached to a different loop" in error
        assert "site-packages" not in error
    assert "start-up: 2 of 2 answered" in finding.sentence


def test_one_stub_is_awaitable_where_its_channel_is_and_options_do_the_same(lab: Lab) -> None:
    finding = found(lab, "grpc-same-stub")
    assert finding.facts["awaitable.blocking"] is False
    assert finding.facts["awaitable.aio"] is True
    for option in ("lb_policy_name", "enable_retries", "keepalive_timeout_ms"):
        assert finding.facts[f"same.{option}"] is True, finding.facts
    for kind in ("blocking", "aio"):
        assert finding.facts[f"servers_pick_first.{kind}"] == 1
        assert finding.facts[f"servers_round_robin.{kind}"] == 2
        assert finding.facts[f"ended_with_retries.{kind}"] == "OK"
        assert finding.facts[f"ended_without_retries.{kind}"] == "UNAVAILABLE"
        assert finding.facts[f"stalled_ping_timeout.{kind}"] == "UNAVAILABLE"
        assert number(finding, f"stalled_s_ping_timeout.{kind}") < 2.9


def test_a_server_that_ends_before_it_listens_is_refused_with_its_last_words(lab: Lab) -> None:
    def broken(process: Process) -> Process:
        return Process(("-m", "no_such_program"))

    served = Served("grpc-threads", PEER, environment_of("grpc-threads", {}, lab), under=broken)
    with pytest.raises(ServerNotReadyError) as caught, listening(served, lab):
        pass
    assert "nothing listens on its port" in str(caught.value)
    assert "No module named no_such_program" in str(caught.value)
