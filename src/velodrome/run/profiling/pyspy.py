"""py-spy: samples the stacks of a running Python from outside, its workers with it.

    recording = record(pid, seconds=4, cpus=(1,))
    recording.text, recording.version

It reads the memory of the server and stops it for a moment at each sample, which needs the right to trace it
(ptrace(2)): that of root, or of the same user where the kernel allows it.
"""

import os
import re
import shutil
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from velodrome.model.errors import DriverError, ProfilerError, StartRefusedError
from velodrome.run.drivers.foreign import Finished, spawn
from velodrome.run.drivers.tool import Tool

OUTPUT = "stacks.raw"
RATE_HZ = 100
"""A sample stops the server for about a millisecond, so this takes a tenth of its time and no more."""
SLACK_S = 20.0
"""To start, to find out all about the interpreter, and to write."""
PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
TOOL = Tool("py-spy", "samples stacks", oldest="0.4", cure="Install it: python -m pip install py-spy")
_COUNTED = re.compile(r"Samples: (\d+) Errors: (\d+)")


@dataclass(frozen=True)
class Recording:
    """What was recorded."""

    text: str
    """As py-spy writes it."""
    version: str
    errors: int
    """Samples that could not be taken."""


def find() -> str:
    """Return where it is: beside this Python, else on PATH. Raises ProfilerError."""
    beside = Path(sysconfig.get_path("scripts")) / TOOL.name
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which(TOOL.name)
    if found is None:
        raise ProfilerError("it is not installed", TOOL.cure)
    return found


def record(
    pid: int,
    seconds: int,
    cpus: Sequence[int] = (),
    path: str = "",
    wanted: Callable[[], bool] = lambda: True,
) -> Recording:
    """Sample a process and all below it, as long as that is wanted. Raises ProfilerError."""
    path = path or find()
    version = TOOL.version_of(path)
    argv = [path, "record", "--pid", str(pid), "--subprocesses", "--threads", "--idle"]
    argv += [
        "--full-filenames",
        "--format",
        "raw",
        "--output",
        OUTPUT,
        "--rate",
        str(RATE_HZ),
        "--duration",
        str(seconds),
    ]
    try:
        finished = spawn(
            argv, cpus, span_s=seconds, slack_s=SLACK_S, on_event=lambda _: wanted(), measured=False
        )
    except (DriverError, StartRefusedError) as error:
        raise ProfilerError(str(error), "Profile a shorter load, or fewer processes") from error
    text = finished.files.get(OUTPUT, b"").decode(errors="replace")
    if finished.status != 0 or not text:
        raise _refusal(finished)
    counted = _COUNTED.search(finished.output + finished.errors)
    return Recording(text, f"py-spy {version}".strip(), int(counted[2]) if counted else 0)


def _refusal(finished: Finished) -> ProfilerError:
    """Return why nothing was recorded, with the cure."""
    said = finished.errors + finished.output
    if "Permission Denied" in said or "Operation not permitted" in said or "EPERM" in said:
        scope = PTRACE_SCOPE.read_text().strip() if PTRACE_SCOPE.exists() else ""
        told = f" (kernel.yama.ptrace_scope is {scope})" if scope not in ("", "0") else ""
        return ProfilerError(
            f"it is not permitted to trace the server{told}",
            "Run velodrome as root, in a container with --cap-add SYS_PTRACE, or set "
            "kernel.yama.ptrace_scope to 0",
        )
    if "find python version" in said or "Unsupported version" in said or "unsupported python" in said.lower():
        return ProfilerError(
            "it cannot read this interpreter, or the server is no Python",
            "Run the stack on an interpreter that it knows (3.6 to 3.13), or install a newer py-spy",
        )
    first = next((line for line in said.splitlines() if line.startswith("Error")), "")
    last = finished.last_lines[-1] if finished.last_lines else ""
    what = first or last or f"it ended with status {finished.status} and said nothing"
    return ProfilerError(
        what.removeprefix("Error: "), "Run py-spy record --pid on the server by hand to see more"
    )
