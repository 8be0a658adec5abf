"""`cold-worker`: something that only the first request of a worker does; and cured."""

import time

from plain import saying

LOADS_S = 0.3


def loading(there):
    def load(environ):
        if not there:
            time.sleep(LOADS_S)
            there.append(True)

    return load


severe, cured = saying(loading([])), saying(loading([True]))
