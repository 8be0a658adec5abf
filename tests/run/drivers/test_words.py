"""What each tool is called with for a load, word by word, and which loads it refuses."""

import base64
import dataclasses
import json
import re

import pytest
from tests.run.drivers.record import DIALECTS

from velodrome.guest import catalog
from velodrome.guest.recipe import Chat, Recipe
from velodrome.model import secrets
from velodrome.model.errors import UnfitLoadError
from velodrome.model.load import Closed, Load, Open
from velodrome.run.drivers.driver import Target
from velodrome.run.drivers.foreign import ForeignDriver

URL = "http://127.0.0.1:8000/"
GET = Target(URL)
UPLOAD = Target(URL, "POST", (("Content-Type", "text/plain"), ("X-Mark", "1")), b"up")
PLACE = "grpc://127.0.0.1:50051"
GRPC = Target.of_recipe(f"{PLACE}/helloworld.Greeter/SayHello", catalog.recipe("hello"))
UPLOADS = Target.of_recipe(f"{PLACE}/helloworld.Greeter/CollectHellos", catalog.recipe("upload-1mb"))
CHAT = Target.of_recipe(f"{PLACE}/helloworld.Greeter/Chat", Recipe("chat", "chats", (Chat(),)))
TIMED = Load(Closed(40), duration_s=20)
COUNTED = Load(Closed(100), duration_s=20, requests=1000, keepalive=False)
OPEN = Load(Open(500, connections=50), duration_s=2.5)


def command_line(tool: str, load: Load, target: Target = GET) -> str:
    return " ".join(DIALECTS[tool].words(load, target).arguments)


def test_ab_is_started_as_published() -> None:
    assert command_line("ab", COUNTED) == f"-c 100 -n 1000 -s 10 -q -e percentiles.csv {URL}"


def test_ab_gets_a_path_it_needs() -> None:
    assert command_line("ab", COUNTED, Target("http://127.0.0.1:8000")).endswith(URL)


def test_ab_for_a_time_is_given_the_number_after_the_time_that_sets_it() -> None:
    assert command_line("ab", TIMED) == f"-c 40 -t 20 -n 4000000 -s 10 -q -e percentiles.csv -k {URL}"


def test_ab_uploads_from_a_file() -> None:
    words = DIALECTS["ab"].words(COUNTED, UPLOAD)
    assert "-p body -T text/plain" in " ".join(words.arguments)
    assert "-H X-Mark: 1" in " ".join(words.arguments)
    assert words.files == {"body": b"up"}


def test_wrk_is_started_as_published() -> None:
    load = dataclasses.replace(TIMED, threads=10)
    assert command_line("wrk", load) == f"-t10 -c40 -d20s --latency --timeout 10s {URL}"


SECRET = Target(
    f"{URL}pay?access_token=tok-en-12", headers=(("Authorization", "Bearer hush-hush"), ("X-Mark", "1"))
)


def test_wrk_takes_what_is_secret_from_a_file() -> None:
    secrets.of_request("/pay?access_token=tok-en-12", SECRET.headers, ())
    words = DIALECTS["wrk"].words(TIMED, SECRET)
    line = " ".join(words.arguments)
    assert "hush" not in line
    assert "tok-en" not in line
    assert "-H X-Mark: 1" in line
    assert line.endswith(f"-s request.lua {URL}")
    # Every byte as a number: nothing in a value can end the text it stands in.
    script = re.sub(r"\\(\d{3})", lambda found: chr(int(found[1])), words.files["request.lua"].decode())
    assert script == (
        'wrk.headers["Authorization"] = "Bearer hush-hush"\nwrk.path = "/pay?access_token=tok-en-12"\n'
    )


@pytest.mark.parametrize("tool", ["ab", "oha", "h2load"])
def test_tools_that_take_what_is_secret_on_their_command_line_are_not_started(tool: str) -> None:
    secrets.of_request("/pay?access_token=tok-en-12", SECRET.headers, ())
    driver = ForeignDriver(DIALECTS[tool])
    for target in (SECRET, dataclasses.replace(SECRET, headers=()), dataclasses.replace(SECRET, url=URL)):
        with pytest.raises(UnfitLoadError) as refused:
            driver.run(TIMED, target, lambda _: True)
        assert "command line" in str(refused.value)
        assert "hush" not in str(refused.value)
        assert "tok-en" not in str(refused.value)


def test_wrk_gives_a_request_at_least_the_time_asked_because_it_knows_whole_seconds() -> None:
    assert "--timeout 3s" in command_line("wrk", dataclasses.replace(TIMED, timeout_s=2.1))


@pytest.mark.parametrize(("tool", "argument"), [("ab", "-t 2"), ("wrk", "-d2s")])
def test_a_tool_of_whole_seconds_loads_for_longer_rather_than_shorter_and_says_so(
    tool: str, argument: str
) -> None:
    words = DIALECTS[tool].words(dataclasses.replace(TIMED, duration_s=1.5), GET)
    assert argument in " ".join(words.arguments)
    (note,) = words.notes
    assert "2 s" in note
    assert "1.5 s" in note


def test_wrk_uploads_by_a_script() -> None:
    words = DIALECTS["wrk"].words(TIMED, UPLOAD)
    assert words.files["body"] == b"up"
    assert words.files["request.lua"] == b'wrk.method = "POST"\nwrk.body = io.open("body", "rb"):read("*a")\n'


def test_wrk_closes_connections_by_a_header() -> None:
    assert "-H Connection: close" in command_line("wrk", dataclasses.replace(TIMED, keepalive=False))


def test_ghz_is_started_as_published() -> None:
    load = Load(Closed(1), duration_s=20, requests=10_000, streams=100)
    assert command_line("ghz", load, GRPC) == (
        "-c 100 -n 10000 --insecure --proto service.proto --call helloworld.Greeter/SayHello "
        '-d {"name": "world"} -t 10000ms -O json 127.0.0.1:50051'
    )


def test_ghz_spreads_its_workers_over_the_connections_asked_for() -> None:
    load = Load(Closed(4), duration_s=2, streams=5)
    assert command_line("ghz", load, GRPC).startswith("-c 20 -z 2000ms --connections 4 --insecure")


def test_ghz_does_not_wait_for_answers_at_a_rate() -> None:
    assert "--async -r 500" in command_line("ghz", OPEN, GRPC)


def test_ghz_uploads_in_pieces_to_a_call_that_streams() -> None:
    words = DIALECTS["ghz"].words(TIMED, UPLOADS)
    assert "-D data.json" in " ".join(words.arguments)
    messages = json.loads(words.files["data.json"])
    pieces = [base64.b64decode(message["body"]) for message in messages]
    assert b"".join(pieces) == UPLOADS.body
    assert max(map(len, pieces)) == 64 * 1024


def test_oha_corrects_for_omission_at_a_rate() -> None:
    assert "-z 2500ms -q 500 --latency-correction" in command_line("oha", OPEN)
    assert "correction" not in command_line("oha", TIMED)


def test_oha_sends_streams_over_http2() -> None:
    assert "--http2 -p 8" in command_line("oha", dataclasses.replace(TIMED, streams=8))


def test_h2load_speaks_http1_unless_streams_are_asked_for() -> None:
    assert command_line("h2load", TIMED).startswith("--h1 -t 1 -c 40 -D 20000ms -N 10000ms")
    assert command_line("h2load", dataclasses.replace(TIMED, streams=8)).startswith("-m 8 -t 1")


def test_h2load_shares_a_rate_out_over_its_connections() -> None:
    assert "--rps 10 " in command_line("h2load", OPEN)


def test_h2load_calls_grpc_with_a_framed_message() -> None:
    words = DIALECTS["h2load"].words(TIMED, GRPC)
    assert words.arguments[-1] == "http://127.0.0.1:50051/helloworld.Greeter/SayHello"
    assert "content-type: application/grpc" in words.arguments
    assert words.files["body"] == b"\0\0\0\0\7\x0a\5world"


REFUSED = [
    ("ab", OPEN, GET, "rate"),
    ("ab", dataclasses.replace(TIMED, threads=2), GET, "threads"),
    ("ab", dataclasses.replace(COUNTED, requests=99), GET, "requests"),
    ("ab", dataclasses.replace(TIMED, streams=2), GET, "streams"),
    ("ab", TIMED, Target(URL, "DELETE"), "method"),
    ("ab", TIMED, GRPC, "protocol"),
    ("wrk", OPEN, GET, "rate"),
    ("wrk", COUNTED, GET, "requests"),
    ("wrk", dataclasses.replace(TIMED, threads=3), GET, "connections"),
    ("wrk", dataclasses.replace(TIMED, threads=41), GET, "connections"),
    ("wrk", TIMED, GRPC, "protocol"),
    ("oha", dataclasses.replace(OPEN, pace=Open(1.5)), GET, "rate"),
    ("oha", dataclasses.replace(OPEN, pace=Open(100, "poisson")), GET, "arrivals"),
    ("oha", TIMED, GRPC, "protocol"),
    ("h2load", dataclasses.replace(TIMED, keepalive=False), GET, "keepalive"),
    ("h2load", dataclasses.replace(OPEN, requests=100), GET, "requests"),
    ("h2load", dataclasses.replace(TIMED, threads=41), GET, "threads"),
    ("ghz", TIMED, GET, "protocol"),
    ("ghz", dataclasses.replace(TIMED, keepalive=False), GRPC, "keepalive"),
    ("ghz", TIMED, CHAT, "call"),
    ("h2load", TIMED, CHAT, "call"),
]


@pytest.mark.parametrize(("tool", "load", "target", "field"), REFUSED)
def test_a_load_that_a_tool_cannot_carry_is_refused_by_the_field(
    tool: str, load: Load, target: Target, field: str
) -> None:
    unfit = DIALECTS[tool].unfit(load, target)
    assert unfit is not None
    assert unfit.field == field
    assert unfit.can


@pytest.mark.parametrize(
    ("tool", "load", "target"),
    [
        ("ab", COUNTED, UPLOAD),
        ("wrk", dataclasses.replace(TIMED, threads=10), UPLOAD),
        ("oha", OPEN, GET),
        ("h2load", OPEN, GRPC),
        ("ghz", OPEN, GRPC),
    ],
)
def test_a_load_that_fits_is_not_refused(tool: str, load: Load, target: Target) -> None:
    assert DIALECTS[tool].unfit(load, target) is None
