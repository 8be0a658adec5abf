"""What the doctor puts into a process takes hold there, is noted, changes no answer, and leaves nothing behind."""

import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.guest.injected.conftest import HEARTBEAT, Injected

from velodrome.guest.injected.bounds import BEYOND
from velodrome.guest.injected.giving import WARM
from velodrome.guest.injected.heartbeat import EXECUTORS
from velodrome.model.errors import InterpreterNotFoundError
from velodrome.run.environments.interpreter import find_interpreter

BLOCKING = """
import asyncio, time

def fetch():
    time.sleep(0.03)
    return 1

async def view():
    return fetch()

async def main():
    return sum(await asyncio.gather(*(view() for _ in range(4))))
"""


def column(line: int, call: str) -> dict[str, int]:
    begin = BLOCKING.splitlines()[line - 1].index(call)
    return {"line": line, "end_line": line, "column": begin, "end_column": begin + len(call)}


def test_a_call_is_moved_to_a_thread_and_no_bytecode_of_that_is_kept(injected: Injected) -> None:
    (injected.app / "shop.py").write_text(BLOCKING)
    program = """
        import asyncio, shop, time
        began = time.monotonic()
        print(asyncio.run(shop.main()))
    """
    site = {"file": str(injected.app / "shop.py"), **column(9, "fetch()")}
    assert injected.run(program, {"in-thread": [site]}) == "4\n"
    assert injected.took() == {"in-thread"}
    assert not list(injected.app.rglob("shop*.pyc"))
    assert injected.run(program, {}) == "4\n"


def test_calls_that_flush_a_file_or_print_are_left_out_and_others_of_the_same_name_are_made(
    injected: Injected,
) -> None:
    lines = (
        "def record(file, session):",
        "    file.flush()",
        "    print('recorded')",
        "    return session.flush()",
    )
    (injected.app / "shop.py").write_text("\n".join(lines))
    program = """
        import os, shop
        class Session:
            def flush(self):
                return 7
        file = open(os.environ["RECORDS"], "w")
        file.write("one")
        print(shop.record(file, Session()), os.path.getsize(os.environ["RECORDS"]))
    """
    records = str(injected.seen / "records")
    sites = [{"file": str(injected.app / "shop.py"), "line": line, "end_line": line} for line in (2, 3, 4)]
    assert injected.run(program, {}, RECORDS=records) == "recorded\n7 3\n"
    assert injected.run(program, {"unflushed": sites[2:]}, RECORDS=records) == "recorded\n7 3\n"
    assert injected.took() == set()
    assert injected.run(program, {"unflushed": sites}, RECORDS=records) == "7 0\n"
    assert injected.took() == {"unflushed"}


def test_a_call_in_a_method_takes_longer_as_one_in_a_function_does(injected: Injected) -> None:
    method = "class Board:\n    def prices(self):\n        return self.read()\n    def read(self):\n        return 1\n"
    (injected.app / "shop.py").write_text(method)
    site = {"file": str(injected.app / "shop.py"), "line": 3, "end_line": 3, "more_s": 0.05}
    program = """
        import shop, time
        began = time.monotonic()
        print(shop.Board().prices(), time.monotonic() - began >= 0.05)
    """
    assert injected.run(program, {"longer": [site]}) == "1 True\n"
    assert injected.took() == {"longer"}


def test_a_heartbeat_names_the_line_that_blocks_the_loop(injected: Injected) -> None:
    (injected.app / "shop.py").write_text(BLOCKING)
    injected.run(
        "import asyncio, shop\nfor _ in range(3): asyncio.run(shop.main())", {"heartbeat": {"late_s": 0.008}}
    )
    stalls = [line for line in injected.lines("heart") if "stall" in line]
    places = [place for line in stalls for place in line["places"]]
    own = [next(frame for frame in place["frames"] if frame["own"]) for place in places if place["frames"]]
    assert {(Path(frame["file"]).name, frame["line"]) for frame in own} <= {("shop.py", 5), ("shop.py", 6)}
    assert ("shop.py", 5) in {(Path(frame["file"]).name, frame["line"]) for frame in own}
    blocked, ran = (sum(place[name] for place in places) for name in ("blocked_s", "ran_s"))
    assert blocked > ran


def test_a_loop_that_computes_is_late_and_not_blocked(injected: Injected) -> None:
    program = """
        import asyncio, time
        async def main():
            until = time.thread_time() + 0.3
            while time.thread_time() < until: pass
            await asyncio.sleep(0.05)
        asyncio.run(main())
    """
    injected.run(program, {"heartbeat": {"late_s": 0.008}})
    places = [place for line in injected.lines("heart") for place in line.get("places", ())]
    assert sum(place["ran_s"] for place in places) > sum(place["blocked_s"] for place in places)


WAITING = """
import asyncio

async def get(what):
    await asyncio.sleep(0.1)
    return what

async def view():
    price = await get("price")
    stock = await get("stock")
    return price, stock
"""
CONNECTING = """
    import asyncio, json, os, shop, zlib
    folder = json.loads(os.environ["VELODROME_INJECTED"])["folder"]
    LAST = 60_999 - zlib.crc32(folder.encode()) % (28_231 // 32) * 32
    async def main():
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        for _ in range(3):
            print(await shop.view())
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            print(LAST - 32 < writer.get_extra_info("sockname")[1] <= LAST)
            writer.close()
            await writer.wait_closed()
        await asyncio.sleep(0.5)
    asyncio.run(main())
"""


def test_a_heartbeat_goes_on_where_code_has_no_lines(injected: Injected) -> None:
    # As some that is generated, such as a template that jinja2 has compiled.
    program = """
        import asyncio, time
        def hold(): time.sleep(0.05)
        hold.__code__ = hold.__code__.replace(co_linetable=b"")
        async def main():
            until = time.monotonic() + 1.2
            while time.monotonic() < until:
                hold()
                await asyncio.sleep(0)
        asyncio.run(main())
    """
    injected.run(program, {"heartbeat": {"late_s": 0.008}})
    lines = injected.lines("heart")
    assert sum("stall" in line for line in lines) > 3
    assert any("seen" in line for line in lines)


def test_a_heartbeat_tells_where_tasks_wait_and_how_often_they_connect(injected: Injected) -> None:
    (injected.app / "shop.py").write_text(WAITING)
    injected.run(CONNECTING, {"heartbeat": {"late_s": 0.5}})
    seen = [line for line in injected.lines("heart") if "seen" in line]
    waits = {wait["text"]: wait for line in seen for wait in line["waits"]}
    assert waits["await asyncio.sleep(0.1)"]["inner"]
    outer = waits['price = await get("price")']
    assert not outer["inner"]
    assert (outer["run"]["line"], outer["run"]["end_line"], outer["run"]["awaits"]) == (9, 10, 2)
    assert sum(sum(line["connects"].values()) for line in seen) == 3


def test_a_heartbeat_tells_which_awaits_are_of_a_lock(injected: Injected) -> None:
    (injected.app / "locked.py").write_text(LOCKED)
    injected.run("import locked; locked.begin()", {"heartbeat": {"late_s": 0.5}})
    seen = [line for line in injected.lines("heart") if "seen" in line]
    waits = [wait for line in seen for wait in line["waits"] if wait["inner"]]
    assert {wait["text"] for wait in waits if wait["locks"]} == {"async with turn:"}
    assert max(wait["most"] for wait in waits if wait["locks"]) == 3


LOCKED = """
import asyncio
async def call(turn):
    async with turn:
        await asyncio.sleep(0.3)
async def main():
    turn, three = asyncio.Lock(), asyncio.Semaphore(3)
    await asyncio.gather(*(call(turn) for _ in range(4)), *(bounded(three) for _ in range(6)))
async def bounded(three):
    async with three:
        await asyncio.sleep(0.4)
def begin():
    asyncio.run(main())
"""


def test_awaits_in_turn_run_at_once_and_connections_choose_among_few_ports(injected: Injected) -> None:
    (injected.app / "shop.py").write_text(WAITING)
    run = {"file": str(injected.app / "shop.py"), "line": 9, "end_line": 10}
    sentence = injected.run(CONNECTING, {"gathered": [run], "few-ports": 32})
    assert sentence == "('price', 'stock')\nTrue\n" * 3
    assert injected.took() == {"gathered", "few-ports"}


def test_few_ports_are_also_those_of_connections_that_are_bound_to_an_address(injected: Injected) -> None:
    program = """
        import socket
        server = socket.create_server(("127.0.0.1", 0), backlog=128)
        kept = []
        try:
            while len(kept) < 40:
                kept.append(socket.create_connection(server.getsockname(), 1, ("127.0.0.1", 0)))
        except OSError as error:
            print(type(error).__name__, len(kept) <= 32)
    """
    assert injected.run(program, {"few-ports": 32}) == "OSError True\n"
    assert injected.took() == {"few-ports"}


def test_the_default_executor_gets_more_threads_and_an_own_one_is_left(injected: Injected) -> None:
    program = """
        import asyncio, threading
        from concurrent.futures import ThreadPoolExecutor
        async def main(own):
            loop = asyncio.get_running_loop()
            if own: loop.set_default_executor(ThreadPoolExecutor(2))
            gate = threading.Barrier(2 if own else 50)
            await asyncio.gather(*(loop.run_in_executor(None, gate.wait, 5) for _ in range(gate.parties)))
        asyncio.run(main(own={own}))
    """
    injected.run(program.replace("{own}", "True"), {"default-executor": 60})
    assert injected.took() == set()
    injected.run(program.replace("{own}", "False"), {"default-executor": 60})
    assert injected.took() == {"default-executor", "default-executor" + BEYOND}


def test_accepted_connections_get_nodelay(injected: Injected) -> None:
    program = """
        import socket
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        client = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
        print(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0)
    """
    assert injected.run(program, {}) == "False\n"
    assert injected.run(program, {"nodelay": True}) == "True\n"
    assert injected.took() == {"nodelay"}


def test_records_of_logging_are_turned_off(injected: Injected) -> None:
    program = """
        import logging, sys
        logging.basicConfig(stream=sys.stdout, level=logging.INFO)
        logging.info("one record")
    """
    assert "one record" in injected.run(program, {})
    assert injected.run(program, {"logging": "off"}) == ""


def test_handlers_of_logging_are_called_by_a_thread_of_their_own(injected: Injected) -> None:
    program = """
        import logging, threading
        called, there = [], threading.Event()
        class Slow(logging.Handler):
            def emit(self, record):
                called.append((record.getMessage(), threading.current_thread() is threading.main_thread()))
                there.set()
        logging.getLogger().addHandler(Slow())
        changing = [1]
        logging.warning("one record of %s", changing)
        changing.append(2)
        there.wait(20)
        print(called)
    """
    assert injected.run(program, {}) == "[('one record of [1]', True)]\n"
    assert injected.run(program, {"logging": "queued"}) == "[('one record of [1]', False)]\n"
    assert injected.took() == {"logging"}


def test_records_that_handlers_are_too_slow_for_do_not_fill_the_memory(injected: Injected) -> None:
    program = """
        import logging, threading, time
        held, called = threading.Event(), []
        class Stuck(logging.Handler):
            def emit(self, record):
                held.wait(20)
                called.append(record)
        logging.getLogger().addHandler(Stuck())
        for number in range(3000):
            logging.warning("record %d", number)
        held.set()
        until = time.monotonic() + 20
        while len(called) < 1000 and time.monotonic() < until: time.sleep(0.01)
        print(1000 <= len(called) <= 1001)  # those of the queue, and the one that the handler had
    """
    assert injected.run(program, {"logging": "queued"}) == "True\n"


def test_what_is_there_when_the_app_is_warm_is_frozen(injected: Injected) -> None:
    (injected.seen / WARM).touch()
    program = """
        import gc, os, pathlib, time
        seen = pathlib.Path(os.environ["SEEN"])
        noted = lambda: any(path.read_text().endswith("\\n") for path in seen.glob("took-*.jsonl"))
        until = time.monotonic() + 20
        while not noted() and time.monotonic() < until: time.sleep(0.01)
        print(gc.get_freeze_count() > 0)
    """
    assert injected.run(program, {"collector": "freeze"}, SEEN=str(injected.seen)) == "True\n"
    assert injected.took() == {"collector"}


def test_long_collections_are_timed_in_each_process(injected: Injected) -> None:
    program = """
        import gc, os
        kept = [[number] for number in range(300_000)]
        gc.collect()
        if os.fork() == 0:
            gc.collect()
            os._exit(0)
        os.wait()
        print(os.getpid())
    """
    parent = int(injected.run(program, {"collections": True}))
    lines = [line for line in injected.lines("gc") if line["generation"] == 2]
    assert {line["pid"] == parent for line in lines} == {True, False}
    assert all(0.001 <= line["gc"] < 20 for line in lines)


@pytest.mark.skipif(sys.platform != "linux", reason="needs the CPU time of threads")
def test_a_thread_that_waits_in_what_nobody_knows_is_idle_and_an_own_get_that_computes_is_not(
    injected: Injected,
) -> None:
    (injected.app / "shop.py").write_text(
        "import time\n\ndef get():\n    until = time.monotonic() + 1.5\n"
        "    while time.monotonic() < until: sum(range(1000))\n"
    )
    program = "import shop, threading, time; threading.Thread(target=shop.get).start(); time.sleep(2.2)"
    injected.run(program, HEARTBEAT)
    seen = [line for line in injected.lines("heart") if "seen" in line]
    own = sum(call["seconds"] for line in seen for call in line["calls"] if call["file"].endswith("shop.py"))
    assert own > 0.5
    # With the one that sleeps it would be no more than two thirds.
    assert own > 0.8 * sum(line["samples"].get("all", 0.0) for line in seen)


def test_a_thread_that_waits_since_before_the_load_is_not_busy_and_one_that_waits_anew_is(
    injected: Injected,
) -> None:
    (injected.app / "shop.py").write_text(
        "import os, time\n\ndef listen(end): os.read(end, 1)\n\ndef ask(): time.sleep(0.2)\n"
    )
    program = """
        import os, shop, threading, time
        threading.Thread(target=shop.listen, args=(os.pipe()[0],), daemon=True).start()
        time.sleep(0.3)
        open({warm!r}, "w").close()
        time.sleep(0.3)
        for _ in range(8): shop.ask()
    """.replace("{warm!r}", repr(str(injected.seen / WARM)))
    injected.run(program, HEARTBEAT)
    seen = [line for line in injected.lines("heart") if "seen" in line][1:]
    seconds = Counter[int]()
    for line in seen:
        for call in line["calls"]:
            if call["file"].endswith("shop.py"):
                seconds[call["line"]] += call["seconds"]
    assert seconds[5] > 0.5
    assert seconds[3] < 0.3 * seconds[5]


def test_the_sitecustomize_of_the_app_is_imported_all_the_same(injected: Injected) -> None:
    (injected.app / "sitecustomize.py").write_text("import builtins\nbuiltins.there = 'theirs'\n")
    assert injected.run("print(there)", {"nodelay": True}) == "theirs\n"


@pytest.mark.parametrize("version", ["3.7", "3.8", "3.13"])
def test_it_runs_on_old_and_new_interpreters(injected: Injected, version: str) -> None:
    try:
        find_interpreter(version)
    except InterpreterNotFoundError:
        pytest.skip(f"there is no Python {version} here; install one with: uv python install {version}")
    (injected.app / "shop.py").write_text(BLOCKING)
    longer = {"file": str(injected.app / "shop.py"), "line": 5, "end_line": 5, "more_s": 0.001}
    give = {"longer": [longer], "heartbeat": {"late_s": 0.008}, "nodelay": True, "logging": "off"}
    assert injected.run("import asyncio, shop; print(asyncio.run(shop.main()))", give, version) == "4\n"
    assert "longer" in injected.took()


def test_what_is_not_there_is_looked_for_once_where_nothing_is_done_with_it(injected: Injected) -> None:
    program = """
        import sys
        class Last:
            looked = 0
            def find_spec(self, name, path, target=None):
                self.looked += name == "nowhere"
        last = Last()
        sys.meta_path.append(last)
        for _ in range(3):
            try: import nowhere
            except ImportError: pass
        import ssl
        print(last.looked)
    """
    assert injected.run(program, {"tls-context": "shared"}) == "3\n"


TURNS = """
import re, sqlite3, threading, time

began, built = time.monotonic(), []

def serve():
    database, number = sqlite3.connect(":memory:"), 0
    while time.monotonic() - began < 2.5:
        for _ in range(150):
            database.execute("SELECT 1").fetchone()  # gives up the interpreter's lock
        before, number = time.thread_time(), number + 1
        re._compiler.compile("|".join("a%d[b-f]+" % (number + i) for i in range(6)))
        built.append(time.thread_time() - before)

threads = [threading.Thread(target=serve) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sum(built) / (time.monotonic() - began))
"""


def test_what_computes_is_seen_among_threads_that_wait_for_the_interpreters_lock(injected: Injected) -> None:
    true = float(injected.run(TURNS, {"heartbeat": {"late_s": 1.0}}))
    seen = [line for line in injected.lines("heart") if "seen" in line]
    seconds = sum(line["seen"] for line in seen)
    computing = sum(line["computing"].get("building-pattern", 0.0) for line in seen) / seconds
    assert 0.6 * true < computing < 1.5 * true, (true, computing)


POOLED = """
import asyncio, sqlite3, time

async def handle(free):
    db = await free.get()
    await asyncio.sleep(0.05)
    free.put_nowait(db)

async def main():
    free, until = asyncio.Queue(), time.monotonic() + 1.6
    for _ in range(2):
        free.put_nowait(sqlite3.connect(":memory:"))
    while time.monotonic() < until:
        await asyncio.gather(*(handle(free) for _ in range(8)))
"""


def test_what_tasks_hold_of_a_database_while_they_wait_is_named(injected: Injected) -> None:
    (injected.app / "shop.py").write_text(POOLED)
    injected.run("import asyncio, shop; asyncio.run(shop.main())", HEARTBEAT)
    waits = [wait for line in injected.lines("heart") if "seen" in line for wait in line["waits"]]
    holds = {(wait["line"], wait["holds"]) for wait in waits if wait["function"] == "handle"}
    assert (6, "db (sqlite3.Connection)") in holds
    assert {held for line, held in holds if line == 5} == {""}


def test_what_is_not_there_is_no_longer_looked_for_and_fails_as_before(injected: Injected) -> None:
    (injected.app / "folder").mkdir()
    (injected.app / "folder/there.py").write_text("answer = 4")
    program = """
        import importlib.util, sys
        class Counting:
            looked = []
            def find_spec(self, name, path, target=None):
                self.looked.append(name)
        class Behind:
            def find_spec(self, name, path, target=None):
                if name == "there_later": return importlib.util.spec_from_file_location(name, "folder/there.py")
        sys.meta_path.insert(0, Counting())
        sys.meta_path.append(Behind())
        def tried(name):
            try: return __import__(name).__name__
            except ModuleNotFoundError as error: return error.name
        print([tried("nowhere") for _ in range(6)], Counting.looked.count("nowhere"))
        print(importlib.util.find_spec("nowhere"), tried("there_later"))
        for _ in range(5):
            try: from folder import missing
            except ImportError: pass
        from folder import there
        print(Counting.looked.count("folder.missing"), there.answer)
    """
    expected = f"{['nowhere'] * 6} %d\nNone there_later\n%d 4\n"
    assert injected.run(program, {}) == expected % (6, 5)
    assert injected.took() == set()
    assert injected.run(program, {"failing-imports": True}) == expected % (3, 3)
    assert injected.took() == {"failing-imports"}


def test_a_heartbeat_tells_where_imports_that_fail_are_made_and_which_lines_threads_are_in(
    injected: Injected,
) -> None:
    (injected.app / "shop.py").write_text(
        "def price():\n    try:\n        import nowhere\n    except ImportError:\n        return 4\n"
    )
    program = """
        import shop, time
        until = time.monotonic() + 1.2
        while time.monotonic() < until: shop.price()
    """
    injected.run(program, {"heartbeat": {"late_s": 0.008}})
    calls = [call for line in injected.lines("heart") for call in line.get("calls", ())]
    assert {Path(call["file"]).name for call in calls} == {"shop.py"}
    for mark in ("importing", "own code"):
        most = max((call for call in calls if call["mark"] == mark), key=lambda call: float(call["seconds"]))
        assert (most["line"], most["text"]) == (3, "import nowhere")


@pytest.mark.parametrize("loop", ["asyncio", "uvloop==0.21.0", "uvloop==0.23.0"])
def test_the_threads_of_a_loops_default_executor_are_counted_whatever_they_are_called(
    injected: Injected, loop: str
) -> None:
    package = loop.partition("=")[0]
    program = f"""
        import asyncio, {package}, time
        async def main():
            await asyncio.gather(*(asyncio.to_thread(time.sleep, 0.9) for _ in range(3)))
        loop = {package}.new_event_loop()
        loop.run_until_complete(main())
    """
    injected.run(program, {"heartbeat": {"late_s": 0.02}}, requires=() if loop == package else (loop,))
    counts = [line["threads"] for line in injected.lines("heart") if "threads" in line]
    assert max(count.get(pool, 0) for count in counts for pool in EXECUTORS) == 3
