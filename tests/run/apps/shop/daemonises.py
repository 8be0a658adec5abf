"""Goes into the background when it is imported, as old servers do."""

import os
import time

if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
with open(os.environ["PID_FILE"], "w") as out:
    out.write(str(os.getpid()))
time.sleep(600)


def application(environ, start_response):
    start_response("200 OK", [])
    return [b""]
