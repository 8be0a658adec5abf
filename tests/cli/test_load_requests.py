"""`velodrome load --requests-file` and templates, as a user runs them against a server that remembers."""

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

LOAD = [sys.executable, "-m", "velodrome", "load"]
MIX = """
[[request]]
name = "item"
weight = 3
path = "/items/{{random 1..9}}"
headers = { X-Trace = "{{hex 8}}" }
expect-contains = '"id"'

[[request]]
name = "order"
method = "POST"
path = "/orders"
body = "@order.json"
expect-status = 201

[[request]]
name = "lost"
weight = 0.5
path = "/nowhere"
"""


def load(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LOAD, *map(str, words)], capture_output=True, text=True, check=False, timeout=60)


def seen(url: str) -> list[str]:
    with urllib.request.urlopen(f"{url}/seen", timeout=10) as answer:
        found: list[str] = answer.read().decode().splitlines()
        return found


@pytest.fixture
def mix(tmp_path: Path) -> Path:
    (tmp_path / "order.json").write_text('{"order": {{n}}}')
    path = tmp_path / "mix.toml"
    path.write_text(MIX)
    return path


def test_a_mix_is_sent_by_weight_and_reported_by_name(shop: str, mix: Path) -> None:
    ended = load(shop, "--requests-file", mix, "-n", "300", "-c", "4", "--json")
    document = json.loads(ended.stdout)
    rows = {row["name"]: row for row in document["by_request"]}
    assert sum(row["requests"] for row in rows.values()) == 300
    assert 170 <= rows["item"]["requests"] <= 230
    assert rows["item"]["ok"] == rows["item"]["requests"]
    assert rows["order"]["ok"] == rows["order"]["requests"]
    assert rows["lost"]["outcomes"]["bad_status"] == rows["lost"]["requests"] > 0
    received = seen(shop)
    items = [line for line in received if line.startswith("GET /items/")]
    assert len(items) == rows["item"]["requests"]
    assert all(re.fullmatch(r"GET /items/[1-9] [0-9a-f]{8}", line) for line in items)
    orders = [line for line in received if line.startswith("POST")]
    assert len(set(orders)) == len(orders) == rows["order"]["requests"], "each has a number of its own"


def test_the_same_seed_sends_the_same(shop: str, mix: Path) -> None:
    words: list[str | Path] = [shop, "--requests-file", mix, "-n", "40", "-c", "1"]
    load(*words, "--seed", "7")
    load(*words, "--seed", "7")
    load(*words, "--seed", "8")
    received = seen(shop)
    assert received[:40] == received[40:80] != received[80:]


def test_the_report_has_a_line_for_each_request(shop: str, mix: Path) -> None:
    shown = load(shop, "--requests-file", mix, "-n", "100").stdout
    lines = {line.split()[0]: line for line in shown.splitlines() if line[:5] in (" item", " orde", " lost")}
    assert set(lines) == {"item", "order", "lost"}
    assert "67 %" in lines["item"]
    assert "bad status" in lines["lost"]


def test_a_list_in_json_says_the_same(shop: str, tmp_path: Path) -> None:
    path = tmp_path / "mix.json"
    path.write_text(json.dumps([{"name": "a", "path": "/items/1", "expect-body": '{"id": 1}'}]))
    ended = load(shop, "--requests-file", path, "-n", "20", "--json")
    assert json.loads(ended.stdout)["ok"] == 20


def test_paths_headers_and_bodies_are_templates(shop: str) -> None:
    assert (
        load(f"{shop}/items/{{{{n}}}}", "-n", "5", "-c", "1", "-H", "X-Trace: {{pick a|a}}").returncode == 0
    )
    assert seen(shop) == [f"GET /items/{n} a" for n in range(5)]


def test_without_templates_braces_are_braces(shop: str) -> None:
    ended = load(shop, "--body", "{{x}}", "-n", "1")
    assert ended.returncode == 2
    assert "--no-template sends braces as they stand" in ended.stderr
    load(shop, "-X", "POST", "--body", "{{x}}", "--no-template", "-n", "1", "-c", "1")
    assert seen(shop) == ["POST / {{x}}"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "request: Field required"),
        ("[[request]]\npath = '/'", "request 1, name: Field required"),
        ("[[request]]\nname = 'a'\nweight = 'much'", "request 1, weight: "),
        (
            "[[request]]\nname = 'a'\ncolour = 'red'",
            "request 1, colour: there is no such field. There are: name",
        ),
        ("colour = 'red'\n[[request]]\nname = 'a'", "colour: a file of requests has [[request]]"),
        ("[[request]", "mix.toml: "),
        ("[[request]]\nname = 'a'\nweight = -1", "request 1, weight: -1"),
        ("[[request]]\nname = 'a'\npath = '/{{m}}'", 'request "a": path: {{m}} stands for nothing'),
        ("[[request]]\nname = 'a'\nbody = '@none'", "request a, body: cannot read"),
    ],
)
def test_what_makes_no_mix_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "mix.toml"
    path.write_text(text)
    ended = load("http://127.0.0.1:1/", "--requests-file", path)
    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_options_that_a_file_says_for_each_request_are_refused(mix: Path) -> None:
    ended = load("http://127.0.0.1:1/", "--requests-file", mix, "--body", "x")
    assert ended.returncode == 2
    assert "--requests-file sets it for each request" in ended.stderr
    assert load("http://127.0.0.1:1/", "--requests-file", "/nowhere.toml").returncode == 2
    assert load("grpc://127.0.0.1:1/a/b", "--requests-file", mix).returncode == 2
