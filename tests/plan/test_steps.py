"""Steps are described in words, and every kind of step can be written in a file."""

import dataclasses

import pytest

from velodrome.guest.recipe import (
    STEPS,
    Body,
    Call,
    Chat,
    Cpu,
    Keep,
    Query,
    ReadBody,
    Recipe,
    Sleep,
    Step,
    Stream,
    Together,
    Write,
    kind_of,
    to_plain,
)
from velodrome.plan.findings import Findings, TomlMap
from velodrome.plan.questions import read_step, steps_in_words
from velodrome.plan.schema import WANTED

EXAMPLES: dict[type, tuple[Step, str]] = {
    Cpu: (Cpu(2000), "computes for 2 ms"),
    Sleep: (Sleep(0.5), "sleeps 0.5 ms"),
    Call: (Call(75, 3, parallel=True), "waits 75 ms on a third party 3 times at once"),
    Query: (
        Query(20, "mariadb", "mysqlclient", 50),
        "reads 20 rows from MariaDB through mysqlclient, which takes 50 ms",
    ),
    Write: (Write(1, "redis"), "changes 1 row in Redis"),
    Together: (
        Together((Call(50), Query(3), Sleep(1))),
        "does at once (waits 50 ms on a third party, reads 3 rows from a database, sleeps 1 ms)",
    ),
    ReadBody: (ReadBody(), "reads an upload"),
    Keep: (Keep("context-local", 5), "keeps its upload in a context-local place for 5 ms"),
    Body: (Body(220_000), "answers 220 000 bytes"),
    Chat: (Chat(room=True), "holds a WebSocket and sends each message to all"),
    Stream: (Stream(10, 1000, 20), "streams 10 × 1 000 bytes, 20 ms apart"),
}


@pytest.mark.parametrize("kind", STEPS)
def test_every_kind_of_step_is_read_and_reported(kind: str) -> None:
    step, words = EXAMPLES[STEPS[kind]]
    (table,) = to_plain(Recipe("x", "x", (step,)))["steps"]
    findings = Findings(TomlMap())
    assert read_step(table, (), findings) == step
    assert findings.problems == []
    assert kind_of(step) == kind
    assert steps_in_words((step,)) == words


def test_a_call_over_grpc_says_so() -> None:
    assert steps_in_words((Call(200, over="grpc"),)) == "waits 200 ms on a third party over gRPC"
    assert steps_in_words((Call(5, 2, over="grpc"),)) == "waits 5 ms on a third party over gRPC 2 times"


def test_steps_are_joined_into_a_sentence() -> None:
    assert (
        steps_in_words((Sleep(5), Call(200), Body(84)))
        == "sleeps 5 ms, waits 200 ms on a third party and answers 84 bytes"
    )


def test_every_key_of_every_step_has_words_for_its_cure() -> None:
    assert {field.name for step in STEPS.values() for field in dataclasses.fields(step)} <= set(WANTED)
