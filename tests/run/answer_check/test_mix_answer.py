"""A mix is tried request by request before it is sent as a load."""

import re
import socket
import time

import pytest
from tests.run.servers.listening import Handler, listening

from velodrome.model.app import Content, Request
from velodrome.model.measurement import FailureKind
from velodrome.run import answer_check
from velodrome.run.answer_check import UNFINISHED, Partly, Wrong
from velodrome.run.drivers.driver import Target
from velodrome.run.servers import NotReady, Ready, await_right_answer

ITEM = Request("item", "/items/{{random 7..7}}?full=1", expect_contains="seven")
ORDER = Request("order", "/orders", "POST", body=Content("{{n}}"), expect_status=201)
LOST = Request("lost", "/nowhere")


def shop(seen: list[str]) -> Handler:
    """Know one item and one way to order, and say 404 to all else."""

    def handler(connection: socket.socket, head: bytes) -> None:
        first = head.partition(b"\r\n")[0].decode()
        seen.append(first)
        body = b"item seven" if first.startswith("GET /items/7?full=1 ") else b""
        status = b"201 Made" if first.startswith("POST /orders ") else b"200 OK" if body else b"404 No"
        connection.sendall(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))

    return handler


def test_each_request_is_sent_once_and_filled_in() -> None:
    seen: list[str] = []
    with listening(shop(seen)) as url:
        assert answer_check.ask_mix(Target.of_requests(url, (ITEM, ORDER)), 5.0) is None
    assert seen == ["GET /items/7?full=1 HTTP/1.1", "POST /orders HTTP/1.1"]


def test_a_few_wrong_answers_are_reported_and_left_to_the_load_to_count() -> None:
    with listening(shop([])) as url:
        answer = answer_check.ask_mix(Target.of_requests(url, (ITEM, ORDER, LOST)), 5.0)
    assert isinstance(answer, Partly)
    assert re.fullmatch(r"lost: it answers wrongly: .*404.*", answer.what)


@pytest.mark.parametrize(
    ("requests", "sentence"),
    [
        (
            (LOST, Request("void", "/void")),
            r"^void: it answers wrongly: .*404.* \(2 of 2 requests are wrong\)$",
        ),
        ((ITEM, Request("heavy", "/heavy", weight=2)), r"^heavy: it answers wrongly: [^(]*404[^(]*$"),
        ((Request("item", "/items/7?full=1", expect_contains="eight"), LOST), r"^lost: .* \(2 of 2"),
    ],
)
def test_a_mix_that_is_mostly_answered_wrong_is_reported_by_its_worst(
    requests: tuple[Request, ...], sentence: str
) -> None:
    with listening(shop([])) as url:
        answer = answer_check.ask_mix(Target.of_requests(url, requests), 5.0)
    assert isinstance(answer, Wrong)
    assert re.search(sentence, answer.what)


def test_a_server_that_is_not_there_or_says_nothing_is_not_wrong() -> None:
    assert answer_check.ask_mix(Target.of_requests("http://127.0.0.1:9/", (ITEM, LOST)), 1.0) == (
        "nothing listens on its port"
    )
    with listening(lambda connection, head: time.sleep(0.5)) as url:
        assert answer_check.ask_mix(Target.of_requests(url, (ITEM, LOST)), 0.1) == UNFINISHED


def test_a_server_is_ready_when_its_mix_is_answered() -> None:
    def readiness_of(*requests: Request) -> Ready | NotReady:
        return await_right_answer(
            Target.of_requests(url, requests), lambda: None, time.monotonic(), deadline_s=2.0
        )

    with listening(shop([])) as url:
        assert isinstance(readiness_of(ITEM, ORDER), Ready)
        assert isinstance(readiness_of(Request("plain", "/items/7?full=1")), Ready), "the query is sent too"
        partly = readiness_of(ITEM, LOST)
        refused = readiness_of(LOST, Request("void", "/void"))
    assert isinstance(partly, Ready)
    assert partly.wrong.startswith("lost: it answers wrongly")
    assert isinstance(refused, NotReady)
    assert refused.failure is FailureKind.WRONG_ANSWER
