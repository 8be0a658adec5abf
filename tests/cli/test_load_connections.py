"""Where `velodrome load` connects to and how, as a user says it."""

import json
import shutil
import socketserver
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

LOAD = [sys.executable, "-m", "velodrome", "load"]


class Told(BaseHTTPRequestHandler):
    """Answers with the host the request names."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        host = self.headers["Host"].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(host)))
        self.end_headers()
        self.wfile.write(host)

    def address_string(self) -> str:
        return "somebody"

    def log_message(self, *words: object) -> None:
        """Nothing: standard error is read by nobody."""


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


def load(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LOAD, *map(str, words)], capture_output=True, text=True, check=False, timeout=60)


def ok(*words: str | Path) -> int:
    ended = load(*words, "-n", "30", "-c", "3", "--json")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    document: dict[str, Any] = json.loads(ended.stdout)
    assert document["ok"] == document["requests"] == 30
    return int(document["connections"]["opened"])


@pytest.fixture
def unix(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "web.sock"
    with UnixServer(str(path), Told) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield path
        server.shutdown()


@pytest.fixture
def web() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Told) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_unix_socket_is_loaded(unix: Path) -> None:
    assert ok("http://shop.test/", "--unix", unix, "--expect-body", "shop.test") == 3
    escaped = str(unix).replace("/", "%2F")
    ok(f"http+unix://{escaped}/", "--expect-body", "localhost")


def test_connections_go_elsewhere_and_requests_name_the_host(web: ThreadingHTTPServer) -> None:
    rule = f"shop.test:80:127.0.0.1:{web.server_address[1]}"
    ok("http://shop.test/", "--connect-to", rule, "--expect-body", "shop.test")
    refused = load("http://127.0.0.1/", "--connect-to", "::192.0.2.1:80", "-n", "1")
    assert refused.returncode == 2
    assert "--allow-target 192.0.2.1" in refused.stderr


def test_tls_is_spoken_as_configured(web: ThreadingHTTPServer, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here to make a certificate with")
    made, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    subject = ["-subj", "/CN=test", "-addext", "subjectAltName=DNS:shop.test"]
    subprocess.run(
        [*command, *subject, "-days", "2", "-keyout", key, "-out", made], check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    context.load_verify_locations(made)
    context.verify_mode = ssl.CERT_REQUIRED
    web.socket = context.wrap_socket(web.socket, server_side=True)
    url = f"https://127.0.0.1:{web.server_address[1]}/"
    own: list[str | Path] = ["--cert", made, "--key", key]
    ok(url, "--cacert", made, "--sni", "shop.test", "--tls-min", "1.3", "--alpn", "none", *own)
    unnamed = json.loads(load(url, "--cacert", made, *own, "-n", "2", "-c", "1", "--json").stdout)
    assert "it names another host" in unnamed["examples"][0]["text"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["http://127.0.0.1:1/", "--sni", "a.test"], "--sni is about TLS"),
        (["http://127.0.0.1:1/", "--tls-min", "1.3"], "--tls-min is about TLS"),
        (["https://127.0.0.1:1/", "--alpn", "none", "--alpn", "h2"], "--alpn none offers nothing"),
        (["https://127.0.0.1:1/", "--key", "x.pem"], "give cert too"),
        (["http://127.0.0.1:1/", "--unix", "x", "--idle", "5"], "--idle holds connections to the host"),
        (["http://127.0.0.1:1/", "--connect-to", "x"], "has not four parts"),
        (["http://127.0.0.1:1/", "-m", "5"], "--streams applies only to grpc:// URLs"),
        (["grpc://127.0.0.1:1/a/b", "--http2"], "--http2 applies only to http:// URLs"),
        (["ws://127.0.0.1:1/", "--http2"], "WebSockets are opened over HTTP/1.1"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(words: list[str], sentence: str) -> None:
    ended = load(*words, "-n", "1")
    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_http2_is_not_spoken_to_a_server_of_http1(web: ThreadingHTTPServer) -> None:
    ended = load(
        f"http://127.0.0.1:{web.server_address[1]}/", "--http2", "-n", "2", "-c", "1", "--timeout", "1s"
    )
    assert ended.returncode == 1
    assert "NONE answered right" in ended.stdout
