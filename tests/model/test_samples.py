"""What samples of stacks tell: text and back, waiting, depth, and whose code runs."""

import pytest

from velodrome.model import profile

LOOP = ("process 1", "main (app.py)", "_run_once (asyncio/base_events.py)")
TURN = (*LOOP, "Handle._run (asyncio/events.py)")
SELECT = (*LOOP, "EpollSelector.select (selectors.py)", profile.WAITS)
PARSES = (*TURN, "data_received (uvicorn/protocols/http/h11_impl.py)", "next_event (h11/_connection.py)")
WRITES = (*TURN, "data_received (aiohttp/web_protocol.py)", "write (asyncio/selector_events.py)")
OWN = (*TURN, "get (<velodrome tornado hello 1>)")
UVLOOP = ("process 1", "Runner.run (asyncio/runners.py)", profile.OPAQUE)


def test_text_and_back() -> None:
    stacks = {SELECT: 9, PARSES: 2}
    assert profile.dump(stacks).startswith("process 1;main (app.py);")
    assert profile.parse(profile.dump(stacks)) == stacks


@pytest.mark.parametrize("text", ["x", "a;b c", " 3", "a;b -1"])
def test_a_line_that_is_no_stack_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="line 1 is no stack"):
        profile.parse(text)


def test_shares_are_of_what_was_seen_and_depth_is_of_those_at_work() -> None:
    shape = profile.shape({SELECT: 5, UVLOOP: 1, PARSES: 3, OWN: 1})
    assert (shape.samples, shape.idle_share, shape.opaque_share) == (10, 0.6, 0.1)
    assert shape.depth_mean == pytest.approx((3 * 5 + 1 * 4) / 4)
    assert shape.depth_max == 5
    assert shape.by_part == {"HTTP": 0.75, "handler": 0.25}
    assert shape.by_package == {"h11": 0.75, "handler": 0.25}


def test_nothing_sampled_tells_nothing() -> None:
    shape = profile.shape({})
    assert (shape.idle_share, shape.depth_mean, shape.depth_max) == (None, None, None)


@pytest.mark.parametrize(
    ("stack", "package", "part"),
    [
        (PARSES, "h11", "HTTP"),
        (WRITES, "aiohttp", "HTTP"),
        (OWN, "handler", "handler"),
        (LOOP, "asyncio", "event loop"),
        (("process 1", "run (gunicorn/workers/sync.py)", "accept (socket.py)"), "gunicorn", "server"),
        (("process 1", "get (aiohttp/web_urldispatcher.py)"), "aiohttp", "framework"),
        (("process 1", "get (aiohttp/client.py)"), "aiohttp", "driver"),
        (("process 1", "fetch (asyncpg/connection.py)"), "asyncpg", "driver"),
        (("process 1", "run (shop/views.py)"), "shop", "other"),
        (("process 1", "view (views.py)"), "handler", "handler"),
        (("process 1", "start (tornado/platform/asyncio.py)"), "tornado", "event loop"),
    ],
)
def test_a_stack_is_of_the_innermost_package_below_the_last_turn_of_the_loop(
    stack: profile.Stack, package: str, part: str
) -> None:
    frames = profile.frames(stack)
    assert (profile.package(frames), profile.part_of(frames)) == (package, part)


@pytest.mark.parametrize(
    ("count", "idle", "opaque", "shown"),
    [
        (998, 0.997, 0.997, False),  # granian works in Rust: three samples
        (40, 0.0, 0.0, False),
        (4000, 0.98, 0.98, False),  # enough, and next to nothing of what may have been at work
        (4000, 0.98, 0.0, True),  # threads of a pool that wait
        (500, 0.5, 0.4, True),
        (0, None, None, False),
    ],
)
def test_where_work_goes_is_reported_only_where_enough_of_it_was_seen(
    count: int, idle: float | None, opaque: float | None, shown: bool
) -> None:
    assert profile.shows_work(count, idle, opaque) is shown
