"""Make a database ready for a recipe, and ask it for a row: `python -m velodrome.guest.preparing CLIENT SECONDS`.

Run in an environment where the client is installed, with the database's URL in its variable. Tries until it
answers or the time is up. Prints the version that the database tells of itself; on failure the exit status is 1
and the last line of standard error says why.
"""

from __future__ import annotations

import os
import sys
import time
from typing import List

from velodrome.guest.client import clients, variable

PAUSE_S = 0.03


def main(argv: List[str]) -> int:
    """Run the program."""
    client = clients()[argv[0]]
    url = os.environ[variable(client.database)]
    until = time.monotonic() + float(argv[1])
    if client.prepare is None:
        raise ValueError("%s prepares nothing" % client.name)
    while True:
        try:
            version = client.prepare(url)
            found = client.connect(url).reader(3, 0.0)()
        except Exception as error:  # each library has classes of its own, and all mean: not yet, or never
            why = "%s: %s" % (type(error).__name__, " ".join(str(error).split()))
        else:
            if len(found) == 3:
                print(version)
                return 0
            why = "it gave %d rows of 3" % len(found)
        if time.monotonic() > until:
            sys.stderr.write(why + "\n")
            return 1
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
