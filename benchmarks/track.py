"""The track benchmarks run on: one CPU for the target, another for the generator, CPU time by rusage.

with ThirdParty({"latency": "200ms"}) as target:
    run = drive(["wrk", "-d2", target.url])
    print(target.facts()["requests"], run.cpu_s)
"""

import json
import os
import resource
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 15.0
"""How long a target may take to start or to answer a question."""


def cpus() -> tuple[int, int]:
    """Return the CPU of the target and that of the generator; the same one where there is only one."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[0], allowed[-1]


def allow_files() -> None:
    """Raise the soft limit of open files to the hard one; children inherit it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@dataclass(frozen=True)
class Run:
    """A generator that ran to its end. `cpu_s` is all of its CPU time, user and system, from start to end."""

    output: str
    status: int
    cpu_s: float
    wall_s: float


class Driver:
    """A generator that is running, pinned to its CPU."""

    def __init__(self, command: Sequence[str]) -> None:
        self._output = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the process
        self._began = time.monotonic()
        cpu = cpus()[1]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),  # noqa: PLW1509 - there are no threads
        )

    def finish(self) -> Run:
        """Wait for its end."""
        # wait4 instead of Popen.wait: it alone tells the CPU time of this one child.
        _, status, usage = os.wait4(self._process.pid, 0)
        wall = time.monotonic() - self._began
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self._output.seek(0)
        text = self._output.read()
        self._output.close()
        cpu = usage.ru_utime + usage.ru_stime
        return Run(text, self._process.returncode, cpu, wall)

    def memory(self, at_s: float) -> int:
        """Return the most bytes it ever had in memory up to `at_s` seconds after its start; waits for that.

        Not `ru_maxrss`: that one remembers the memory of the process it was forked from.
        """
        time.sleep(max(0.0, self._began + at_s - time.monotonic()))
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def drive(command: Sequence[str]) -> Run:
    """Run a generator to its end."""
    return Driver(command).finish()


class Target:
    """A server in a process of its own, pinned to its CPU. Lines in, lines out; ends when its input does."""

    url: str
    process: "subprocess.Popen[str]"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        else:
            self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def start(self, command: Sequence[str], pipes: bool) -> None:
        """Start the process on the target's CPU."""
        cpu = cpus()[0]
        pipe = subprocess.PIPE if pipes else None
        self.process = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),  # noqa: PLW1509 - there are no threads
        )

    def ask(self, line: str) -> str:
        """Send a line and return the answer's. Raises RuntimeError when the process is gone."""
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.told()

    def told(self) -> str:
        """Return the next line it writes. Raises RuntimeError when the process is gone."""
        assert self.process.stdout
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the target {self.process.args!r} ended with {self.process.wait(PATIENCE_S)}")
        return answer.strip()

    def requests(self) -> int:
        """Return how many requests it has received."""
        raise NotImplementedError


class ThirdParty(Target):
    """Velodrome's simulated third party; without a latency the plainest server there is: 84 bytes."""

    def __init__(self, spec: dict[str, Any] | None = None) -> None:
        self.start([sys.executable, "-m", "velodrome.run.upstream_process"], pipes=True)
        # With the 65 bytes of its head, 19 of body make 84 on the wire.
        answer = json.loads(self.ask(json.dumps({"body": 19, **(spec or {})})))
        if "error" in answer:
            raise RuntimeError(answer["error"])
        self.url = f"http://127.0.0.1:{answer['port']}/"

    def facts(self) -> dict[str, Any]:
        """Return what it did; asking also begins a new span of `since`."""
        facts: dict[str, Any] = json.loads(self.ask(""))
        return facts

    def requests(self) -> int:
        return int(self.facts()["requests"])


class Nginx(Target):
    """nginx, one process, a constant answer of 84 bytes of body, everything else as it comes; `tls`: over TLS 1.3."""

    CONFIG = """
daemon off; master_process off; worker_processes 1; pid {folder}/pid; error_log stderr crit;
events {{ worker_connections 20000; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 3600;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port} backlog=4096 {tls};
    location / {{ return 200 "{body}"; }}
    location = /status {{ stub_status; }}
  }}
}}
"""

    TLS = "ssl; ssl_certificate {folder}/cert; ssl_certificate_key {folder}/key; ssl_protocols TLSv1.3"
    CERTIFICATE = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"

    def __init__(self, tls: bool = False) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="velodrome-bench-")
        folder, port = self._folder.name, free_port()
        if tls:
            files = ["-keyout", f"{folder}/key", "-out", f"{folder}/cert"]
            command = [program("openssl") or "openssl", *self.CERTIFICATE.split(), *files]
            subprocess.run(command, check=True, capture_output=True)
        config = Path(folder, "nginx.conf")
        body, sealed = "Hello, World!" * 6 + "Hello.", self.TLS.format(folder=folder) if tls else ""
        config.write_text(self.CONFIG.format(folder=folder, port=port, body=body, tls=sealed))
        # A certificate made a moment ago, for one run: there is nobody to check it with.
        self._context = ssl._create_unverified_context() if tls else None
        self.start([program("nginx") or "nginx", "-e", "stderr", "-c", str(config)], pipes=False)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{port}/"
        until(lambda: self._status() is not None, "nginx answers")

    def _status(self) -> str | None:
        try:
            with urllib.request.urlopen(
                self.url + "status", timeout=PATIENCE_S, context=self._context
            ) as answer:
                return str(answer.read().decode())
        except OSError:
            return None

    def requests(self) -> int:
        text = self._status() or ""
        return int(text.splitlines()[2].split()[2]) if text else 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._folder.cleanup()


class Recorder(Target):
    """A target that notes when each request reached the machine (`crates/engine/examples/recorder.rs`)."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="velodrome-bench-")
        self.start([str(example("recorder"))], pipes=True)
        self.url = f"http://127.0.0.1:{self.told()}/"

    def arrivals(self) -> "array[int]":
        """Return the arrivals since the last asking, nanoseconds, in order."""
        file = Path(self._folder.name, "arrivals")
        self.ask(str(file))
        noted = array("Q", file.read_bytes())
        return array("Q", sorted(noted))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._folder.cleanup()


def built(package: str, kind: str, name: str) -> Path:
    """Build a program (`--bin` or `--example`), optimised, and return its path. Raises RuntimeError."""
    command = ["cargo", "build", "--release", "--quiet", "-p", package, kind, name]
    done = subprocess.run(
        [*command, "--message-format", "json"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == name:
            return Path(message["executable"])
    raise RuntimeError(f"cargo could not build {name}: {done.stderr[-2000:]}")


def example(name: str) -> Path:
    """Build an example of the engine and return its path. Raises RuntimeError."""
    return built("velodrome-engine", "--example", name)


def program(name: str) -> str | None:
    """Find a program: the environment variable `VELODROME_<NAME>`, then PATH."""
    return os.environ.get(f"VELODROME_{name.upper()}") or shutil.which(name)


def free_port() -> int:
    """Return a port nobody listens on just now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def until(
    holds: Callable[[], bool], what: str, every_s: float = 0.02, patience_s: float = PATIENCE_S
) -> float:
    """Poll until something holds; return how many seconds that took. Raises TimeoutError."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > patience_s:
            raise TimeoutError(f"waited {patience_s:g} s in vain until {what}")
        time.sleep(every_s)
    return time.monotonic() - began
