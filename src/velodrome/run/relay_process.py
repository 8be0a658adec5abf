"""The process the relay runs in: `python -m velodrome.run.relay_process --cpus 1 --user "" CLIENT SERVER`.

CLIENT and SERVER are inherited descriptors of TUN devices. The first line of standard input is the spec (JSON); the
answer is `{"realtime": …}` or `{"error": "sentence"}`. Each line after that is answered with the facts since the line
before. The end of standard input, which is also the end of whoever started us, ends it.
"""

import json
import os
import sys
from contextlib import suppress

from velodrome.run.supervision import own_process

PRIORITY = 1
"""The lowest real-time priority: above everything that has none."""


def main() -> int:
    """Relay until standard input ends."""
    client, server = map(int, own_process.pin())
    from velodrome import _native  # noqa: PLC0415 - after pinning: its thread inherits the CPUs

    own_process.give_up_root()
    spec = sys.stdin.readline()
    realtime = _hurry()
    try:
        link = _native.Link(spec, client, server)
    except (ValueError, OSError) as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 2
    if realtime:
        # Its thread has inherited the priority; this thread, which only answers, needs none.
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    print(json.dumps({"realtime": realtime}), flush=True)
    for _ in sys.stdin:
        try:
            print(link.facts(), flush=True)
        except OSError as error:
            print(json.dumps({"error": f"its relay has ended: {error}"}), flush=True)
            return 2
    return 0


def _hurry() -> bool:
    """Take priority over whatever else is on this CPU; whether that was allowed.

    A generator that is busy would else keep a packet waiting for its own time slice, some milliseconds.
    """
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
