"""The process the engine runs in: `python -m velodrome.run.drivers.engine_process --cpus 1 --user ""`.

Standard input carries `SPEC_BYTES BODY_BYTES EXPECT_BYTES` (-1: no expected body) as one line, then those bytes; its
end, which is also the end of whoever started us, ends the load early. A part of a load waits for a line `begin
NANOSECONDS` there. Standard output carries one line of JSON per event, then a line `document` followed by the
velodrome/load/1 document, or a line `error KIND` followed by a sentence.

Next to nothing is imported (no json, no argparse), so that a load begins some 30 ms after the command.
"""

import os
import signal
import sys
import threading

from velodrome.run.supervision import own_process

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from typing import IO

READY = '{"event": "ready"}'
"""Of a part of a load, until it hears when all parts begin."""
PATIENCE_S = 10.0
"""How long the engine may take to end early before this process leaves without it: it ends within a tick."""


def main() -> int:
    """Carry out the load standard input asks for; exit status 0, or 2 with an `error` line."""
    out = sys.stdout.buffer
    try:
        document = _carried_out(out)
    except (ValueError, PermissionError, OSError) as error:
        kind = next(
            known.__name__ for known in (ValueError, PermissionError, OSError) if isinstance(error, known)
        )
        _refuse(out, kind, str(error))
        return 2
    except Exception as error:  # no thread, no memory, no engine
        _refuse(out, "OSError", own_process.in_words(error))
        return 2
    out.write(b"document\n" + document.encode() + b"\n")
    out.flush()
    return 0


def _refuse(out: "IO[bytes]", kind: str, sentence: str) -> None:
    out.write(f"error {kind}\n{sentence}\n".encode())
    out.flush()


def _carried_out(out: "IO[bytes]") -> str:
    own_process.pin()
    from velodrome import _native  # noqa: PLC0415 - after pinning: its threads inherit the CPUs

    own_process.give_up_root()

    source = sys.stdin.buffer
    spec_bytes, body_bytes, expect_bytes = map(int, source.readline().split())
    spec = source.read(spec_bytes).decode()
    body = source.read(body_bytes)
    expected = source.read(expect_bytes) if expect_bytes >= 0 else None
    stopping, begin = threading.Event(), _Begin()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    threading.Thread(target=_watch, args=(stopping, begin), daemon=True).start()

    def deliver(line: str) -> "bool | int":
        if line == READY:
            if begin.announced:  # it comes every few milliseconds
                return begin.at or not stopping.is_set()
            begin.announced = True
        out.write(line.encode() + b"\n")
        out.flush()
        return not stopping.is_set()

    return _native.load(spec, body, expected, deliver)


class _Begin:
    """When a part of a load begins; 0: not known yet."""

    def __init__(self) -> None:
        self.at, self.announced = 0, False


def _watch(stopping: threading.Event, begin: _Begin) -> None:
    """Wait for the end of standard input, then have the load ended, or end the process if that hangs."""
    message = b""
    while chunk := os.read(0, 4096):
        *lines, message = (message + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"begin "):
                begin.at = int(line[6:])
    stopping.set()
    threading.Event().wait(PATIENCE_S)
    os._exit(3)


if __name__ == "__main__":
    try:
        status = main()
    except BrokenPipeError:
        status = 3
    # Without the interpreter's own end: the watching thread sits in a read that only our starter can end.
    os._exit(status)
