"""Files to paste for a setting: gunicorn.conf.py, a systemd unit, a Dockerfile's CMD; made of the command line.

    files(command, Wishes(memory_bytes=10**9, cpus=2, requests_to_restart=20_000))

What only a laboratory wants of a server (to end within two seconds, to be quiet) is left out of them.
"""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

PYTHON = "/srv/app/.venv/bin/python"
FOLDER = "/srv/app"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - inside a container that is what has to be listened on
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*=")
LABORATORY = (
    "--graceful-timeout",
    "--timeout-graceful-shutdown",
    "--timeout-worker-healthcheck",
    "--workers-kill-timeout",
    "--no-control-socket",
    "--log-level",
)
"""Options that a race needs and a deployment does not."""
RESTARTING = {
    "gunicorn": ("--max-requests", "--max-requests-jitter"),
    "uvicorn": ("--limit-max-requests", ""),
    "hypercorn": ("--max-requests", "--max-requests-jitter"),
}
"""By server: the option that replaces a worker after so many requests, and the one that spreads this."""
CONFIGURED = {"keep_alive": "keepalive", "log_level": "loglevel"}
"""Settings of gunicorn whose name is not that of their option."""


@dataclass(frozen=True)
class Wishes:
    """What a deployment needs beside the command line."""

    cpus: int | None = None
    memory_bytes: int | None = None
    requests_to_restart: int | None = None
    """Because memory rises with each; None: it does not."""
    python: str = PYTHON
    folder: str = FOLDER


@dataclass(frozen=True)
class File:
    """One to paste."""

    name: str
    text: str


def command_line(command: str, wishes: Wishes) -> str:
    """Return the command line as it is to be deployed."""
    variables, words = _parted(command, wishes)
    return " ".join(
        [*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), shlex.join(words)]
    )


def files(command: str, wishes: Wishes) -> tuple[File, ...]:
    """Return what can be pasted; nothing where a stack has no command line of its own."""
    variables, words = _parted(command, wishes)
    if words[:1] != ["python"] or len(words) < 2:
        return ()
    found = []
    started = words
    if words[1:3] == ["-m", "gunicorn"]:
        found.append(File("gunicorn.conf.py", _gunicorn(words)))
        started = ["python", "-m", "gunicorn", "--config=gunicorn.conf.py"]
    found.append(File("app.service", _unit([wishes.python, *started[1:]], variables, wishes)))
    found.append(File("Dockerfile", _docker(words, variables)))
    return tuple(found)


def _parted(command: str, wishes: Wishes) -> tuple[dict[str, str], list[str]]:
    """Return the variables that stand before a command line, and its words as they are to be deployed."""
    words = shlex.split(command)
    variables: dict[str, str] = {}
    while words and _VARIABLE.match(words[0]):
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    words = [word for word in words if word.partition("=")[0] not in LABORATORY]
    options = RESTARTING.get(words[2]) if len(words) > 3 and words[1] == "-m" else None
    if wishes.requests_to_restart and options:
        count, spread = wishes.requests_to_restart, wishes.requests_to_restart // 10
        more = [f"{options[0]}={count}", *([f"{options[1]}={spread}"] if options[1] and spread else [])]
        words = [*words[:-1], *more, words[-1]]
    return variables, words


def _gunicorn(words: list[str]) -> str:
    lines = ["# python -m gunicorn --config=gunicorn.conf.py"]
    for word in words[3:-1]:
        option, equals, value = word.partition("=")
        name = option.lstrip("-").replace("-", "_")
        shown = "True" if not equals else value if value.isdecimal() else json.dumps(value)
        lines.append(f"{CONFIGURED.get(name, name)} = {shown}")
    return "\n".join([*lines, f"wsgi_app = {json.dumps(words[-1])}", ""])


def _unit(words: list[str], variables: Mapping[str, str], wishes: Wishes) -> str:
    limits = []
    if wishes.cpus is not None:
        limits.append(f"CPUQuota={wishes.cpus * 100}%")
    if wishes.memory_bytes is not None:
        limits.append(f"MemoryMax={wishes.memory_bytes}")
    return "\n".join(
        [
            "[Unit]",
            "After=network.target",
            "",
            "[Service]",
            f"WorkingDirectory={wishes.folder}",
            *(f"Environment={name}={value}" for name, value in variables.items()),
            f"ExecStart={shlex.join(words)}",
            "KillSignal=SIGTERM",
            "Restart=on-failure",
            # A listen queue and a descriptor for each connection: the usual limit is 1 024.
            "LimitNOFILE=65536",
            *limits,
            "",
            "[Install]",
            "WantedBy=multi-user.target",
            "",
        ]
    )


def _docker(words: list[str], variables: Mapping[str, str]) -> str:
    everywhere = [word.replace("127.0.0.1", EVERYWHERE) for word in words]
    lines = [*(f"ENV {name}={value}" for name, value in variables.items()), "EXPOSE 8000"]
    return "\n".join([*lines, f"CMD {json.dumps(everywhere)}", ""])
