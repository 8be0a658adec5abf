"""What py-spy wrote, read: processes, threads, short paths, and what waits by its line of source."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from velodrome.model.profile import OPAQUE, WAITS
from velodrome.run.profiling import shorten_path, stacks_of

LIB = "/root/.pyenv/versions/3.11.7/lib/python3.11"
SITE = f"{LIB}/site-packages"
LINES = {
    ("selectors.py", 468): "    fd_event_list = self._selector.poll(timeout, max_ev)",
    ("asyncio/runners.py", 118): "    return self._loop.run_until_complete(task)",
    ("gunicorn/arbiter.py", 7): "    sig = self.SIG_QUEUE.get(block=True, timeout=timeout)",
    ("gunicorn/http/unreader.py", 96): "    return self.sock.recv(self.mxchunk)",
    ("asyncio/selector_events.py", 999): "    data = self._sock.recv(self.max_size)",
    ("gevent/hub.py", 5): "    loop.run()",
    ("bjoern.py", 48): "    _bjoern.server_run(*args)",
    ("concurrent/futures/thread.py", 81): "    work_item = work_queue.get(block=True)",
    ("uvicorn/server.py", 3): "    await asyncio.sleep(0.1)",
    ("django/urls.py", 4): "    return self.cache.get(key)",
    ("shop/names.py", 4): '    return ", ".join(names)',
    ("threading.py", 1002): "    self._target(*self._args, **self._kwargs)",
    ("socket.py", 293): "    fd, addr = self._accept()",
}


def line_of(file: str, line: int) -> str:
    return LINES.get((shorten_path(file), line), "")


def read(*frames: str, waits: bool = False) -> tuple[str, ...]:
    text = ";".join(['process 7:"python -m server"', "thread (7)", *frames]) + " 3\n"
    ((stack, count),) = stacks_of(text, line_of, waits, ticks=10).items()
    assert count == 3
    return stack


def test_paths_begin_with_the_package_and_lines_are_left_out() -> None:
    stack = read(f"run ({SITE}/uvicorn/main.py:5)", f"feed ({LIB}/asyncio/streams.py:9)")
    assert stack == ("process 7", "run (uvicorn/main.py)", "feed (asyncio/streams.py)")


@pytest.mark.parametrize(
    ("frame", "mark"),
    [
        (f"EpollSelector.select ({LIB}/selectors.py:468)", WAITS),
        (f"select ({LIB}/selectors.py:468)", WAITS),  # as Pythons before 3.11 call it
        (f"Runner.run ({LIB}/asyncio/runners.py:118)", OPAQUE),
        (f"Hub.run ({SITE}/gevent/hub.py:5)", OPAQUE),
        (f"server_run ({SITE}/bjoern.py:48)", OPAQUE),
        (f"Thread.run ({LIB}/threading.py:1002)", OPAQUE),
        (f"Arbiter.wait_for_signals ({SITE}/gunicorn/arbiter.py:7)", WAITS),
        (f"_worker ({LIB}/concurrent/futures/thread.py:81)", WAITS),
        (f"SocketUnreader.chunk ({SITE}/gunicorn/http/unreader.py:96)", WAITS),
        (f"socket.accept ({LIB}/socket.py:293)", WAITS),
        (f"_read_ready ({LIB}/asyncio/selector_events.py:999)", ""),
        (f"main_loop ({SITE}/uvicorn/server.py:3)", ""),
        (f"resolve ({SITE}/django/urls.py:4)", ""),
        ("names (/srv/app/shop/names.py:4)", ""),
    ],
)
def test_what_waits_is_named_by_the_line_that_runs(frame: str, mark: str) -> None:
    stack = read(frame)
    assert (stack[-1] if stack[-1].startswith("[") else "") == mark


@pytest.mark.parametrize("waits", [True, False])
def test_a_woven_handler_waits_where_its_recipe_does(waits: bool) -> None:
    assert (read("app (<velodrome wsgi sleep-50ms 1>:3)", waits=waits)[-1] == WAITS) == waits


def test_the_innermost_process_counts_and_a_command_may_hold_anything() -> None:
    text = 'process 1:"gunicorn";process 2:"python -c "import x; x.y()"";run (a.py:1) 4\n'
    assert stacks_of(text, line_of, False, 10) == {("process 2", "run (a.py)"): 4}


def test_a_thread_that_never_works_is_left_out_where_others_do() -> None:
    select = f"select ({LIB}/selectors.py:468)"
    text = f'process 1:"a";thread (1);{select} 10\nprocess 2:"b";thread (2);work (b.py:1) 4\n'
    text += f'process 2:"b";thread (2);{select} 6\n'
    assert {stack[0] for stack in stacks_of(text, line_of, False, 10)} == {"process 2"}
    alone = f'process 1:"a";thread (1);{select} 10\n'
    assert sum(stacks_of(alone, line_of, False, 10).values()) == 10


def test_a_line_py_spy_would_not_write_is_refused() -> None:
    for text in ("hello", 'process 1:"a";no frame 3', "run (a.py:1) 3"):
        with pytest.raises(ValueError, match="of the profile"):
            stacks_of(text, line_of, False, 10)


@given(some.text())
def test_no_text_does_harm(text: str) -> None:
    try:
        stacks_of(text, line_of, False, 10)
    except ValueError:
        return
