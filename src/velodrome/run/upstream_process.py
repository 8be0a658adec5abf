"""The simulated third party's process: `python -m velodrome.run.upstream_process --cpus 1 --user ""`.

The first line of standard input is the spec (JSON); the answer is `{"port": N}` or `{"error": "sentence"}`.
Each line after that is answered with the facts so far. The end of standard input, which is also the end of
whoever started us, stops it.
"""

import json
import sys

from velodrome.run.supervision import own_process


def main() -> int:
    """Serve until standard input ends."""
    own_process.pin()
    spec = sys.stdin.readline()
    try:
        from velodrome import _native  # noqa: PLC0415 - after pinning: its threads inherit the CPUs

        own_process.give_up_root()
        upstream = _native.Upstream(spec)
    except (ValueError, PermissionError, OSError) as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 2
    except Exception as error:  # no memory, no engine
        print(json.dumps({"error": own_process.in_words(error)}), flush=True)
        return 2
    print(json.dumps({"port": upstream.port}), flush=True)
    for _ in sys.stdin:
        print(upstream.facts(), flush=True)
    upstream.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
