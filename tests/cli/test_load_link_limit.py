"""Whether the limit was the link, provoked: velodrome's own relay between a load and a server that could do more.

Where other programs keep the generator from its CPU it is the limit, and rightly said to be: hence a few attempts.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.run import made
from tests.run.link.possible import NEEDS_LINK
from tests.run.racing import short_race

from velodrome.guest.recipe import Body, Recipe
from velodrome.model.load import Closed, Link, Load, Open
from velodrome.model.measurement import FlagKind, Measurement
from velodrome.model.trial import Contestant, Session
from velodrome.run import link as site
from velodrome.run.drivers.driver import choose_driver
from velodrome.run.link import Site, enter
from velodrome.run.racing.session import run_alone

SERVER = Path(__file__).with_name("limit_server.py")
pytestmark = [pytest.mark.measured, NEEDS_LINK]


@contextmanager
def served(kind: str, link: Link) -> Iterator[tuple[Site, str]]:
    """A server at the far end of a link; yields the link and the URL."""
    with site.open_site(link, joined_by="relay") as between:
        command = [sys.executable, str(SERVER), kind, between.host]
        with enter(between.server):
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        with process:
            try:
                assert process.stdout is not None
                yield between, f"http://{between.host}:{process.stdout.readline().strip()}/"
            finally:
                process.kill()


def limit(between: Site, url: str, *words: str) -> dict[str, Any]:
    """What a load from the near end says of its limit; of a few in which that was the generator, the last."""
    for _ in range(3):
        found = once(between, url, *words)
        if found["at"] != "generator":
            break
    return found


def once(between: Site, url: str, *words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "velodrome", "load", url, *words]
    with enter(between.client):
        ended = subprocess.run(
            [*command, "--allow-target", between.host, "--json"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert ended.stdout, ended.stderr
    document: dict[str, Any] = json.loads(ended.stdout)
    return {**document["limit"], "sockets": document["sockets"]}


@pytest.fixture(scope="module")
def body(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("link") / "body"
    path.write_bytes(b"x" * 200_000)
    return f"@{path}"


def test_requests_that_are_more_than_the_rate_carries_show_the_link(body: str) -> None:
    with served("reads", Link(rate_mbit=8.0)) as (between, url):
        found = limit(between, url, "-X", "POST", "--body", body, "-c", "8", "-z", "2s", "--drain", "3s")
    assert found["at"] == "link", found
    assert "segments had to be sent again" in found["sentence"]
    assert found["sockets"]["retransmitted"] > 0


def test_the_same_requests_over_a_link_with_room_do_not(body: str) -> None:
    with served("reads", Link(rate_mbit=8.0)) as (between, url):
        found = limit(between, url, "-X", "POST", "--body", body, "-R", "1", "-z", "2s")
    assert found["at"] == "schedule", found


def test_a_round_trip_that_is_all_an_answer_takes_shows_the_link() -> None:
    with served("reads", Link(20.0)) as (between, url):
        found = limit(between, url, "-c", "4", "-z", "1s")
    assert found["at"] == "link", found
    assert "its round trip is 20" in found["sentence"]


def test_answers_that_trickle_in_are_not_reported_as_the_servers_fault() -> None:
    with served("large", Link(rate_mbit=8.0)) as (between, url):
        found = limit(between, url, "-c", "8", "-z", "3s", "--drain", "3s")
    assert found["at"] == "cannot tell", found
    assert "Cannot tell the link from the server" in found["sentence"]


@pytest.mark.parametrize(
    ("load", "is_full"),
    [
        (Load(Closed(4), duration_s=1.0, warmup_s=0.3), True),
        (Load(Open(20.0, connections=4), duration_s=1.0, warmup_s=0.3), False),
    ],
    ids=["as many as come", "twenty a second"],
)
def test_a_trial_notes_that_its_link_carried_all_it_can(load: Load, is_full: bool) -> None:
    large = Recipe("large", "answers with much", (Body(10_000, on_wire=True),))
    contestant = Contestant("hostile", {"does": "answer"})
    trial = replace(
        made.trial(load=load, recipe=large),
        contestant=contestant,
        link=Link(1.0, jitter_ms=0.01, rate_mbit=8.0),
    )
    lab = replace(short_race.lab(choose_driver), start_seconds=5.0)
    (result,) = run_alone(Session((trial,)), lab)
    assert isinstance(result, Measurement)
    assert result.link is not None
    assert result.link.joined_by == "relay"
    flags = {flag.kind: flag for flag in result.flags}
    assert (FlagKind.LINK_FULL in flags) is is_full, result.flags
    if is_full:
        assert "of its 8 Mbit/s back" in flags[FlagKind.LINK_FULL].sentence
