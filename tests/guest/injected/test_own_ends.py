"""An app that ends a process of its own is heard, with the line, and let go on; all other ends are as they were."""

import os

import pytest
from tests.guest.injected.conftest import HEARTBEAT, Injected

GIVE = {"own-ends": True}
PROGRAM = """
    import os, signal, socket, sys
    os.setsid()  # what is to be left out would end the tests
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    import shop
    {act}
    print("goes on")
"""
SHOP = """
import multiprocessing, os, signal, subprocess, sys, threading

def end():
    END

def in_a_child(end=end):
    pid = os.fork()
    if pid == 0:
        end()
        print("runs on in the child", flush=True)
        os._exit(9)
    status = os.waitpid(pid, 0)[1]
    print(os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status), end=" ", flush=True)

def in_a_thread():
    thread = threading.Thread(target=end)
    thread.start()
    thread.join()

def of_multiprocessing():
    child = multiprocessing.get_context("fork").Process(target=print, args=("child",), kwargs={"flush": True})
    child.start()
    child.join()
    print(child.exitcode, end=" ", flush=True)

def of_another():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    os.kill(child.pid, signal.SIGTERM)
    print(child.wait(), end=" ", flush=True)

def told():
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(0))
"""
ENDS = (
    "os.kill(os.getpid(), signal.SIGTERM)",
    "os.kill(0, signal.SIGKILL)",
    "os.kill(-os.getpgrp(), 1)",
    "signal.raise_signal(signal.SIGABRT)",
    "os._exit(3)",
    "os.abort()",
)


def shop(injected: Injected, end: str = ENDS[0]) -> None:
    (injected.app / "shop.py").write_text(SHOP.replace("END", end))


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("act", ["shop.end()", "shop.in_a_thread()"])
def test_what_would_end_the_process_is_left_out(injected: Injected, act: str, end: str) -> None:
    shop(injected, end)
    assert injected.run(PROGRAM.format(act=act), GIVE) == "goes on\n"
    assert injected.took() == {"own-ends"}


def test_an_end_is_told_by_its_line_before_it_is_one(injected: Injected) -> None:
    shop(injected, "os._exit(0)")
    assert injected.run(PROGRAM.format(act="shop.end()"), HEARTBEAT) == ""
    (line,) = (line for line in injected.lines("heart") if "ended" in line)
    assert line["ended"] == "os._exit"
    assert (line["line"], line["function"], line["text"]) == (5, "end", "os._exit(0)")
    assert os.path.basename(line["file"]) == "shop.py"


@pytest.mark.parametrize(
    ("act", "end", "said"),
    [
        ("shop.in_a_child()", ENDS[0], "15 goes on\n"),
        ("shop.in_a_child()", "os._exit(3)", "3 goes on\n"),
        ("shop.in_a_child(lambda: shop.in_a_child())", "os._exit(3)", "3 runs on in the child\n9 goes on\n"),
        ("shop.of_multiprocessing()", ENDS[0], "child\n0 goes on\n"),
        ("shop.of_another()", ENDS[0], "-15 goes on\n"),
        ("shop.end()", "os.kill(os.getpid(), 0)", "goes on\n"),
        ("shop.end()", "signal.signal(1, signal.SIG_IGN); os.kill(os.getpid(), 1)", "goes on\n"),
        ("shop.told(); os.kill(os.getpid(), signal.SIGTERM)", ENDS[0], ""),
        ("listener.close(); shop.end()", "os._exit(0)", ""),
        ("os._exit(0)", ENDS[0], ""),
    ],
    ids=[
        "a child that is killed",
        "a child that exits",
        "a child of a child",
        "a child of multiprocessing",
        "another process",
        "no signal",
        "a signal that is ignored",
        "was told to",
        "does not listen",
        "not its own code",
    ],
)
def test_other_ends_are_let_alone(injected: Injected, act: str, end: str, said: str) -> None:
    shop(injected, end)
    assert injected.run(PROGRAM.format(act=act), GIVE) == said
    assert injected.took() == set()


SERVER = """
import os

def serve(app):
    pid = os.fork()
    if pid == 0:
        app()
        os._exit(4)
    print(os.WEXITSTATUS(os.waitpid(pid, 0)[1]), end=" ", flush=True)
"""
SCRIPT = """
from gunicorn import arbiter

def main(app):
    arbiter.serve(app)
"""


def test_a_worker_that_a_server_forks_is_not_the_apps_whoever_started_the_server(injected: Injected) -> None:
    package = injected.app / "site-packages" / "gunicorn"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "arbiter.py").write_text(SERVER)
    (injected.app / "serve.py").write_text(SCRIPT)
    shop(injected, "os._exit(3)")
    act = "sys.path.insert(0, 'site-packages'); import serve; serve.main(shop.end)"
    assert injected.run(PROGRAM.format(act=act), GIVE) == "4 goes on\n"
    assert injected.took() == {"own-ends"}
