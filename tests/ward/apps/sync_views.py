"""`sync-under-asgi`: a query in asgiref's one thread; cured by threads that do not depend on each other."""

import time

from answering import answering
from asgiref.sync import sync_to_async

WAITS_S = 0.01


def query():
    time.sleep(WAITS_S)


severe, cured = (answering(sync_to_async(query, thread_sensitive=sensitive)) for sensitive in (True, False))
