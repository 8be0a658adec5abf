"""`velodrome load grpc://…` as a user runs it, against a real grpcio server that describes itself."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from velodrome.guest import catalog
from velodrome.guest.grpc.greeter import PROTO
from velodrome.guest.recipe import RECIPE_VARIABLE, Body, Recipe
from velodrome.run.environments import environment, guest_tree

ONE = [sys.executable, "-m", "velodrome", "load"]
SERVER = Path(__file__).with_name("reflecting_server.py")
STACK = catalog.stack("grpc-threads")
RECIPE = Recipe("small", "answers three bytes", (Body(3),))
RIGHT = '{"message": "Hello, Ada!", "body": "PGgx"}'


@dataclass(frozen=True)
class Greeter:
    """Where the server is: in the clear, over TLS, and the certificate that the latter has."""

    address: str
    secure: str
    certificate: Path

    def url(self, method: str = "SayHello") -> str:
        return f"grpc://{self.address}/helloworld.Greeter/{method}"


def certificate(folder: Path) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here to make a certificate with")
    made, key = folder / "certificate.pem", folder / "key.pem"
    subject = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    subprocess.run(
        [*command, *subject, "-days", "2", "-keyout", key, "-out", made], check=True, capture_output=True
    )
    return made, key


@pytest.fixture(scope="module")
def greeter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Greeter]:
    if (why := environment.cannot_run(STACK)) is not None:
        pytest.skip(why)
    grpcio = next(line for line in catalog.requires(STACK) if line.startswith("grpcio=="))
    reflecting = dataclasses.replace(
        STACK, requires=(*STACK.requires, grpcio.replace("grpcio", "grpcio-reflection"))
    )
    python = environment.environment_for(reflecting, None).python
    made, key = certificate(tmp_path_factory.mktemp("tls"))
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(guest_tree.export()),
        RECIPE_VARIABLE: RECIPE.to_json(),
    }
    command = [str(python), "-P", str(SERVER), str(made), str(key)]
    with subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port, secure = process.stdout.readline().split()
        yield Greeter(f"127.0.0.1:{port}", f"127.0.0.1:{secure}", made)
        process.communicate(timeout=20)


def load(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*ONE, *words], capture_output=True, text=True, check=False, timeout=60)


def document(*words: str) -> dict[str, object]:
    ended = load(*words, "--json")
    assert ended.returncode == 0, ended.stderr
    read: dict[str, object] = json.loads(ended.stdout)
    return read


def test_the_server_says_what_its_calls_are(greeter: Greeter) -> None:
    shape = ["-n", "60", "-c", "2", "-m", "3"]
    result = document(greeter.url(), "--data", '{"name": "Ada"}', "--expect-data", RIGHT, *shape)
    assert result["ok"] == result["requests"] == 60
    assert result["connections"] == {"asked": 2, "opened": 2, "reopened": 0, "answered": 2}
    assert result["streams"] == {"asked": 6, "without_room": 0}


def test_a_file_says_it_as_well_and_the_report_names_the_call(greeter: Greeter) -> None:
    words = ["--proto", str(PROTO), "--call", "helloworld.Greeter/SayHello", "--data", '{"name": "{{n}}"}']
    shown = load(f"grpc://{greeter.address}", *words, "-n", "50", "-m", "5", "-c", "1")
    assert shown.returncode == 0, shown.stderr
    assert "helloworld.Greeter/SayHello: closed loop, 1 connection × 5 streams" in shown.stdout
    assert "all answered right" in shown.stdout


@pytest.mark.parametrize(
    ("method", "kind", "more"),
    [
        ("SayHelloStream", "server_streaming", []),
        ("CollectHellos", "client_streaming", ["--messages", "4"]),
        ("Chat", "bidirectional", ["--data", '[{"name": "Ada"}, {"name": "Ada"}]', "--expect-data", RIGHT]),
    ],
)
def test_every_kind_of_call_is_made_as_the_server_describes_it(
    greeter: Greeter, method: str, kind: str, more: list[str]
) -> None:
    result = document(greeter.url(method), *more, "-n", "20", "-c", "2")
    assert result["ok"] == 20, result["examples"]
    assert result["load"]["kind"] == kind  # type: ignore[index]


def test_an_open_loop_spreads_over_few_connections(greeter: Greeter) -> None:
    result = document(greeter.url(), "--data", "{}", "-R", "100", "-n", "60")
    assert result["ok"] == 60
    assert result["load"]["streams"] == 100  # type: ignore[index]


def test_a_wrong_answer_is_shown_by_what_it_says(greeter: Greeter) -> None:
    ended = load(greeter.url(), "--data", '{"name": "Bob"}', "--expect-data", RIGHT, "-n", "5")
    assert ended.returncode == 1
    assert '"message":"Hello, Bob!"' in " ".join(ended.stdout.split()), "it may be folded"


def test_a_server_is_loaded_over_tls_when_its_authority_is_named(greeter: Greeter) -> None:
    url = f"grpcs://{greeter.secure}/helloworld.Greeter/SayHello"
    words = ["--proto", str(PROTO), "-n", "30", "-c", "2", "-m", "2"]
    assert document(url, *words, "--cacert", str(greeter.certificate))["ok"] == 30
    assert document(url, *words, "--insecure")["ok"] == 30
    refused = load(url, *words)
    assert refused.returncode == 1
    assert "not trusted" in refused.stdout
    reflected = load(url, "-n", "5")
    assert reflected.returncode == 2
    assert "--cacert FILE" in reflected.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["{url}", "--data", '{"nam": "x"}'],
            "data.nam: a helloworld.HelloRequest has no such field. Nearest: name",
        ),
        (
            ["{url}", "--data", '{"sleep_millisecond": "long"}'],
            'data.sleep_millisecond: "long" where a whole number',
        ),
        (["{url}", "--data", "{"], "data: this is not JSON"),
        (["{url}", "--data", "@/nowhere"], "--data: cannot read /nowhere"),
        (["{url}s"], "there is no helloworld.Greeter/SayHellos. Nearest: helloworld.Greeter/SayHello"),
        (["{url}", "--proto", "/nowhere.proto"], "proto: "),
        (
            ["{url}", "--messages", "2"],
            "messages: 2 messages for helloworld.Greeter/SayHello, which takes one",
        ),
        (["{url}", "--expect-status", "200"], "--expect-status applies only to http:// URLs"),
        (["{url}", "-m", "0"], "-m 0: give a whole number from 1 to 65535"),
        (["{url}", "-m", "2", "--no-keepalive"], "streams: a connection that is closed after each request"),
        (["grpc://{address}"], "call: none is named"),
        (["grpc://{address}/x"], "'x' is not a call"),
        (["http://{address}/", "--data", "{}"], "--data applies only to grpc:// URLs"),
    ],
)
def test_what_makes_no_sense_is_one_sentence_and_exit_code_2(
    greeter: Greeter, words: list[str], sentence: str
) -> None:
    filled = [word.replace("{url}", greeter.url()).replace("{address}", greeter.address) for word in words]
    ended = load(*filled, "-n", "2")
    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert ended.stderr.startswith("velodrome: ")
    assert len(ended.stderr.splitlines()) == 1


def test_nobody_there_is_refused_and_reported_with_the_cure() -> None:
    call = "grpc://127.0.0.1:1/helloworld.Greeter/SayHello"
    ended = load(call, "--proto", str(PROTO), "-n", "3")
    assert (ended.returncode, "refused 3" in ended.stdout) == (1, True)
    ended = load(call, "-n", "3")
    assert ended.returncode == 2
    assert "Connection refused" in ended.stderr
