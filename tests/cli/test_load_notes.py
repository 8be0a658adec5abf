"""What `velodrome load` makes of what it was given: notes where it differs, and refusals with their cure."""

import base64
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ONE = [sys.executable, "-m", "velodrome"]
SERVER = Path(__file__).with_name("counting_server.py")
FEW_FILES = (
    "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))\n"
    "from velodrome.cli.main import main; main()"
)


def load(*words: str, program: list[str] = ONE) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*program, "load", *words], capture_output=True, text=True, check=False, timeout=60)


@contextmanager
def server(kind: str) -> Iterator[str]:
    with subprocess.Popen([sys.executable, str(SERVER), kind], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/"
        finally:
            process.kill()


def test_a_file_that_cannot_be_written_is_reported_before_anything_is_sent(shop: str, tmp_path: Path) -> None:
    for option, place, why in (
        ("--hdr", tmp_path / "none" / "x.hlog", "there is no folder"),
        ("--csv", tmp_path, "it is a folder"),
        ("--percentiles", tmp_path / "none" / "x.txt", "there is no folder"),
    ):
        ended = load(f"{shop}/items/1", "-n", "1", option, str(place))
        assert ended.returncode == 2
        assert ended.stderr.startswith(f"velodrome: {option} {place} cannot be written: {why}")
        assert ended.stdout == ""
    with urllib.request.urlopen(f"{shop}/seen") as answer:
        assert answer.read() == b""


def test_what_is_in_flight_at_the_end_of_a_closed_loop_has_not_failed(third_party: str) -> None:
    words = (
        f"{third_party}?velodrome-latency=400ms",
        "-z",
        "500ms",
        "--drain",
        "0s",
        "--fail-if",
        "errors > 0",
    )
    closed = load(*words, "-c", "8")
    assert closed.returncode == 0, closed.stdout
    assert "none failed, 8 in flight at the end" in closed.stdout
    assert "outcomes:" not in closed.stdout
    opened = load(*words, "-R", "20")
    assert opened.returncode == 1
    assert "outcomes: ok" in opened.stdout
    assert "unfinished" in opened.stdout


def test_a_latency_does_not_pass_when_those_who_got_an_answer_are_the_lucky_ones() -> None:
    with server("moody") as url:
        ended = load(url, "-n", "400", "-c", "2", "--no-keepalive", "--json", "--fail-if", "p90 > 10s")
    document = json.loads(ended.stdout)
    assert document["outcomes"]["reset"] >= 100
    assert ended.returncode == 1
    assert "of the requests have no latency (reset): it is of the others" in ended.stderr


def test_the_address_that_servers_print_is_loopback(third_party: str) -> None:
    ended = load(third_party.replace("127.0.0.1", "0.0.0.0"), "-n", "5", "--json")
    document = json.loads(ended.stdout)
    assert document["ok"] == 5
    assert document["notes"] == [
        "0.0.0.0 is where a server listens on every address, and none to connect to: 127.0.0.1 was loaded."
    ]


def test_a_low_limit_of_open_files_makes_the_usual_connections_fewer_and_refuses_those_asked_for(
    third_party: str,
) -> None:
    few = [sys.executable, "-c", FEW_FILES]
    words = (third_party, "-R", "100", "-n", "20")
    usual = load(*words, program=few)
    assert usual.returncode == 0, usual.stderr
    assert "Up to 66 connections at once instead of 1 000" in usual.stdout
    refused = load(*words, "-c", "1000", program=few)
    assert refused.returncode == 3
    assert "the hard limit (RLIMIT_NOFILE) is 200" in refused.stderr


def test_a_redirect_is_reported_with_what_to_do() -> None:
    with server("moved") as url:
        ended = load(url, "-n", "3")
    sentence = " ".join(ended.stdout.split())
    assert (
        "status 302 where 2xx is right. It redirects, and redirects are not followed: load the URL"
        in sentence
    )


def test_a_body_is_posted_unless_another_method_is_named(shop: str) -> None:
    assert load(f"{shop}/orders", "-n", "1", "--body", "tea").returncode == 0
    with urllib.request.urlopen(f"{shop}/seen") as answer:
        assert answer.read() == b"POST /orders tea"


def test_a_password_in_the_url_is_shown_in_no_form() -> None:
    encoded = base64.b64encode(b"jane:secret").decode()
    for words in (
        ("http://jane:secret@127.0.0.1:1/x",),
        ("http://jane:secret@127.0.0.1:1/x", "--call", "a.B/C"),
    ):
        ended = load(*words, "-n", "1")
        assert ended.returncode == 2
        assert "127.0.0.1:1/x" in ended.stderr
        assert "-H 'Authorization: Basic …'" in ended.stderr
        for form in ("secret", "jane", encoded):
            assert form not in ended.stdout + ended.stderr
