"""Calls to a gRPC server, made by a real client in an environment that has one, and what was answered."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from velodrome.guest.grpc.greeter import NAME, method_of, uploads
from velodrome.guest.recipe import Recipe, Stream

CLIENT = Path(__file__).parents[1] / "guest" / "grpc" / "client.py"
CHAT = [1, 500, 84]
"""Bytes of the messages of a chat."""


@dataclass(frozen=True)
class Response:
    """What `client.py` reported of one call."""

    code: int
    message: str
    messages: list[str]
    bodies: list[int]
    right: bool
    started: float
    seconds: float
    times: list[float]


def call(port: int, recipe: Recipe, **other: Any) -> dict[str, Any]:
    """Return the call that a recipe serves, with `other` fields of it in the place of its own."""
    last = recipe.steps[-1]
    own = {
        "address": f"127.0.0.1:{port}",
        "method": method_of(recipe).name,
        "bodies": CHAT if recipe.chats else [len(body) for body in uploads(recipe)],
        "name": NAME,
        "sleep_millisecond": 0,
        "each": last.chunks if isinstance(last, Stream) else 1,
    }
    return {**own, **other}


def send_calls(
    python: Path, tree: Path, calls: list[dict[str, Any]], together: bool = False
) -> list[Response]:
    """Make calls, one after the other or all at once; raise AssertionError where the client itself fails."""
    command = [str(python), "-P", str(CLIENT), *(["together"] if together else [])]
    env = {"PYTHONPATH": str(tree), "PATH": os.environ["PATH"], "PYTHONNOUSERSITE": "1"}
    done = subprocess.run(
        command, input=json.dumps(calls), env=env, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    return [Response(**json.loads(line)) for line in done.stdout.splitlines()]
