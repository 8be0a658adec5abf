"""The catalog finds what is there, and a plugin that is broken harms nobody but itself."""

import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from velodrome.guest import catalog, plugins
from velodrome.guest.recipe import Body, Call, Recipe
from velodrome.guest.stack import Launch, Process, Stack

FILE = """
from velodrome.guest.stack import Process, Stack

stack = Stack(
    name={name!r}, title="", about="", interface="wsgi", concurrency="threads",
    command=lambda launch: Process(("-m", __name__, launch.app)),
)
"""

CONCURRENCY = {"sync", "threads", "processes", "greenlets", "generators", "tasks", "events"}


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_every_file_of_the_folder_is_an_entry_except_those_with_an_underscore() -> None:
    folder = Path(catalog.__file__).parent / "stacks"
    files = {path.stem.replace("_", "-") for path in folder.glob("[!_]*.py")}
    every = catalog.stacks()
    assert {name for name, stack in every.items() if not stack.variant_of} == files
    assert {stack.variant_of for stack in every.values()} - {""} <= files


def test_a_variant_is_its_stack_with_knobs_set() -> None:
    stack, variant = catalog.stack("aiohttp"), catalog.stack("aiohttp-uvloop")
    launch = Launch("127.0.0.1", 8000, "shop:app", stack.settings({"loop": "uvloop"}))
    assert variant.command(replace(launch, knobs=variant.settings({}))) == stack.command(launch)
    assert "loop" not in variant.knobs
    assert "uvloop==0.23.0" in variant.requires


@pytest.mark.parametrize(
    "kind", [catalog.STACK, catalog.RECIPE, catalog.INTERFACE], ids=lambda kind: kind.noun
)
def test_nothing_that_ships_is_broken(kind: plugins.Kind) -> None:
    assert [entry for entry in plugins.entries(kind) if entry.error] == []


def test_every_stack_that_ships_names_an_interface_and_real_knobs() -> None:
    for stack in catalog.stacks().values():
        assert stack.interface in catalog.interfaces(), stack.name
        known = {
            "workers",
            "threads",
            "loop",
            "backlog",
            "connections",
            "keepalive",
            "limit_concurrency",
            "preload",
            "max_requests",
            "max_requests_jitter",
        }
        assert set(stack.knobs) <= known, stack.name
        assert stack.concurrency in CONCURRENCY, stack.name
        assert {"loop"} & set(stack.knobs) == set(stack.choices), stack.name
        for knob, choices in stack.choices.items():
            assert stack.knobs[knob] in choices, stack.name


def test_a_command_line_begins_with_m_and_shows_every_knob() -> None:
    app = "velodrome.guest.interfaces.wsgi:app"
    for stack in catalog.stacks().values():
        before = stack.command(Launch("127.0.0.1", 8000, app, stack.settings({})))
        assert before.argv[0] == "-m", stack.name
        for knob, value in stack.knobs.items():
            other = 7321 if isinstance(value, int) else next(c for c in stack.choices[knob] if c != value)
            after = stack.command(Launch("127.0.0.1", 8000, app, stack.settings({knob: other})))
            assert after != before, f"{stack.name} has the knob {knob} but does not honour it"


def test_one_package_is_pinned_to_one_version_everywhere() -> None:
    pins: dict[str, set[str]] = {}
    for stack in catalog.stacks().values():
        for line in catalog.requires(stack):
            package, equals, version = line.partition("==")
            assert equals, f"{stack.name} requires {line}, which is no pin"
            pins.setdefault(package, set()).add(version.partition(";")[0])
    assert {package: versions for package, versions in pins.items() if len(versions) > 1} == {}


def test_a_file_named_by_path_is_found_and_may_start_itself_by_its_name(tmp_path: Path) -> None:
    path = write(tmp_path, "my_server.py", FILE.format(name="mine"))
    process = catalog.stack("mine", [path]).command(Launch("127.0.0.1", 1, "app:app", {}))
    assert process == Process(("-m", "velodrome.guest.stacks.my_server", "app:app"))
    assert "velodrome.guest.stacks.my_server" not in sys.modules


def test_a_file_named_by_path_counts_more_than_what_ships(tmp_path: Path) -> None:
    path = write(tmp_path, "uvicorn.py", FILE.format(name="uvicorn"))
    assert catalog.stack("uvicorn", [path]).interface == "wsgi"
    assert catalog.stack("uvicorn").interface == "asgi"


def test_two_files_of_one_name_are_two_stacks(tmp_path: Path) -> None:
    paths = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        paths.append(write(tmp_path / name, "mine.py", FILE.format(name=name)))
    assert {"a", "b"} <= set(catalog.stacks(paths))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("import no_such_module_here", "ModuleNotFoundError: No module named 'no_such_module_here'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import os; os.nothing", "AttributeError: module 'os' has no attribute 'nothing'"),
        ("stacks = 1", "has no stack = Stack(…)"),
        ("stack = 'uvicorn'", "stack is a str, not a Stack"),
    ],
)
def test_a_broken_file_is_an_entry_with_its_error(tmp_path: Path, text: str, error: str) -> None:
    path = write(tmp_path, "bad_one.py", text)
    entry = next(entry for entry in plugins.entries(catalog.STACK, [path]) if entry.origin == path)
    assert (entry.name, entry.thing, entry.error) == ("bad-one", None, error)
    assert "uvicorn" in catalog.stacks([path])
    assert [found.name for found in catalog.broken_plugins([path])] == ["bad-one"]


@pytest.mark.parametrize(("text", "error"), [("def", "SyntaxError"), (None, "FileNotFoundError")])
def test_a_file_that_cannot_be_read_as_python_says_so(tmp_path: Path, text: str | None, error: str) -> None:
    path = str(tmp_path / "bad.py") if text is None else write(tmp_path, "bad.py", text)
    assert catalog.broken_plugins([path])[0].error.startswith(error)


def test_a_name_that_is_not_there_is_a_key_error_with_all_that_are() -> None:
    with pytest.raises(KeyError) as caught:
        catalog.stack("guvicorn")
    assert isinstance(caught.value, plugins.NoSuchNameError)
    assert (caught.value.kind, caught.value.name) == ("stack", "guvicorn")
    assert "uvicorn" in caught.value.known


def test_a_name_whose_file_is_broken_says_why(tmp_path: Path) -> None:
    path = write(tmp_path, "mine.py", "1 / 0")
    with pytest.raises(plugins.NoSuchNameError) as caught:
        catalog.stack("mine", [path])
    assert caught.value.error == "ZeroDivisionError: division by zero"


def test_entry_points_are_a_door_as_well(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write(tmp_path, "their_package.py", FILE.format(name="theirs"))
    monkeypatch.syspath_prepend(tmp_path)
    found = (
        EntryPoint("theirs", "their_package:stack", "velodrome.stacks"),
        EntryPoint("gone", "no_such_package:stack", "velodrome.stacks"),
    )

    class Installed:
        def select(self, group: str) -> tuple[EntryPoint, ...]:
            return tuple(point for point in found if point.group == group)

    monkeypatch.setattr("importlib.metadata.entry_points", Installed)
    assert catalog.stack("theirs").name == "theirs"
    assert [(entry.name, entry.origin) for entry in catalog.broken_plugins()] == [
        ("gone", "entry point no_such_package:stack")
    ]
    # Python 3.8 and 3.9 return a dictionary.
    monkeypatch.setattr("importlib.metadata.entry_points", lambda: {"velodrome.stacks": found[:1]})
    assert catalog.stack("theirs").name == "theirs"


def test_a_stack_says_which_step_it_cannot_serve() -> None:
    no_command = Stack("s", "", "", "wsgi", "sync", lambda launch: Process(()), cannot={"body": "it is mute"})
    assert catalog.serves(no_command, Recipe("r", "", (Body(1),))) == "it is mute"
    assert catalog.serves(catalog.stack("uvicorn"), Recipe("r", "", (Body(1),))) is None


def test_over_grpc_a_chat_has_no_rooms() -> None:
    stack = catalog.stack("grpc-aio")
    assert catalog.serves(stack, catalog.recipe("chat-echo")) is None
    assert catalog.serves(stack, catalog.recipe("chat-room")) == (
        "a room is held over WebSockets; over gRPC a message goes back to its sender alone"
    )


def test_only_a_stack_with_a_client_of_grpc_calls_over_it() -> None:
    recipe = Recipe("r", "", (Call(5, over="grpc"), Body(1)))
    for stack in catalog.stacks().values():
        has_client = any(line.startswith(("grpcio==", "grpclib==")) for line in catalog.requires(stack))
        assert (catalog.serves(stack, recipe) is None) is has_client, stack.name
