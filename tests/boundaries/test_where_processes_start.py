"""A Python is worded in one file, `run/supervision/python.py`, and programs are started in few: each is named here.

A process that is started elsewhere may import what lies in the folder velodrome was started in (`python -m` does).
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.boundaries.sources import parsed

import velodrome

ROOT = Path(velodrome.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

WORDED = "run/supervision/python.py"
NAMES_A_PYTHON: Mapping[str, str] = {
    WORDED: "the one place",
    "run/environments/interpreter.py": "which interpreter velodrome runs on is asked, and worded there",
    "usecases/apps.py": "the interpreter of an app, where its user names none",
    "api/apps.py": "the interpreter of an app, where its user names none",
    "cli/version.py": "printed",
    "guest/experiments/grpc_same_stub.py": "in an empty folder of its own (experiments/programs.py)",
}
NAMES_A_MODULE: Mapping[str, str] = {
    WORDED: "the one place",
    "run/apps/inspect.py": "the app's own process, in the app's folder",
    "guest/experiments/grpc_same_stub.py": "in an empty folder of its own (experiments/programs.py)",
    "cli/_load_options.py": "an option of velodrome's own",
    "run/drivers/h2load.py": "an option of h2load's",
    "run/drivers/oha.py": "an option of oha's",
    **dict.fromkeys(
        (
            "guest/stacks/_gunicorn.py",
            "guest/stacks/_granian.py",
            "guest/stacks/_uvicorn.py",
            "guest/stacks/aiohttp.py",
            "guest/stacks/bjoern.py",
            "guest/stacks/cheroot.py",
            "guest/stacks/daphne.py",
            "guest/stacks/pyuwsgi.py",
            "guest/stacks/robyn.py",
            "guest/stacks/sanic.py",
            "guest/stacks/hypercorn.py",
            "guest/stacks/tornado.py",
            "guest/stacks/waitress.py",
            "guest/stacks/websockets_asyncio.py",
            "guest/raw/process.py",
            "guest/grpc/processes.py",
            "run/experiments/grpc_channel_loop.py",
            "run/experiments/grpc_gevent_mode.py",
            "run/experiments/scheduler_hops.py",
        ),
        "a server's command line as it is pasted; servers.py chooses its folder",
    ),
}
STARTS: Mapping[str, str] = {
    "run/supervision/ward.py": "the warden, as python.py words it",
    "run/supervision/warden.py": "what it was ordered to, in the folder it was ordered to",
    WORDED: "velodrome's own modules",
    "run/machine/limits.py": "a probe, as python.py words it",
    "run/environments/interpreter.py": "asks an interpreter, as python.py words it; uv",
    "run/environments/installing.py": "uv, in a folder of velodrome's",
    "run/experiments/running.py": "an experiment, as python.py words it",
    "run/services/service.py": "a guest's program, as python.py words it",
    "run/services/database.py": "launch.py, as python.py words it",
    "run/services/launch.py": "a database's own programs, in its folder",
    "run/servers.py": "a server, in its app's folder or an empty one",
    "run/apps/inspect.py": "the app's own process, in the app's folder",
    "run/apps/commands.py": "the commands that a user has typed, in the app's folder",
    "run/apps/revisions.py": "git, without hooks",
    "run/drivers/foreign.py": "asks another load generator for its version",
    "run/drivers/foreign_process.py": "another load generator, in an empty folder",
    "guest/experiments/grpc_same_stub.py": "in an empty folder of its own (experiments/programs.py)",
}
STARTERS = {
    "subprocess": {"run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "os": {"system", "popen", "posix_spawn", "posix_spawnp", "execl", "execle", "execlp", "execlpe", "execv"}
    | {"execve", "execvp", "execvpe", "spawnl", "spawnle", "spawnlp", "spawnlpe", "spawnv", "spawnve"}
    | {"spawnvp", "spawnvpe"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
    "pty": {"spawn"},
}
MAKERS = {"Order", "ProcessPoolExecutor"}
OTHER_CONTEXTS = {"spawn", "forkserver"}


def names_a_python(tree: ast.AST) -> bool:
    """Whether it names the interpreter it runs on."""
    return any(
        (
            isinstance(node, ast.Attribute)
            and node.attr in ("executable", "_base_executable")
            and ast.unparse(node.value) == "sys"
        )
        or (isinstance(node, ast.ImportFrom) and node.module == "sys" and "executable" in aliases(node))
        for node in ast.walk(tree)
    )


def names_a_module(tree: ast.AST) -> bool:
    """Whether it has `-m` in an argument list: a word of a list, a tuple or a call."""
    return any(
        isinstance(word, ast.Constant) and word.value == "-m"
        for node in ast.walk(tree)
        for word in words(node)
    )


def words(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        yield from node.elts
    elif isinstance(node, ast.Call):
        yield from node.args


def starts(tree: ast.AST) -> bool:
    """Whether it starts a program, or orders one to be started."""
    imported = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in aliases(node) & STARTERS.get(node.module or "", set())
    }
    return any(isinstance(node, ast.Call) and _starts(node, imported) for node in ast.walk(tree))


def _starts(call: ast.Call, imported: set[str]) -> bool:
    if isinstance(call.func, ast.Name):
        return call.func.id in MAKERS | imported
    if not isinstance(call.func, ast.Attribute):
        return False
    what = call.func.attr
    contexts = {word.value for word in call.args if isinstance(word, ast.Constant)}
    other = what in ("get_context", "set_start_method") and bool(contexts & OTHER_CONTEXTS)
    starter = any(
        what in names and ast.unparse(call.func.value) == whose for whose, names in STARTERS.items()
    )
    return starter or what in MAKERS or other


def aliases(node: ast.ImportFrom) -> set[str]:
    return {alias.name for alias in node.names}


@pytest.mark.parametrize(
    ("what", "permitted"),
    [(names_a_python, NAMES_A_PYTHON), (names_a_module, NAMES_A_MODULE), (starts, STARTS)],
    ids=["sys.executable", "-m", "starts"],
)
def test_only_the_files_that_are_named_here_do(what: object, permitted: Mapping[str, str]) -> None:
    assert callable(what)
    assert {path.relative_to(ROOT).as_posix() for path in FILES if what(parsed(path))} == set(permitted)


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("import sys\nargv = [sys.executable]", names_a_python),
        ("from sys import executable", names_a_python),
        ("argv = (python, '-m', 'x')", names_a_module),
        ("argv.append('-m')", names_a_module),
        ("import subprocess\nsubprocess.run(['ls'])", starts),
        ("from subprocess import Popen\nPopen(['ls'])", starts),
        ("import os\nos.execve('/bin/ls', ['ls'], {})", starts),
        ("import os\nos.posix_spawn('/bin/ls', ['ls'], {})", starts),
        ("import os\nos.system('ls')", starts),
        ("import asyncio\nasyncio.create_subprocess_exec('ls')", starts),
        ("Ward(Order(('ls',), {}))", starts),
        ("ward.Order(('ls',), {})", starts),
        ("import multiprocessing\nmultiprocessing.get_context('spawn')", starts),
        ("from concurrent.futures import ProcessPoolExecutor\nProcessPoolExecutor()", starts),
    ],
)
def test_each_way_to_start_one_is_seen(source: str, what: object) -> None:
    assert callable(what)
    assert what(ast.parse(source))
