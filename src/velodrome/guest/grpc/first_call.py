"""Call a gRPC server until it answers: `python -m velodrome.guest.grpc.first_call HOST:PORT SECONDS`.

On failure the exit status is 1 and the last line of standard error says why. Needs grpcio installed.
"""

from __future__ import annotations

import sys
import time
from typing import List

from velodrome.guest.grpc.peers import blocking_peer

PAUSE_S = 0.03
CALL_S = 2.0


def main(argv: List[str]) -> int:
    """Run the program."""
    until = time.monotonic() + float(argv[1])
    while True:
        # Each time on a channel of its own: one that was refused waits a second before it tries again.
        status = blocking_peer(argv[0], CALL_S)(0)
        if status == 0:
            return 0
        if time.monotonic() > until:
            sys.stderr.write("its calls end with status %d\n" % status)
            return 1
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
