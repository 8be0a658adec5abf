"""Starts its own server when it is imported, and is deaf to SIGTERM."""

import signal
import socket
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
print(f"Running on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
while True:
    time.sleep(1)
