"""What `velodrome load` writes: its document by the published schema, CSV, percentiles, HdrHistogram log; phases."""

import csv
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from velodrome.report import schema

ONE = [sys.executable, "-m", "velodrome"]


def load(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*ONE, "load", *words], capture_output=True, text=True, check=False, timeout=60)


def document(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(load(*words, "--json").stdout)
    return found


def strange(
    found: Any, described: Mapping[str, Any], whole: Mapping[str, Any], path: str = ""
) -> Iterator[str]:
    """Yield the fields of a document that its schema does not know."""
    while "$ref" in described:
        described = whole["$defs"][described["$ref"].rpartition("/")[2]]
    for either in described.get("anyOf", ()):
        if either.get("type") != "null" and found is not None:
            yield from strange(found, either, whole, path)
    if isinstance(found, dict) and "properties" in described:
        for name, value in found.items():
            if name not in described["properties"]:
                yield f"{path}.{name}"
            else:
                yield from strange(value, described["properties"][name], whole, f"{path}.{name}")
    if isinstance(found, list) and "items" in described:
        for value in found:
            yield from strange(value, described["items"], whole, f"{path}[]")


@pytest.mark.parametrize(
    "words",
    [
        ("-n", "60", "-c", "4"),
        ("-R", "200..400", "--step", "200", "--every", "200ms"),
        ("-n", "20", "--idle", "2", "--fail-if", "p50 > 1s or tls.p99 > 1s"),
        ("-n", "5", "--expect-body", "something else"),
    ],
)
def test_a_document_obeys_its_published_schema_and_has_nothing_beside(
    third_party: str, words: tuple[str, ...]
) -> None:
    found = document(third_party, *words)
    jsonschema.validate(found, schema.load())
    assert not list(strange(found, schema.load(), schema.load()))


def test_seconds_are_written_as_csv(third_party: str, tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    found = document(third_party, "-z", "1200ms", "-c", "2", "--csv", str(path))
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [row["at_s"] for row in rows] == ["0", "1"]
    assert float(rows[0]["p50_ms"]) >= 5
    assert {row["limit"] for row in rows} == {found["limit"]["at"]}


def test_percentiles_are_written_from_due_and_from_sent(third_party: str, tmp_path: Path) -> None:
    found = document(third_party, "-n", "100", "-c", "2", "--percentiles", str(tmp_path / "latency.txt"))
    for name in ("latency.txt", "latency.sent.txt"):
        text = (tmp_path / name).read_text()
        assert "Total count    =          100" in text
        assert found["limit"]["sentence"] in text


def test_the_log_says_where_the_limit_was_and_has_the_phases(third_party: str, tmp_path: Path) -> None:
    path = tmp_path / "load.hlog"
    found = document(third_party, "-n", "60", "-c", "4", "--hdr", str(path))
    lines = path.read_text().splitlines()
    assert f"#[{found['limit']['sentence']}]" in lines
    assert [line.partition(",")[0] for line in lines if line.startswith("Tag=")] == [
        "Tag=due",
        "Tag=sent",
        "Tag=connect",
        "Tag=first_byte",
        "Tag=last_byte",
    ]


@contextmanager
def slow_writer(pause_s: float) -> Iterator[str]:
    """A server whose answers begin after `pause_s` and end as long after that."""

    def serve(peer: socket.socket) -> None:
        # The second part must not wait for an acknowledgement of the first.
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with peer:
            while peer.recv(65_536):
                time.sleep(pause_s)
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
                time.sleep(pause_s)
                peer.sendall(b"cd")

    def accept() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(peer,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        listener.shutdown(socket.SHUT_RDWR)


def test_first_and_last_byte_are_told_apart() -> None:
    with slow_writer(0.02) as url:
        for transport in ("auto", "epoll"):
            found = document(url, "-n", "20", "-c", "2", "--transport", transport)
            phases = found["phases_ms"]
            assert 20 <= phases["first_byte"]["p50"] < 35
            assert 19 <= phases["last_byte"]["p50"] < 35
            assert found["latency_ms"]["sent"]["p50"] >= 40
            assert 0 < phases["connect"]["max"] < 1_000
            assert phases["tls"] is None
        assert "then last byte" in load(url, "-n", "20", "-c", "2").stdout


def test_answers_of_one_piece_begin_when_they_end(third_party: str) -> None:
    found = document(third_party, "-n", "40", "-c", "2")
    assert found["phases_ms"]["last_byte"]["max"] == 0
    assert found["phases_ms"]["first_byte"]["p50"] == found["latency_ms"]["sent"]["p50"]
    assert "first byte" not in load(third_party, "-n", "40").stdout


def test_an_answer_that_never_comes_has_no_first_byte() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        found = document(
            f"http://127.0.0.1:{deaf.getsockname()[1]}/", "-n", "2", "-c", "2", "--timeout", "200ms"
        )
    assert found["outcomes"]["timeout"] == 2
    assert found["phases_ms"]["first_byte"] is None
    assert found["phases_ms"]["connect"] is not None
