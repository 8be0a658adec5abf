"""A secret of its own through each door, and an app that tells all of them to everybody: none is written down.

Searched, in every form: results, reports, terminal, what is written into the cache meanwhile, and the command line of
every process that velodrome starts; where the door is a file, of velodrome's own too.
"""

import base64
import json
import os
import secrets as chance
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from tests import shop_repository
from tests.cli.running import Ended

from velodrome.model import secrets
from velodrome.run import cache

LEAKY = Path(__file__).with_name("canaries")
LARGEST = 20_000_000
"""Bytes of a file of the cache that is searched: what is written there in seconds is smaller."""
PIECE = 12
"""Characters of a canary that are a leak by themselves; every half of it is tried."""
OURS = ("velodrome.run.", "warden.py")
"""In the command lines of processes that have no use for an app's variables."""


def canary(door: str) -> str:
    """Return a secret with letters that every encoding writes in another way."""
    return f"{door}+{chance.token_hex(6)}/{chance.token_hex(6)}~="


def forms(text: str) -> set[str]:
    """Return what a canary is searched for as: in base64 by what no neighbour has a part in."""
    found = {text, quote(text, safe=""), quote_plus(text), quote(text, safe="").lower()}
    data = text.encode()
    for before in range(3):
        core = base64.b64encode(b"x" * before + data).decode()[
            -(-before * 8 // 6) : (before + len(data)) * 8 // 6
        ]
        found |= {core, core.replace("+", "-").replace("/", "_")}
    return found


@dataclass
class Searched:
    """How much was searched, and what was found."""

    bytes: int = 0
    places: int = 0
    found: list[str] = field(default_factory=list)

    def search(self, what: str, text: str, canaries: Mapping[str, str]) -> None:
        self.places += 1
        self.bytes += len(text)
        for door, value in canaries.items():
            pieces = {value[at : at + PIECE] for at in range(0, len(value) - PIECE + 1, PIECE // 2)}
            self.found += [f"{door} in {what} as {form!r}" for form in forms(value) | pieces if form in text]

    def report(self, canaries: Mapping[str, str]) -> None:
        each = len(forms(canary("any")))
        print(f"{len(canaries)} doors, {each} forms each, {self.bytes} bytes in {self.places} places")


class Processes:
    """Every command line that is seen on this machine until the block is left."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.environments: dict[str, set[str]] = {}
        self.looks = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._over.is_set():
            self.looks += 1
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    line = (
                        Path("/proc", pid, "cmdline")
                        .read_bytes()
                        .replace(b"\0", b" ")
                        .decode(errors="replace")
                    )
                    self.seen.add(line)
                    if any(sign in line for sign in OURS):
                        variables = Path("/proc", pid, "environ").read_bytes().decode(errors="replace")
                        self.environments.setdefault(line, set()).add(variables)
                except OSError:
                    continue
            self._over.wait(0.02)

    def __enter__(self) -> "Processes":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join()


def run(where: Path, words: Sequence[str], **variables: str) -> tuple[Ended, Processes]:
    """Run velodrome, its own process kept apart from all others: a child has its command line until it executes."""
    with Processes() as processes:
        ended = subprocess.run(
            [sys.executable, "-m", "velodrome", *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=110,
            cwd=where,
            env={**os.environ, **variables},
        )
    own = " ".join([sys.executable, "-m", "velodrome", *words]) + " "
    processes.seen.discard(own)
    return ended, processes


def search(
    where: Path, since: float, ended: Ended, processes: Processes, canaries: Mapping[str, str]
) -> Searched:
    """Search all that was written and printed, and every command line; the files of the test itself apart."""
    found = Searched()
    found.search("standard output", ended.stdout, canaries)
    found.search("standard error", ended.stderr, canaries)
    root = cache.folder("x").parent
    for folder in (where / "out", where / "runs", root):
        # Another test's folders may go meanwhile: `os.walk` passes over them, `Path.rglob` does not.
        for path in (Path(within, name) for within, _, names in os.walk(folder) for name in names):
            try:
                if path.is_file() and path.stat().st_mtime >= since and path.stat().st_size <= LARGEST:
                    found.search(str(path), path.read_bytes().decode(errors="replace"), canaries)
            except OSError:
                continue  # another test's, and gone
    for line in processes.seen:
        found.search(f"a command line ({line[:80]})", line, canaries)
    for line, environments in processes.environments.items():
        for environment in environments:
            found.search(f"the environment of {line[:80]}", environment, canaries)
    assert processes.looks
    return found


def no_escapes(ended: Ended) -> None:
    for text in (ended.stdout, ended.stderr):
        assert not [letter for letter in text if ord(letter) < 32 and letter not in "\n\t\r"]
        assert "\x7f" not in text
        assert not [letter for letter in text if 0x80 <= ord(letter) < 0xA0]


@pytest.fixture
def laid_out(tmp_path: Path) -> tuple[Path, dict[str, str], list[str]]:
    """Return a folder with an app in it, a canary for each door, and the words that carry them."""
    shutil.copy(LEAKY / "leaky.py", tmp_path / "leaky.py")
    names = (
        *("env", "env-url", "env-shape", "env-file", "env-quoted", "exported", "header", "header-file"),
        *("file-header", "cookie", "body", "form", "query", "upstream", "marked"),
    )
    canaries = {name: canary(name.replace("-", "")) for name in names}
    canaries["env-shape"] = chance.token_urlsafe(32)
    canaries["marked"] = f"pw {chance.token_hex(4)} x"
    (tmp_path / "app.env").write_text(
        f"# of the shop\nexport LEAKY_TOKEN={canaries['env-file']}\n\n"
        f'LEAKY_SECRET="{canaries["env-quoted"]}"  # quoted\n'
    )
    (tmp_path / "app.headers").write_text(f"# of the shop\nX-Api-Key: {canaries['header-file']}\n")
    requests = [
        {
            "name": "pay",
            "path": f"/pay?page=2&access_token={quote(canaries['query'], safe='')}",
            "method": "POST",
            "headers": {
                "Content-Type": "application/json",
                "Private-Token": canaries["file-header"],
                "Cookie": f"theme=dark; session={canaries['cookie']}",
            },
            "body": json.dumps({"amount": 5, "password": canaries["body"], "note": "plain"}),
        },
        {
            "name": "log in",
            "path": "/login",
            "method": "POST",
            "headers": {"Content-Type": "application/x-www-form-urlencoded"},
            "body": f"user=me&client_secret={quote_plus(canaries['form'])}",
        },
    ]
    (tmp_path / "requests.json").write_text(json.dumps(requests))
    words = ["--env", f"LEAKY_PASSWORD={canaries['env']}", "--env", f"LEAKY_BLOB={canaries['env-shape']}"]
    words += ["--env", f"LEAKY_URL=postgres://shop:{quote(canaries['env-url'], safe='')}@127.0.0.1:1/shop"]
    words += ["--env", "LEAKY_EXPORTED_KEY", "--env-file", "app.env", "--header-file", "app.headers"]
    words += ["--env", f"LEAKY_PIN={canaries['marked']}", "--secret", "LEAKY_PIN"]
    words += ["-H", f"Authorization: Bearer {canaries['header']}", "--requests", "requests.json"]
    words += ["--upstream", f'LEAKY_PAYMENTS=latency:1ms,body:{{"api_key":"{canaries["upstream"]}"}}']
    return tmp_path, canaries, words


RACE = ("--stack", "waitress", "--blocks", "1", "-z", "0.5s", "--wait", "--out", "out")


@pytest.mark.exhaustive
def test_no_canary_is_written_down_where_an_app_tells_all_and_dies_under_load(
    laid_out: tuple[Path, dict[str, str], list[str]],
) -> None:
    where, canaries, words = laid_out
    since = time.time() - 1
    ended, processes = run(
        where, ["compare", "leaky:application", *words, *RACE], LEAKY_EXPORTED_KEY=canaries["exported"]
    )
    searched = search(where, since, ended, processes, canaries)
    searched.report(canaries)
    assert not searched.found, "\n".join(searched.found[:20])
    no_escapes(ended)
    assert processes.environments  # of the warden, the engine, the third party
    lines = (where / "out" / "results.jsonl").read_text().splitlines()
    (result,) = map(json.loads, lines[1:])
    # Its output is there, with marks in it: else nothing was searched.
    sentence = "\n".join(result["last_lines"])
    assert "cannot serve" in sentence
    assert secrets.MARK in sentence
    pay, login = json.loads(lines[0])["study"]["questions"][0]["app"]["requests"]
    assert pay["path"] == f"/pay?page=2&access_token={secrets.MARK}"
    assert dict(pay["headers"])["Content-Type"] == "application/json"
    assert json.loads(pay["body"]["text"]) == {"amount": 5, "password": secrets.MARK, "note": "plain"}
    assert login["body"]["text"] == f"user=me&client_secret={secrets.MARK}"
    # The file doors leave nothing in velodrome's own command line either.
    given = " ".join(words)
    assert not [
        door for door in ("env-file", "env-quoted", "header-file", "query", "body") if canaries[door] in given
    ]


def test_no_canary_is_printed_where_an_app_tells_all_when_it_is_imported(
    laid_out: tuple[Path, dict[str, str], list[str]],
) -> None:
    where, canaries, words = laid_out
    since = time.time() - 1
    ended, processes = run(
        where,
        ["compare", "leaky:application", *words, *RACE, "--env", "LEAKY_AT_ONCE=1"],
        LEAKY_EXPORTED_KEY=canaries["exported"],
    )
    searched = search(where, since, ended, processes, canaries)
    searched.report(canaries)
    assert not searched.found, "\n".join(searched.found[:20])
    no_escapes(ended)
    assert ended.returncode == 2
    assert "cannot start with" in ended.stderr
    assert secrets.MARK in ended.stderr


class _Echo(BaseHTTPRequestHandler):
    """Answers everything with what was sent, and with a status that is not right."""

    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        answer = f"{self.headers.get('X-Which', '')} {self.path} {body} {self.headers}".encode()
        self.send_response(500)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = _answer  # noqa: N815 - as the standard library names them

    def log_message(self, *words: object) -> None:
        """Nothing."""


@pytest.fixture
def echo() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "form", [pytest.param((), marks=pytest.mark.exhaustive), ("--json",)], ids=["text", "json"]
)
def test_no_canary_is_printed_of_a_load(form: tuple[str, ...], echo: str, tmp_path: Path) -> None:
    canaries = {door: canary(door) for door in ("query", "header", "headerfile", "fileheader", "body")}
    (tmp_path / "load.headers").write_text(f"X-Api-Key: {canaries['headerfile']}\n")
    path = f"/pay?access_token={quote(canaries['query'], safe='')}"
    request = {"name": f"POST {path}", "path": path, "method": "POST", "expect-status": 200}
    request |= {
        "headers": {"Private-Token": canaries["fileheader"]},
        "body": json.dumps({"secret": canaries["body"]}),
    }
    (tmp_path / "requests.json").write_text(json.dumps([request]))
    (tmp_path / "out").mkdir()
    words = ["load", echo, "-n", "5", "-c", "1", "-H", f"Authorization: Bearer {canaries['header']}", *form]
    words += ["--header-file", "load.headers", "--requests-file", "requests.json"]
    words += ["--hdr", "out/x.hlog", "--csv", "out/x.csv", "--percentiles", "out/x.txt"]
    since = time.time() - 1
    ended, processes = run(tmp_path, words)
    assert "status 500" in ended.stdout
    searched = search(tmp_path, since, ended, processes, canaries)
    searched.report(canaries)
    assert not searched.found, "\n".join(searched.found[:20])
    no_escapes(ended)
    shown = json.loads(ended.stdout)["by_request"][0]["name"] if form else ended.stdout
    assert f"POST /pay?access_token={secrets.MARK}" in shown


def test_no_canary_is_printed_of_a_log_or_a_document(tmp_path: Path) -> None:
    canaries = {"access-log": canary("log"), "openapi": canary("api")}
    token = quote(canaries["access-log"], safe="")
    (tmp_path / "access.log").write_text(
        "".join(
            f'10.0.0.1 - - [22/Nov/2026:20:00:{second:02} +0000] "GET /pay?api_key={token}&page=1 HTTP/1.1" 200 5\n'
            for second in range(20)
        )
    )
    parameter = {"name": "api_key", "in": "query", "required": True, "example": canaries["openapi"]}
    document = {
        "openapi": "3.0.0",
        "info": {"title": "x\u001b]0;OWNED\u0007", "version": "1"},
        "paths": {
            "/pay": {"get": {"parameters": [parameter], "responses": {"200": {"description": ""}}}},
            "/\u001b[31mred": {"trace": {"responses": {"200": {"description": ""}}}},
        },
    }
    (tmp_path / "api.json").write_text(json.dumps(document))
    for option, name in (("--access-log", "access.log"), ("--openapi", "api.json")):
        ended, processes = run(tmp_path, ["requests", option, name])
        assert ended.returncode == 0, ended.stderr
        searched = search(tmp_path, time.time(), ended, processes, canaries)
        assert not searched.found, "\n".join(searched.found[:20])
        assert f"api_key={secrets.MARK}" in ended.stdout
        no_escapes(ended)


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", ["capacity", "tune", "diff", "log", "openapi"])
def test_no_canary_is_written_down_by_any_command(
    command: str, laid_out: tuple[Path, dict[str, str], list[str]]
) -> None:
    where, canaries, words = laid_out
    app = ["leaky:application", *words]
    if command == "diff":
        shop_repository.git(where, "init", "--quiet")
        shop_repository.git(where, "add", "leaky.py")
        shop_repository.git(where, "commit", "--quiet", "-m", "it leaks")
        app = ["HEAD", "HEAD", "--app", *app, "--run", "out", "--blocks", "1", "-z", "0.5s"]
    elif command in ("log", "openapi"):
        at = words.index("--requests")
        canaries |= {"source": canary(command)}
        token = quote(canaries["source"], safe="")
        line = f'10.0.0.1 - - [22/Nov/2026:20:00:01 +0000] "GET /pay?api_key={token} HTTP/1.1" 200 5\n'
        (where / "access.log").write_text(line * 9)
        parameter = {"name": "api_key", "in": "query", "required": True, "example": canaries["source"]}
        pay = {"get": {"parameters": [parameter], "responses": {"200": {"description": ""}}}}
        document = {"openapi": "3.0.0", "info": {"title": "x", "version": "1"}, "paths": {"/pay": pay}}
        (where / "api.json").write_text(json.dumps(document))
        source = ["--access-log", "access.log"] if command == "log" else ["--openapi", "api.json"]
        app = ["leaky:application", *words[:at], *source, *words[at + 2 :], *RACE]
    else:
        app += ["--stack", "waitress", *(("-z", "0.5s") if command == "capacity" else ("--budget", "20s"))]
    since = time.time() - 1
    name = "compare" if command in ("log", "openapi") else command
    ended, processes = run(where, [name, *app], LEAKY_EXPORTED_KEY=canaries["exported"])
    assert "Traceback (most recent call last)\n" not in ended.stderr
    searched = search(where, since, ended, processes, canaries)
    searched.report(canaries)
    assert not searched.found, "\n".join(searched.found[:20])
    no_escapes(ended)
    print(ended.returncode, ended.stderr[-300:])


STUDY = """\
title = "One that asks a database"
sources = ["https://me:{source}@example.com/study"]
blocks = 1
contestants = ["gunicorn-sync"]
[[questions]]
loads = [{{connections = 1, duration = "1s", drain = "0.2s"}}]
[questions.recipe]
name = "rows"
about = "asks a database"
steps = [{{do = "query", database = "mariadb", driver = "pymysql", ms = 5}}, {{do = "body", size = 84}}]
"""


@pytest.mark.exhaustive
def test_no_canary_of_a_database_or_a_study_is_written_down(tmp_path: Path) -> None:
    canaries = {"source": quote(canary("study"), safe=""), "database": quote(canary("db"), safe="")}
    (tmp_path / "mine.toml").write_text(STUDY.format(**canaries))
    words = ["run", "./mine.toml", "--out", "out", "--wait"]
    words += ["--database", f"mariadb=mysql://shop:{canaries['database']}@127.0.0.1:1/shop"]
    since = time.time() - 1
    ended, processes = run(tmp_path, words)
    searched = search(tmp_path, since, ended, processes, canaries)
    searched.report(canaries)
    assert not searched.found, "\n".join(searched.found[:20])
    assert (tmp_path / "out" / "results.jsonl").exists(), ended.stderr
    assert f"https://{secrets.MARK}@example.com" in (tmp_path / "out" / "results.jsonl").read_text()
