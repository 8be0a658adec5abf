"""What is known of a server stands in its stack: no other file names a stack, a server or an option of one."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import velodrome
from velodrome.guest import catalog
from velodrome.guest.stack import Server
from velodrome.model.profile import PARTS
from velodrome.report.recommendation import File, Full, Wishes, files

ROOT = Path(velodrome.__file__).parent
MAY_NAME = {
    "guest/stacks": "the place for it",
    "guest/experiments": "an experiment names whom it races, as a study does",
    "run/experiments": "an experiment names whom it races, as a study does",
    "diagnoses": "a fault names where it was met, and the server on which it is cured",
    "guest/injected": "a treatment names the module that it changes",
    "plan": "examples in messages about a mistake in a study, and forms of access logs",
}
EVERYWHERE = {"grpc-aio": "the third party over gRPC is a real server: that one"}


def texts(tree: ast.Module) -> Iterator[str]:
    """Yield the strings of a module, without those that only readers of the source see."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


def words_of_servers() -> re.Pattern[str]:
    """Return what finds a stack, a server's module, or an option that only a race needs."""
    stacks = catalog.stacks()
    servers = [server for server in catalog.servers() if "." not in server]
    options = {option for server in catalog.servers().values() for option in server.has_value}
    options |= {"--max-requests", "--limit-max-requests", "--workers-max-rss"}
    # A stack that is called as its interface or as a common word would be found everywhere.
    names = {name for name in stacks if "-" in name} | set(servers) - set(catalog.interfaces())
    every = sorted((*names, *options - {"--timeout"}), key=len, reverse=True)
    return re.compile(rf"(?<![\w./-])(?:{'|'.join(map(re.escape, every))})(?![\w-])")


def test_no_other_file_names_a_stack_a_server_or_an_option_of_one() -> None:
    named = words_of_servers()
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if any(name.startswith(folder + "/") for folder in MAY_NAME):
            continue
        words = {word for text in texts(ast.parse(path.read_text())) for word in named.findall(text)} - set(
            EVERYWHERE
        )
        if words:
            found[name] = words
    assert found == {}


def test_stacks_of_one_server_declare_the_same() -> None:
    by_module: dict[str, Server] = {}
    for stack in catalog.stacks().values():
        if stack.server is not None:
            assert by_module.setdefault(stack.server.module, stack.server) is stack.server, stack.name


def test_what_a_stack_starts_is_the_server_it_declares() -> None:
    for stack in catalog.stacks().values():
        if stack.server is not None:
            module = stack.stands_for or stack.server.module
            assert module == stack.server.module, stack.name


@pytest.mark.parametrize("server", catalog.servers().values(), ids=lambda server: str(server.module))
def test_a_part_is_one_of_those_that_profiles_show(server: Server) -> None:
    assert set(server.parts) <= set(PARTS)


def test_a_stack_of_anybodys_declares_its_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the declaration is needed for what is pasted."""
    mine = Server("mine", replace_worker=lambda requests, memory: (f"--renew={requests}",))
    monkeypatch.setattr(catalog, "servers", lambda: {"mine": mine})
    unit: File = files("python -m mine --port=8000 shop:app", Wishes(full=Full(50, 1)))[0]
    assert " -m mine --port=8000 --renew=50 shop:app\n" in unit.text
