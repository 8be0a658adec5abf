"""What a file, a study or an app says reaches no terminal with characters that it obeys."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.cli.running import velodrome

from velodrome.guest import catalog
from velodrome.run.environments import environment

OWNED = "\x1b]0;OWNED\x07"


def harmless(text: str) -> bool:
    return text.replace("\n", "").replace("\t", "").replace("\u00a0", "").isprintable()


@pytest.mark.parametrize(
    "words",
    [
        ("load", "http://127.0.0.1:1/", "--requests-file", f"no{OWNED}.toml"),
        ("run", f"./no{OWNED}.toml"),
        ("run", "./mine.toml"),
        ("compare", "plain:application", "--stack", "./stack.py"),
        ("stacks", "--stack", "./stack.py"),
        ("requests", "--openapi", "api.json"),
        ("judge", f"no{OWNED}"),
        ("compare", "breaks:application"),
    ],
    ids=["file", "study's name", "study", "stack", "stacks", "OpenAPI", "results", "app"],
)
def test_no_command_obeys_what_it_reads(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(f"title = {json.dumps(OWNED)}\n{json.dumps('x' + OWNED)} = 1\n")
    (tmp_path / "stack.py").write_text(f"raise RuntimeError({OWNED!r})\n")
    (tmp_path / "breaks.py").write_text(f"print({OWNED!r})\nraise RuntimeError({OWNED!r})\n")
    paths = {f"/{OWNED}": {"get": {"responses": {"200": {"description": OWNED}}}}}
    (tmp_path / "api.json").write_text(
        json.dumps({"openapi": "3.0.0", "info": {"title": OWNED, "version": "1"}, "paths": paths})
    )
    ended = velodrome(tmp_path, *words)
    assert "Traceback" not in ended.stderr
    assert harmless(ended.stdout)
    assert harmless(ended.stderr)
    assert "OWNED" in ended.stdout + ended.stderr


def test_no_load_obeys_what_a_server_says_of_itself(tmp_path: Path) -> None:
    stack = catalog.stack("grpc-threads")
    if (why := environment.cannot_run(stack)) is not None:
        pytest.skip(why)
    python = environment.environment_for(stack, None).python
    command = [str(python), str(Path(__file__).with_name("hostile_reflection.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"grpc://127.0.0.1:{server.stdout.readline().strip()}/shop.Cart/Get"
        ended = velodrome(tmp_path, "load", url, "-n", "1", "-c", "1", "--data", "{}")
        server.communicate(timeout=10)
    assert ended.returncode in (2, 3)
    assert "OWNED" in ended.stderr
    assert harmless(ended.stderr)
    assert harmless(ended.stdout)
