"""What heartbeats wrote is read as facts, within its time, and whatever else stands in the files is passed over."""

from dataclasses import replace

import pytest
from tests.run.made import measurement, trial

from velodrome.model.measurement import Measurement, ServerSample
from velodrome.model.symptoms import Called
from velodrome.run.instruments.heartbeat import read_heartbeats, timeline

pytestmark = pytest.mark.unit
FRAME = {"file": "/srv/shop.py", "function": "view", "own": True, "awaits": True, "line": 3, "end_line": 3}
PLACE = {"frames": [FRAME], "seconds": 0.02, "ran_s": 0.001, "blocked_s": 0.019}
SEEN = {
    "seen": 0.5,
    "at": 10.5,
    "loop": "uvloop",
    "late_s": 0.02,
    "samples": {"all": 1.0, "logging": 0.4},
    "computing": {"building-model": 0.3},
    "threads": {"AnyIO worker thread": 7},
    "libraries": ["anyio"],
}


def test_stalls_of_one_stack_are_added_up() -> None:
    found = read_heartbeats(
        [{"stall": 0.02, "at": 10.1, "places": [PLACE]}, {"stall": 0.02, "at": 10.2, "places": [PLACE]}],
        10,
        11,
    )
    (held,) = found.held_up
    assert (held.times, held.named.place) == (2, "/srv/shop.py:3")
    assert held.blocked_s == pytest.approx(0.038)
    assert found.late_s == pytest.approx(0.04)
    assert held.awaiting == held.named


def test_what_was_before_or_after_the_load_does_not_count() -> None:
    every = [{"stall": 0.02, "at": at, "places": [PLACE]} for at in (9.9, 10.5, 11.1)]
    assert read_heartbeats(every, 10, 11).late_s == pytest.approx(0.02)


def test_what_was_seen_is_put_together() -> None:
    found = read_heartbeats(
        [SEEN, {**SEEN, "threads": {"AnyIO worker thread": 40}}, {"gc": 0.2, "at": 10.3, "generation": 2}],
        10,
        11,
    )
    assert (found.seconds, found.loop, found.shares) == (1.0, "uvloop", {"logging": 0.4})
    assert found.at_once == {"logging": 0.8}
    assert found.computing == {"building-model": pytest.approx(0.6)}
    assert found.threads == {"AnyIO worker thread": 40}
    assert found.libraries == {"anyio"}
    assert found.collections_s == found.longest_collection_s == 0.2


def test_where_a_mark_is_called_from_most_is_named_with_its_share() -> None:
    call = {
        "mark": "logging",
        "file": "/srv/a.py",
        "line": 3,
        "function": "f",
        "text": "log()",
        "seconds": 0.1,
    }
    lines = [{**SEEN, "calls": [call, {**call, "line": 4}]}, {**SEEN, "calls": [call]}]
    spent = 2 * SEEN["samples"]["logging"]  # type: ignore[index]
    own = {**call, "mark": "own code", "seconds": 0.3}
    assert read_heartbeats([{**SEEN, "calls": [own, {**own, "line": 9, "seconds": 0.2}]}], 10, 11).lines == (
        Called("/srv/a.py:3", "f", "log()", 0.3),
        Called("/srv/a.py:9", "f", "log()", 0.2),
    )
    assert read_heartbeats(lines, 10, 11).called == {
        "logging": Called("/srv/a.py:3", "f", "log()", 0.2 / spent)
    }


def test_statements_of_the_load_are_counted_for_each_request() -> None:
    sent = {"statement": "SELECT ?", "file": "/srv/a.py", "line": 3, "function": "f", "text": "ask()"}
    lines = [
        {**SEEN, "at": at, "statements": [{**sent, "seconds": 0.1, "times": 100}]} for at in (10.5, 11.0)
    ]
    before = {**SEEN, "at": 10.2, "statements": [{**sent, "seconds": 9.0, "times": 900}]}
    after = {**before, "at": 11.5}
    found = read_heartbeats([before, *lines, after], 9, 12, rps=50.0, load=(10.0, 11.0))
    assert found.followed_s == pytest.approx(1.0)
    (statement,) = found.statements
    assert (statement.normalized, statement.place) == ("SELECT ?", "/srv/a.py:3")
    assert statement.each == pytest.approx(4.0)
    assert statement.seconds == pytest.approx(0.2)


def test_calls_in_threads_of_the_load_are_counted_for_each_request() -> None:
    hop = {"file": "/srv/a.py", "line": 3, "function": "f", "text": "def f():"}
    lines = [
        {**SEEN, "at": at, "hops": [{**hop, "seconds": 0.2, "cpu": 0.1, "times": 100}]} for at in (10.5, 11.0)
    ]
    before = {**SEEN, "at": 10.2, "hops": [{**hop, "seconds": 9.0, "cpu": 9.0, "times": 900}]}
    found = read_heartbeats([before, *lines], 9, 12, rps=50.0, load=(10.0, 11.0))
    (counted,) = found.hops
    assert (counted.place, counted.function, counted.text) == ("/srv/a.py:3", "f", "def f():")
    assert [counted.each, counted.mean_ms, counted.cpu_ms] == pytest.approx([4.0, 2.0, 1.0])


AWAIT = {
    **{name: FRAME[name] for name in ("file", "function", "line", "end_line")},
    "column": 12,
    "end_column": 24,
    "text": "price = await get(1)",
    "inner": False,
    "seconds": 0.2,
    "most": 3,
    "run": {"line": 3, "end_line": 4, "awaits": 2, "loops": False, "before": "a; b", "after": "gather(a, b)"},
}


def test_where_tasks_wait_is_added_up_by_place_and_whether_it_is_the_innermost() -> None:
    inner = {**AWAIT, "inner": True, "run": None, "seconds": 0.5}
    lines = [
        {
            **SEEN,
            "waits": [AWAIT, inner],
            "waiting": {"connector": 2},
            "connects": {"a:80": 3},
            "ports": 28_232,
        },
        {
            **SEEN,
            "waits": [{**AWAIT, "most": 5}],
            "waiting": {"connector": 7},
            "connects": {"a:80": 4, "b:1": 1},
        },
    ]
    found = read_heartbeats(lines, 10, 11)
    first, second = found.waits
    assert (first.inner, first.run) == (True, None)
    assert (second.place, second.seconds, second.most) == ("/srv/shop.py:3", 0.4, 5)
    assert second.run is not None
    assert second.run.document() == {"file": "/srv/shop.py", "line": 3, "end_line": 4}
    assert found.waiting == {"connector": 7}
    assert found.connects == {"a:80": 7, "b:1": 1}
    assert found.ports == 28_232


def test_tasks_that_waited_before_the_load_are_not_those_of_the_load() -> None:
    """A line is on the half second before it, in which the server was warmed up by several connections."""
    found = read_heartbeats(
        [{**SEEN, "at": 10.2, "waiting": {"connector": 8}}, {**SEEN, "waiting": {"connector": 1}}], 10, 11
    )
    assert found.waiting == {"connector": 1}
    assert (found.seconds, found.looked_s) == (1.0, 0.5)


def test_connections_are_counted_for_as_long_as_processes_were_seen_whoever_has_a_loop() -> None:
    worker = {**SEEN, "loop": None, "connects": {"a:80": 5}}
    lines = [worker, {**worker, "at": 11.0}, {**worker, "at": 11.0}, {**worker, "at": 10.2}]
    found = read_heartbeats(lines, 10, 11)
    assert (found.connects, found.connected_s) == ({"a:80": 15}, 1.0)
    assert found.looked_s == 0.0


def test_heartbeats_that_tell_no_waits_are_read_all_the_same() -> None:
    assert read_heartbeats([SEEN], 10, 11).waits == ()


def test_collections_of_young_objects_are_not_counted() -> None:
    young, old = ({"gc": 0.1, "at": 10.3, "generation": generation} for generation in (1, 2))
    assert read_heartbeats([young, old, young], 10, 11).collections_s == 0.1


def test_collections_are_those_of_the_process_that_spends_most_on_them() -> None:
    collections = [
        {"gc": seconds, "at": 10.3, "generation": 2, "pid": pid}
        for pid, spent in ((1, (0.02,)), (2, (0.08, 0.04)), (3, (0.1,)), (4, ()))
        for seconds in spent
    ]
    workers = [{**SEEN, "at": at} for at in (10.5, 11.0) for _ in range(4)]
    found = read_heartbeats([*workers, *collections], 10, 11).collected
    assert found is not None
    assert (found.seconds, found.longest_s) == (1.0, 0.08)
    assert found.share == pytest.approx(0.12)


def test_a_master_without_a_loop_has_no_share_in_the_time_of_its_workers() -> None:
    master = {**SEEN, "loop": None}
    assert read_heartbeats([SEEN, master, master], 10, 11).seconds == 0.5
    assert read_heartbeats([master, master], 10, 11).seconds == 1.0


def test_ends_of_processes_are_counted_by_place_though_nothing_was_seen_of_them() -> None:
    guard = {"ended": "os.kill", "file": "/srv/guard.py", "line": 9, "function": "check", "text": "kill()"}
    other = {**guard, "ended": "os._exit", "line": 4}
    lines = [
        {**one, "at": at}
        for one, at in ((guard, 10.1), (other, 10.2), (guard, 10.3), (guard, 10.4), (guard, 11.1))
    ]
    found = read_heartbeats(lines, 10, 11)
    assert (found.ends, found.seconds) == (4, 0.0)
    assert found.ended == (
        Called("/srv/guard.py:9", "check", "kill()", 0.75),
        Called("/srv/guard.py:4", "check", "kill()", 0.25),
    )


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"at": "now"},
        {"at": 10.5, "stall": "long", "places": []},
        {"at": 10.5, "stall": 0.1, "places": [{"frames": 3}]},
        {"at": 10.5, "stall": 0.0, "places": [{"frames": [{"file": "x"}], "seconds": 1}]},
        {"at": 10.5, "seen": 0.0, "samples": None},
        {"at": 10.5, "gc": None},
        {"at": 10.5, "ended": "os.kill", "file": "/srv/guard.py"},
    ],
)
def test_lines_that_are_no_heartbeats_are_passed_over(line: dict[str, object]) -> None:
    assert read_heartbeats([line, SEEN], 10, 11).threads == {"AnyIO worker thread": 7}


def sampled(*samples: ServerSample, seconds: float = 3.0) -> Measurement:
    found = measurement(trial())
    load, server = replace(found.load, duration_s=seconds), replace(found.server, samples=samples)
    return replace(found, load=load, server=server)


def test_stalls_and_collections_are_placed_from_the_beginning_of_the_load() -> None:
    lines: list[dict[str, object]] = [
        {"stall": 0.02, "at": 12.5, "places": [PLACE]},
        {"stall": 0.3, "at": 10.5, "places": [{**PLACE, "seconds": 0.2}, PLACE]},
        {"stall": 0.02, "at": 9.9, "places": [PLACE]},
        {"gc": 0.01, "at": 11.0, "generation": 0},
        {"gc": 0.01, "at": 14.0, "generation": 2},
        {"stall": "long", "at": 11.0, "places": 3},
    ]
    found = timeline(lines, 10.0, sampled())
    assert [stall.at_s for stall in found.stalls] == pytest.approx([0.5, 2.5])
    assert [(collection.at_s, collection.generation) for collection in found.collections] == [(1.0, 0)]
    assert len(found.stacks) == 1
    assert found.stacks[0][0].startswith("view (/srv/shop.py:3)")
    assert {stall.stack for stall in found.stalls} == {0}


def test_counters_are_shown_by_what_they_rose_since_the_sample_before() -> None:
    samples = (
        ServerSample(0.5, 0.25, 1, 1, 1, None, 2, overflows=3, throttled_s=0.1),
        ServerSample(1.0, 0.75, 1, 1, 1, None, 0, overflows=3, throttled_s=0.4),
        ServerSample(1.5, 0.75, 1, 1, 1, None, None),
    )
    counts = timeline([], 10.0, sampled(*samples)).counts
    assert [count.overflows for count in counts] == [3, 0, None]
    assert [count.throttled_s for count in counts] == [pytest.approx(0.1), pytest.approx(0.3), None]
    assert [count.cpus for count in counts] == pytest.approx([0.5, 1.0, 0.0])
