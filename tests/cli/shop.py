"""A small server with several pages; prints its port, then serves until its input ends.

GET /items/N    `{"id": N}`
POST /orders    201 and what was sent
GET /seen       each request so far, a line each
"""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

seen: list[str] = []


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if self.path == "/seen":
            self._say(200, "\n".join(seen).encode())
            return
        seen.append(f"GET {self.path} {self.headers.get('X-Trace', '')}")
        if self.path.startswith("/items/"):
            self._say(200, b'{"id": %s}' % self.path[7:].encode())
        else:
            self._say(404, b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        seen.append(f"POST {self.path} {body.decode()}")
        self._say(201, body)

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Nothing: standard error is read by nobody."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
