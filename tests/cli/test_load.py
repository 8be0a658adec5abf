"""`velodrome load` and `velodrome upstream`, as a user runs them against each other."""

import json
import subprocess
import sys
from pathlib import Path

from velodrome.judge.histograms import decode

ONE = [sys.executable, "-m", "velodrome"]


def load(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*ONE, "load", *words], capture_output=True, text=True, check=False, timeout=60)


def test_the_document_counts_every_request(third_party: str) -> None:
    ended = load(third_party, "-n", "60", "-c", "4", "--json")
    document = json.loads(ended.stdout)
    assert ended.returncode == 0
    assert document["schema"] == "velodrome/load/1"
    assert document["requests"] == document["ok"] == sum(document["outcomes"].values()) == 60
    assert document["latency_ms"]["sent"]["p50"] >= 5
    assert document["connections"]["asked"] == 4


def test_an_open_loop_is_reported_with_its_lag(third_party: str) -> None:
    shown = load(third_party, "-n", "60", "-R", "300").stdout
    assert "open loop, constant 300/s" in shown
    assert "from when due" in shown
    assert "our own lag" in shown


def test_both_transports_count_alike(third_party: str) -> None:
    for transport in ("auto", "epoll"):
        document = json.loads(
            load(third_party, "-n", "40", "-c", "4", "--transport", transport, "--json").stdout
        )
        assert document["ok"] == 40


def test_both_histograms_are_written_as_a_log(third_party: str, tmp_path: Path) -> None:
    log = tmp_path / "latency.hlog"
    load(third_party, "-n", "60", "-c", "4", "--hdr", str(log))
    tagged = [line for line in log.read_text().splitlines() if line.startswith("Tag=")]
    assert [line.partition(",")[0] for line in tagged[:2]] == ["Tag=due", "Tag=sent"]
    for line in tagged[:2]:
        found = decode(line.rsplit(",", 1)[1])
        assert found.total == 60
        assert (found.percentile_ms(50) or 0) >= 5


def test_idle_connections_are_held_beside_the_load_and_reported(third_party: str) -> None:
    ended = load(third_party, "-n", "20", "--idle", "30", "--json")
    assert json.loads(ended.stdout)["idle"] == {"asked": 30, "opened": 30, "accepted": 30, "still_open": 30}
    assert "30 idle connections were held" in load(third_party, "-n", "20", "--idle", "30").stdout
    assert load(third_party, "-n", "20", "--idle", "-1").returncode == 2


def test_a_log_that_cannot_be_written_costs_nothing_but_itself(third_party: str) -> None:
    ended = load(third_party, "-n", "5", "--hdr", "/dev/full")
    assert ended.returncode == 3
    assert ended.stderr.startswith("velodrome: cannot write /dev/full")
    assert "5 requests" in ended.stdout


def test_a_wrong_body_is_counted_and_shown(third_party: str) -> None:
    ended = load(third_party, "-n", "8", "-c", "2", "--expect-body", "x" * 100)
    assert "wrong body 8" in ended.stdout
    assert ended.returncode == 1


def test_nobody_there_is_refused_and_exit_code_1() -> None:
    ended = load("http://127.0.0.1:1/", "-n", "3")
    assert "refused 3" in ended.stdout
    assert ended.returncode == 1


def test_a_taken_port_is_one_sentence(third_party: str) -> None:
    port = third_party.rstrip("/").rsplit(":", 1)[1]
    ended = subprocess.run(
        [*ONE, "upstream", "--port", port], capture_output=True, text=True, check=False, timeout=20
    )
    assert ended.returncode == 3
    assert ended.stderr.startswith("velodrome: ")
    assert "Traceback" not in ended.stderr


def test_options_of_websockets_need_a_websocket() -> None:
    for words, sentence in (
        (("http://127.0.0.1:1/", "--ws-mode", "echo"), "--ws-mode is for WebSockets"),
        (("http://127.0.0.1:1/", "--message", "x"), "--message is for WebSockets"),
        (("ws://127.0.0.1:1/", "--body", "x"), "the message of a WebSocket is --message"),
        (("ws://127.0.0.1:1/", "--ws-mode", "connect", "--message", "10"), "websocket: connect"),
        (("ws://127.0.0.1:1/", "--message", "@/no/such/file"), "--message: cannot read /no/such/file"),
    ):
        ended = load(*words, "-n", "1")
        assert ended.returncode == 2
        assert sentence in ended.stderr
