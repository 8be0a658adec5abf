"""The treatments of a server's life: each takes hold where it meets what it changes, and is noted only there."""

import os
import sys

import pytest
from tests.guest.injected.conftest import Injected

GUNICORN_WORKER = """
import sys

class Worker:
    def __init__(self, count):
        self.max_requests = count or sys.maxsize

    def load_wsgi(self):
        self.wsgi = app

def app(environ, start_response):
    return work(environ)
"""
ARBITER = """
class Arbiter:
    def setup(self, app):
        print("preload", app.cfg.preload_app)
"""
UVICORN = """
async def app(scope, receive, send):
    await work(scope)

class Config:
    def __init__(self, workers=1, limit_max_requests=None):
        self.workers, self.limit_max_requests = workers, limit_max_requests

    def load(self):
        self.loaded_app = app
"""


def package(injected: Injected, name: str, files: dict[str, str]) -> None:
    for path, source in files.items():
        file = injected.app / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / "__init__.py").touch()
        file.write_text(source)
    (injected.app / name / "__init__.py").touch()


def test_workers_are_replaced_after_so_many_requests_where_somebody_replaces_them(injected: Injected) -> None:
    package(injected, "gunicorn", {"workers/base.py": GUNICORN_WORKER})
    package(injected, "uvicorn", {"config.py": UVICORN})
    program = """
        from gunicorn.workers.base import Worker
        from uvicorn.config import Config
        two, alone = Config(2), Config(1)
        two.load(); alone.load()
        print(Worker(0).max_requests, two.limit_max_requests, alone.limit_max_requests)
    """
    assert injected.run(program, {}) == f"{sys.maxsize} None None\n"
    assert injected.took() == set()
    assert injected.run(program, {"max-requests": 7}) == "7 7 None\n"
    assert injected.took() == {"max-requests"}


def test_a_jitter_is_for_workers_that_count_their_requests_alone(injected: Injected) -> None:
    package(injected, "gunicorn", {"workers/base.py": GUNICORN_WORKER})
    program = """
        import sys
        from gunicorn.workers.base import Worker
        print({count} and sorted({bool(100 <= Worker(100).max_requests <= 200) for _ in range(9)}))
        print(Worker({count}).max_requests == sys.maxsize, len({Worker({count}).max_requests for _ in range(20)}) > 1)
    """
    assert injected.run(program.replace("{count}", "0"), {"jitter": True}) == "0\nTrue False\n"
    assert injected.took() == set()
    assert injected.run(program.replace("{count}", "100"), {"jitter": True}) == "[True]\nFalse True\n"
    assert injected.took() == {"jitter"}


def test_an_app_that_gunicorn_would_import_before_the_fork_is_imported_in_each_worker(
    injected: Injected,
) -> None:
    package(injected, "gunicorn", {"arbiter.py": ARBITER})
    program = """
        from gunicorn.arbiter import Arbiter
        class App:
            class cfg:
                preload_app = {preload}
                @classmethod
                def set(cls, name, value):
                    setattr(cls, name, value)
        Arbiter().setup(App)
    """
    assert injected.run(program.replace("{preload}", "False"), {"preload": "off"}) == "preload False\n"
    assert injected.took() == set()
    assert injected.run(program.replace("{preload}", "True"), {"preload": "off"}) == "preload False\n"
    assert injected.took() == {"preload"}


@pytest.mark.skipif(sys.platform != "linux", reason="epoll")
@pytest.mark.parametrize("version", [None, "3.8"])
def test_a_loop_of_before_a_fork_serves_in_the_child_with_an_epoll_of_its_own(
    injected: Injected, version: str | None
) -> None:
    program = """
        import asyncio, os, socket
        async def handle(reader, writer):
            writer.write(await reader.readline())
            await writer.drain()
            writer.close()
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        server = loop.run_until_complete(asyncio.start_server(handle, "127.0.0.1", 0))
        port = server.sockets[0].getsockname()[1]
        before = loop._selector.fileno(), loop._ssock.getsockname()
        def fetch():
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(b"hello\\n")
                return client.recv(9)
        child = os.fork()
        if not child:
            # In the child by a thread of its own: it also has to be woken by one.
            reply = loop.run_until_complete(loop.run_in_executor(None, fetch))
            os._exit(0 if reply == b"hello\\n" else 1)
        print(os.waitpid(child, 0)[1], loop.run_until_complete(loop.run_in_executor(None, fetch)))
    """
    assert injected.run(program, {"own-epoll": True}, version) == "0 b'hello\\n'\n"
    assert injected.took() == {"own-epoll"}


@pytest.mark.skipif(sys.platform == "win32", reason="limits")
def test_the_limit_of_open_files_is_raised_and_raised_again_when_the_app_is_warm(injected: Injected) -> None:
    program = """
        import os, resource, time
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (60, hard))
        open(os.path.join({seen!r}, "warm"), "w").close()
        until = time.monotonic() + 20
        while resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 500 and time.monotonic() < until:
            time.sleep(0.01)
        print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    """.replace("{seen!r}", repr(str(injected.seen)))
    assert injected.run(program, {"open-files": 500}) == "500\n"
    assert injected.took() == {"open-files"}


@pytest.mark.skipif(sys.platform != "linux", reason="affinity")
def test_a_server_is_held_to_fewer_cpus_where_it_has_more(injected: Injected) -> None:
    program = "import os; print(len(os.sched_getaffinity(0)))"
    assert injected.run(program, {"cpus": 1}) == "1\n"
    assert injected.took() == ({"cpus"} if len(os.sched_getaffinity(0)) > 1 else set())


def test_live_objects_are_counted_when_the_host_asks_for_it_in_each_process(injected: Injected) -> None:
    program = """
        import json, os, time
        seen, parent = {seen!r}, os.getpid()
        def counted(number, pid):
            open(os.path.join(seen, "count-%d" % number), "w").close()
            file, until = os.path.join(seen, "blocks-%d.jsonl" % pid), time.monotonic() + 20
            while time.monotonic() < until:
                time.sleep(0.02)
                lines = open(file).read().splitlines() if os.path.exists(file) else []
                blocks = [json.loads(line)["blocks"] for line in lines if json.loads(line)["number"] == number]
                if blocks: return blocks[0]
        if os.fork() == 0:
            first = counted(0, os.getpid())
            kept = [[] for _ in range(10_000)]
            loops = [[] for _ in range(10_000)]
            for loop in loops: loop.append(loop)
            del loops, loop
            print(9_000 < counted(1, os.getpid()) - first < 12_000)
            del kept
            print(abs(counted(2, os.getpid()) - first) < 1_000)
        else:
            os.wait()
            print(abs(counted(2, parent) - counted(0, parent)) < 1_000)
    """.replace("{seen!r}", repr(str(injected.seen)))
    assert injected.run(program, {"live-blocks": True}) == "True\n" * 3


def test_requests_that_are_the_same_reach_the_app_behind_the_first_and_others_beside_it(
    injected: Injected,
) -> None:
    package(injected, "uvicorn", {"config.py": "from served import work\n" + UVICORN})
    package(injected, "gunicorn", {"workers/base.py": "from served import sync as work\n" + GUNICORN_WORKER})
    (injected.app / "served.py").write_text(
        "import asyncio, time\n"
        "most, now, cache, calls = 0, 0, set(), []\n"
        "async def work(scope):\n"
        "    if scope['path'] in cache: return\n"
        "    calls.append(scope['path'])\n"
        "    await asyncio.sleep(0.05)\n"
        "    cache.add(scope['path'])\n"
        "def sync(environ):\n"
        "    if environ['PATH_INFO'] in cache: return []\n"
        "    calls.append(environ['PATH_INFO'])\n"
        "    time.sleep(0.05)\n"
        "    cache.add(environ['PATH_INFO'])\n"
        "    return []\n"
    )
    program = """
        import asyncio
        from concurrent.futures import ThreadPoolExecutor
        from gunicorn.workers.base import Worker
        from uvicorn.config import Config
        import served
        config, worker = Config(), Worker(0)
        config.load(); worker.load_wsgi()
        async def main():
            paths = ["/one"] * 4 + ["/two"] * 4
            scopes = [{"type": "http", "method": "GET", "path": path, "query_string": b""} for path in paths]
            await asyncio.gather(*(config.loaded_app(scope, None, None) for scope in scopes))
        asyncio.run(main())
        with ThreadPoolExecutor(8) as pool:
            environs = [{"REQUEST_METHOD": "GET", "PATH_INFO": path} for path in ["/three", "/four"] * 4]
            list(pool.map(lambda environ: worker.wsgi(environ, None), environs))
        print(*sorted(served.calls))
    """
    assert injected.run(program, {"single-flight": True}) == "/four /one /three /two\n"
    assert injected.took() == {"single-flight"}


def test_threads_that_a_fork_leaves_behind_are_in_what_the_childs_heartbeat_says(injected: Injected) -> None:
    program = """
        import json, os, pathlib, threading, time
        folder = pathlib.Path(json.loads(os.environ["VELODROME_INJECTED"])["folder"])
        def wait_until_reported():
            mine, until = folder / f"heart-{os.getpid()}.jsonl", time.monotonic() + 20
            while time.monotonic() < until and not (mine.exists() and '"seen"' in mine.read_text()):
                time.sleep(0.02)
        threading.Thread(target=time.sleep, args=(30,), name="sender", daemon=True).start()
        child = os.fork()
        if not child:
            wait_until_reported()
            os._exit(0)
        os.waitpid(child, 0)
        wait_until_reported()
        print(child)
    """
    child = int(injected.run(program, {"heartbeat": {"late_s": 0.5}}))
    assert child
    left_behind = {tuple(line["left_behind"]) for line in injected.lines("heart") if "seen" in line}
    assert left_behind == {(), ("sender",)}


def test_what_is_left_is_told_by_the_line_of_the_apps_own_that_allocates_it(injected: Injected) -> None:
    (injected.app / "shop.py").write_text(
        "import json\nkept = []\n"
        "def keep(): kept.append(json.loads('[' + '1.5, ' * 99 + '1.5]'))\n"
        "def lose(): return bytes(100_000)\n"
    )
    program = """
        import glob, json, os, time
        import shop
        def ask(what, key):
            open(os.path.join({seen!r}, what), "x").close()
            until = time.monotonic() + 10
            while time.monotonic() < until:
                for name in glob.glob(os.path.join({seen!r}, "traced-*.jsonl")):
                    for line in open(name):
                        if key in line:
                            return json.loads(line)
                time.sleep(0.01)
        [shop.keep() for _ in range(100)]
        ask("trace-begin", "began")
        for _ in range(50):
            shop.keep()
            shop.lose()
        first = ask("trace-end", "kept")["kept"][0]
        print(os.path.basename(first["file"]), first["line"], first["blocks"] >= 50, first["bytes"] > 50 * 2400)
        print(first["text"].startswith("def keep"), first["bytes"] < 75 * 4000)
    """.replace("{seen!r}", repr(str(injected.seen)))
    assert injected.run(program, {"allocations": True}) == "shop.py 3 True True\nTrue True\n"
