"""The page on adding a stack: its example is what it says."""

import re
from pathlib import Path

import pytest
from tests.conformance.answering import check, check_connection, check_nothing_is_left
from tests.conformance.booted import booted
from tests.conformance.wire import Wire

from velodrome.guest import catalog, plugins
from velodrome.run.environments import environment, guest_tree

PAGE = Path(__file__).parents[2] / "docs" / "add-a-stack.md"
WITH_MAIN = """
import sys
from wsgiref.simple_server import WSGIRequestHandler, make_server

from velodrome.guest.stack import Launch, Process, Stack, exactly_one
from velodrome.guest.workers import load


def command(launch: Launch) -> Process:
    return Process(("-m", __name__, launch.host, str(launch.port), launch.app))


stack = Stack(
    name="with-main",
    title="wsgiref",
    about="The standard library's server; one request at a time.",
    interface="wsgi",
    concurrency="sync",
    command=command,
    slots=exactly_one,
    keeps_alive=False,
)


class Silent(WSGIRequestHandler):
    def log_message(self, *args):
        pass


if __name__ == "__main__":
    host, port, app = sys.argv[1:]
    make_server(host, int(port), load(app), handler_class=Silent).serve_forever()
"""


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The file that the page tells to write."""
    block = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    name = re.search(r"`(\w+\.py)`:", PAGE.read_text())
    assert block is not None
    assert name is not None
    file = tmp_path / name[1]
    file.write_text(block[1])
    return file


def test_the_example_of_the_page_serves_a_recipe(example: Path, upstream: str, tmp_path: Path) -> None:
    serve(example, upstream, tmp_path / "run")


def test_a_file_of_ones_own_may_bring_the_server_itself(upstream: str, tmp_path: Path) -> None:
    file = tmp_path / "with_main.py"
    file.write_text(WITH_MAIN)
    serve(file, upstream, tmp_path / "run")


def test_the_page_fits_on_a_screen() -> None:
    assert len(PAGE.read_text().splitlines()) <= 72


def serve(file: Path, upstream: str, folder: Path) -> None:
    entry = next(entry for entry in plugins.entries(catalog.STACK, [str(file)]) if entry.origin == str(file))
    assert entry.error == ""
    stack, recipe = entry.thing, catalog.recipe("hello")
    python = environment.environment_for(stack).python
    with booted(stack, recipe, python, guest_tree.export([file]), upstream, folder) as server:
        with Wire(server.port) as wire:
            answer = wire.request(recipe.method, recipe.upload)
            check(answer, stack, recipe, server)
            check_connection(wire, stack, recipe, server, answer)
        check_nothing_is_left(server)
