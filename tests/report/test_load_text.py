import io
from collections.abc import Callable
from typing import Any

import pytest

from velodrome.report import load_text

Golden = Callable[[str, str], None]


OPEN = {
    "model": "open",
    "rate": 5_000.0,
    "arrivals": "constant",
    "connections": 50,
    "streams": 1,
    "protocol": "http",
    "call": None,
    "kind": None,
}
CALL = {**OPEN, "protocol": "grpc", "call": "/helloworld.Greeter/SayHelloStream", "kind": "server_streaming"}


def document(**changes: Any) -> dict[str, Any]:
    due = {
        "mean": 0.4,
        "p50": 0.312,
        "p75": 0.4,
        "p90": 0.523,
        "p95": 0.8,
        "p99": 1.91,
        "p99.9": 7.43,
        "max": 9.83,
    }
    sent = {
        "mean": 0.4,
        "p50": 0.29,
        "p75": 0.36,
        "p90": 0.47,
        "p95": 0.6,
        "p99": 1.12,
        "p99.9": 3.01,
        "max": 5.2,
    }
    lag = {
        "mean": 0.01,
        "p50": 0.01,
        "p75": 0.01,
        "p90": 0.02,
        "p95": 0.03,
        "p99": 0.04,
        "p99.9": 0.1,
        "max": 0.4,
    }
    found: dict[str, Any] = {
        "schema": "velodrome/load/1",
        "requests": 50_000,
        "ok": 50_000,
        "duration_s": 10.0,
        "throughput_rps": 4_998.2,
        "outcomes": {"ok": 50_000, "reset": 0, "timeout": 0},
        "latency_ms": {"due": due, "sent": sent},
        "first_message_ms": None,
        "lag_ms": lag,
        "generator": {"cpu_s": 2.1, "transport": "io_uring", "saturated": False, "threads": 1},
        "limit": {
            "at": "schedule",
            "sentence": "Nothing was at its limit: the schedule had no higher rate, and the server kept up.",
            "facts": "Generator: 21 % of its core, io_uring, waited 0.1 % of the time for a CPU, lag p99 0.04 ms, "
            "bytes unsent in 0 % of looks at its sockets.",
        },
        "flags": [],
        "examples": [],
        "load": OPEN,
    }
    return found | changes


NOTHING = dict.fromkeys(("mean", "p50", "p75", "p90", "p95", "p99", "p99.9", "max"))
HOSTILE = {"outcome": "bad_status", "text": "HTTP/1.1 500 \x1b]0;owned\x07\u202e oops\r\n" + "x" * 500}


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    failing = document(
        ok=49_900, outcomes={"ok": 49_900, "bad_status": 100}, examples=[HOSTILE], flags=["too-short"]
    )
    for made in (document(), failing, document(load=CALL)):
        assert max(map(len, load_text.lines(made, width))) <= width


def test_a_load_reads_well(golden: Golden) -> None:
    golden("load.txt", "\n".join(load_text.lines(document(), 80)) + "\n")


def test_a_load_of_calls_reads_well(golden: Golden) -> None:
    first = {"due": {**NOTHING, "p50": 0.2, "max": 3.0}, "sent": {**NOTHING, "p50": 0.19, "max": 2.0}}
    example = {"outcome": "bad_status", "text": "grpc-status 14 UNAVAILABLE: the third party is away"}
    made = document(
        load={**CALL, "connections": 4, "streams": 25},
        first_message_ms=first,
        ok=49_990,
        outcomes={"ok": 49_990, "bad_status": 10},
        examples=[example],
        flags=["streams-without-room"],
    )
    golden("load-grpc.txt", "\n".join(load_text.lines(made, 80)) + "\n")


def test_failures_are_reported_with_examples_made_harmless(golden: Golden) -> None:
    made = document(ok=49_900, outcomes={"ok": 49_900, "bad_status": 60, "timeout": 40}, examples=[HOSTILE])
    text = "\n".join(load_text.lines(made, 80)) + "\n"
    assert "\x1b" not in text
    assert "\u202e" not in text
    golden("load-failures.txt", text)


def test_a_limit_that_spoils_the_figures_is_marked() -> None:
    limit = {
        "at": "generator",
        "sentence": "The generator was the limit.",
        "facts": "Generator: 98 % of its core.",
    }
    text = "\n".join(load_text.lines(document(limit=limit), 80))
    assert " ⚑ The generator was the limit.\n Generator: 98 % of its core." in text
    assert "⚑" not in "\n".join(load_text.lines(document(limit={**limit, "at": "server"}), 80))


def test_notes_stand_under_the_heading() -> None:
    text = "\n".join(load_text.lines(document(notes=["Interrupted after 3 s of 10 s: all figures are."]), 80))
    assert text.index("requests ·") < text.index("Interrupted after 3 s") < text.index("latency, ms")


def test_in_a_closed_loop_what_is_in_flight_is_told_apart_from_what_failed() -> None:
    closed = {**OPEN, "model": "closed", "rate": None}
    outcomes = {"ok": 49_900, "unfinished": 50, "timeout": 50}
    sentence = load_text.result(document(load=closed, ok=49_900, outcomes=outcomes))
    assert sentence.endswith("50 failed (0.10 %), 50 in flight at the end")
    outcomes = {"ok": 49_950, "unfinished": 50}
    sentence = load_text.result(document(load=closed, ok=49_950, outcomes=outcomes))
    assert sentence.endswith("none failed, 50 in flight at the end")
    sentence = load_text.result(document(ok=49_950, outcomes=outcomes))
    assert sentence.endswith("50 failed (0.10 %)")


def test_one_connection_is_written_in_the_singular() -> None:
    closed = {**OPEN, "model": "closed", "rate": None, "connections": 1}
    assert load_text.load_name(document(load=closed)) == "closed loop, 1 connection, 10 s"


def test_a_load_that_got_no_answer_shows_dashes_and_no_picture() -> None:
    made = document(
        requests=10,
        ok=0,
        throughput_rps=0.0,
        outcomes={"refused": 10},
        latency_ms={"due": NOTHING, "sent": NOTHING},
    )
    text = "\n".join(load_text.lines(made, 80))
    assert "NONE answered right" in text
    assert "refused 10" in text
    assert "│" not in text


@pytest.mark.parametrize(("resent", "subject"), [(1, "1 request was"), (1_234, "1 234 requests were")])
def test_requests_that_were_sent_again_are_reported(resent: int, subject: str) -> None:
    text = " ".join(line.strip() for line in load_text.lines(document(resent=resent)))
    sentence = "sent again on a new connection because the server closed the idle connection at that moment."
    assert f"{subject} {sentence}" in text.replace("\u202f", " ").replace("\u00a0", " ")


@pytest.mark.parametrize("older", [{}, {"resent": 0}])
def test_where_none_was_sent_again_nothing_is_reported_nor_in_documents_of_before(
    older: dict[str, int],
) -> None:
    assert "sent again" not in " ".join(load_text.lines(document(**older)))


def test_in_a_pipe_progress_is_a_line_every_five_seconds_without_control_codes() -> None:
    stream = io.StringIO()
    progress = load_text.Progress(stream)
    for at in range(1, 12):
        tick = {
            "event": "tick",
            "at_s": float(at),
            "rps": 100.0,
            "errors": at // 10,
            "p50_ms": 1.0,
            "p99_ms": None,
        }
        assert progress.event(tick)
    assert progress.event({"event": "connected", "opened": 3})
    progress.end()
    lines = stream.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["5.0", "10.0"]
    assert "1 error" in lines[1]
    assert "\x1b" not in stream.getvalue()
    assert "\r" not in stream.getvalue()


def test_a_room_is_reported_with_its_deliveries_and_what_members_heard_beside() -> None:
    rows = {"due": document()["latency_ms"]["sent"], "sent": document()["latency_ms"]["sent"]}
    load = {
        "model": "closed",
        "rate": None,
        "arrivals": None,
        "connections": 50,
        "mode": "broadcast",
        "at_once": 1,
    }
    heard = {"count": 2_500_000, "latency_ms": rows, "again": 0, "late": 3, "strangers": 50}
    text = "\n".join(load_text.lines(document(load=load, deliveries=heard), 80))
    assert "closed loop, 1 message at once, a room of 50, 10 s" in text
    assert "each delivery" in text
    assert "2 500 000 deliveries" in text
    assert "3 after they had timed out, 50 never sent" in text
    assert "twice" not in text


def test_bodies_that_were_not_looked_at_are_reported_with_what_was_compared_all_the_same() -> None:
    generator = {**document()["generator"], "dropped_bodies": 49_500, "compared_every": 100}
    text = " ".join(load_text.lines(document(generator=generator)))
    assert "Of 49 500 answers the kernel dropped the body unread" in text.replace("\u202f", " ").replace(
        "\u00a0", " "
    )
    assert "one in 100 was read and compared as a whole" in text
    text = " ".join(load_text.lines(document(generator={**generator, "compared_every": None})))
    assert "--expect-body" in text
    text = " ".join(load_text.lines(document(generator={**generator, "compared_every": 1})))
    assert "all responses to requests with a check were read" in text


def test_a_load_that_changed_its_transport_says_for_which_answers() -> None:
    generator = {**document()["generator"], "transport": "epoll", "unread_bytes": 217_800}
    text = " ".join(" ".join(load_text.lines(document(generator=generator))).split())
    assert "changed to epoll: its first responses had 218 kB on average" in text
    assert "went over" not in " ".join(
        load_text.lines(document(generator={**generator, "unread_bytes": None}))
    )


@pytest.mark.parametrize(("median", "sentence"), [(16.1, "16.1 ms"), (None, "no answer")])
def test_an_unfair_server_is_reported_with_what_the_median_connection_waits(
    median: float | None, sentence: str
) -> None:
    fairness: dict[str, float | None] = {
        "connections": 64,
        "answers": 9_000,
        "least": 80,
        "most": 200,
        "jain": 0.9,
    }
    fairness |= {"jain_short_term": 0.08, "mean_ms": 17.0, "median_connection_ms": median}
    text = " ".join(" ".join(load_text.lines(document(flags=["unfair"], fairness=fairness), 80)).split())
    assert "⚑ unfair: " in text
    assert "5 of 64 connections" in text
    assert sentence in text
