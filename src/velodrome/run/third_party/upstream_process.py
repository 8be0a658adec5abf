"""The process the simulated third party runs in: `python -m velodrome.run.third_party.upstream_process --cpus 1`.

A last argument, if there is one, is the user to become, after all of ours has been imported.
The first line of standard input is the spec (JSON); the answer is `{"port": N}` or `{"error": "sentence"}`.
Each line after that is answered with the facts so far. The end of standard input, which is also the end of
whoever started us, stops it.
"""

import json
import os
import sys


def main() -> int:
    """Serve until standard input ends."""
    if len(sys.argv) > 2 and sys.argv[1] == "--cpus" and sys.argv[2] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(cpu) for cpu in sys.argv[2].split(",")})
    spec = sys.stdin.readline()
    try:
        from velodrome import _native  # noqa: PLC0415 - after pinning: its threads inherit the CPUs
        from velodrome.run import account  # noqa: PLC0415

        if len(sys.argv) > 3:
            account.become(sys.argv[3])
        upstream = _native.Upstream(spec)
    except (ValueError, PermissionError, OSError) as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 2
    except Exception as error:  # no memory, no engine
        from velodrome.run.faults import told  # noqa: PLC0415 - only where it failed

        print(json.dumps({"error": str(told(error))}), flush=True)
        return 2
    print(json.dumps({"port": upstream.port}), flush=True)
    for _ in sys.stdin:
        print(upstream.facts(), flush=True)
    upstream.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
