"""`velodrome version`: which version this is and, for a report of an error, what it runs on."""

import sys
from typing import Annotated, Any

import typer

CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_ADMIN": 21, "CAP_SYS_NICE": 23}
"""Those that velodrome uses where it has them, and their bits (capabilities(7))."""


def command(
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON document: also machine, engine, permissions, tools."),
    ] = False,
) -> None:
    """Print the version; with --json, all that a report of an error should say of this machine."""
    if not as_json:
        from velodrome.cli.main import print_version  # noqa: PLC0415

        print_version()
        return
    import json  # noqa: PLC0415

    print(json.dumps(document(), indent=2))


def document() -> dict[str, Any]:
    """Return what this installation is: velodrome, Python, machine, engine, permissions, control groups, tools."""
    import os  # noqa: PLC0415
    from importlib.metadata import version  # noqa: PLC0415

    from velodrome.run import engine  # noqa: PLC0415
    from velodrome.run.drivers import driver  # noqa: PLC0415
    from velodrome.run.machine import facts  # noqa: PLC0415

    return {
        "velodrome": version("velodrome"),
        "python": {
            "version": sys.version.split()[0],
            "implementation": sys.implementation.name,
            "executable": sys.executable,
        },
        "machine": facts.facts(),
        "engine": {"version": engine.VERSION, "transports": _transports()},
        "permissions": {"root": os.geteuid() == 0, **_capabilities()},
        "control_groups": _lines("/proc/self/cgroup"),
        "drivers": {
            found.name: {"version": found.version or None, "missing": found.why_not or None}
            for found in driver.available_drivers()
        },
    }


def _transports() -> dict[str, bool]:
    """Return which of the engine's transports the kernel offers, as far as its settings show."""
    disabled = _lines("/proc/sys/kernel/io_uring_disabled")
    return {
        "io_uring": sys.platform == "linux" and disabled[:1] in ([], ["0"]),
        "epoll": sys.platform == "linux",
        "poll": sys.platform != "linux",
    }


def _capabilities() -> dict[str, bool]:
    effective = next(
        (line for line in _lines("/proc/self/status") if line.startswith("CapEff:")), "CapEff: 0"
    )
    bits = int(effective.split()[1], 16)
    return {name: bool(bits >> bit & 1) for name, bit in CAPABILITIES.items()}


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except OSError:
        return []


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("version")(command)
