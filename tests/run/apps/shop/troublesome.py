"""Works, and does at import what it should not: prints megabytes, forks, changes the folder, starts threads."""

import os
import sys
import threading
import time

for _ in range(64):
    sys.stdout.write("x" * 65536 + "\n")
if not os.fork():
    time.sleep(600)
threading.Thread(target=time.sleep, args=(600,)).start()
os.chdir("/")


def application(environ, start_response):
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
