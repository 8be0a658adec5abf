"""A log becomes a mix with its rates; whatever it holds, it is an answer or one clear error."""

import gzip
import json
import tracemalloc
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from velodrome.model.app import Request
from velodrome.model.errors import AccessLogError
from velodrome.plan.requests import access_log, lines, mix
from velodrome.plan.requests.access_log import AccessLog

BEGIN = 1_760_000_000


def line(request: str, status: int = 200, at: int = 0) -> str:
    when = datetime.fromtimestamp(BEGIN + at, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
    return f'10.0.0.1 - - [{when}] "{request} HTTP/1.1" {status} 123 "-" "Mozilla/5.0"\n'


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A shop of fifty seconds, with a burst in the twentieth."""
    text = "".join(
        line(f"GET /items/{1 + at % 25}", at=at // 2) + line("GET /old", 302, at=at // 2) for at in range(100)
    )
    text += line("GET /cart", 304, at=20) * 30 + line("POST /orders", 201, at=21) * 7
    text += line("GET /wp-login.php", 404, at=30) * 5 + "Server started\n"
    path = tmp_path / "access.log"
    path.write_text(text)
    return path


def test_a_log_is_a_mix_by_how_often_each_was_sent(log: Path) -> None:
    found = access_log.read(log)
    assert found.requests == (
        Request("GET /items/*", "/items/{{random 1..25}}", weight=100),
        Request("GET /old", "/old", weight=100, expect_status=302),
        Request("GET /cart", "/cart", weight=30),
    )
    assert (found.logged, found.covered, found.unreadable) == (242, 230, 1)


def test_what_is_left_out_is_reported_with_its_reason(log: Path) -> None:
    post, lost = access_log.read(log).left_out
    assert (post.what, post.requests) == ("POST", 7)
    assert "no bodies" in post.why
    assert (lost.what, lost.requests) == ("answers of status 404", 5)


def test_other_methods_are_read_when_they_are_named(log: Path) -> None:
    found = access_log.read(log, methods=["post"])
    assert found.requests == (Request("POST /orders", "/orders", "POST", weight=7, expect_status=None),)


def test_rates_are_those_of_the_whole_log(log: Path) -> None:
    found = access_log.read(log)
    assert (found.seconds, found.mean_rps, found.peak_rps) == (50, 242 / 50, 34)
    assert found.peak_10s_rps == (10 * 4 + 30 + 7) / 10


def test_a_packed_log_and_one_of_json_are_read_too(log: Path, tmp_path: Path) -> None:
    packed = tmp_path / "access.log.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    assert access_log.read(packed) == access_log.read(log)
    caddy = tmp_path / "caddy.json"
    rows = [{"ts": BEGIN + at, "request": {"method": "GET", "uri": "/"}, "status": 200} for at in range(20)]
    caddy.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = access_log.read(caddy)
    assert (found.requests, found.mean_rps) == ((Request("GET /", weight=20),), 1)


def test_a_packed_log_that_breaks_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    packed = tmp_path / "access.log.gz"
    whole = gzip.compress("".join(line(f"GET /items/{at}", at=at) for at in range(20_000)).encode())
    packed.write_bytes(whole[: len(whole) // 2])
    found = access_log.read(packed)
    assert 1000 < found.logged < 20_000
    assert found.left_out[-1].what == "the rest of the file"


def test_a_log_without_times_has_a_mix_and_no_rates(tmp_path: Path) -> None:
    path = tmp_path / "uvicorn.log"
    path.write_text('INFO:     127.0.0.1:54321 - "GET / HTTP/1.1" 200 OK\n' * 3)
    found = access_log.read(path)
    assert (found.requests[0].weight, found.seconds, found.mean_rps, found.peak_rps) == (3, 0, None, None)


def test_targets_that_are_some_of_many_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.write_text("".join(line(f"GET /items/{at * 1000}") for at in range(300)) + line("GET /"))
    found = access_log.read(path)
    assert found.drawn == 1
    assert any(
        text.startswith("1 of the requests: 100 targets, drawn at random") for text in found.sentences()
    )
    assert found.requests[0].path.count("|") == 99


def test_where_memory_for_samples_is_used_up_the_rest_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mix, "BYTES", 19)
    path = tmp_path / "access.log"
    path.write_text(line("GET /a") * 5 + line("GET /b/c/d/e/f") * 9)
    found = access_log.read(path)
    assert [(request.path, request.weight) for request in found.requests] == [("/a", 5)]
    assert (found.left_out[0].what, found.left_out[0].requests) == ("rare kinds of requests", 9)


def test_a_star_in_a_path_takes_no_name_from_another(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.write_text(line("GET /a?b=1") + line("GET /a?b=*&") + line("GET /a?b=1&="))
    assert len({request.name for request in access_log.read(path).requests}) == 2


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "it is empty"),
        (b"\n\n \n", "it is empty"),
        (b"hello\nworld\n", "none of its 2 lines is a line of an access log"),
        (line("POST /").encode(), r"leaves nothing to request: POST \(not among --methods"),
        (line("GET /", 500).encode() * 3, r"leaves nothing to request: answers of status 500"),
        (line("GET *").encode(), "leaves nothing to request: what is no path"),
        (b"\x1f\x8b", "it cannot be read"),
        (b"\x1f\x8bhello, I am no gzip", "it cannot be read"),
        (b"\xff\xfe" + "hello\n".encode("utf-16-le"), "none of its"),
    ],
)
def test_what_is_no_log_is_one_clear_error(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "access.log"
    path.write_bytes(content)
    with pytest.raises(AccessLogError, match=sentence) as caught:
        access_log.read(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_log_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(AccessLogError, match="cannot be read: No such file"):
        access_log.read(tmp_path / "none")
    with pytest.raises(AccessLogError, match="cannot be read: Is a directory"):
        access_log.read(tmp_path)


PIECES = st.sampled_from(
    [line(f"GET /items/{n}") for n in (1, 7, 10**30)]
    + [line(r"GET /\x22\xff\"{{n}}|}}"), line("GET //?=&&=|"), line("GET http://a/b?c#d"), line("GET /a%zz")]
    + [line("CONNECT a:1"), line("PROPFIND /", 207), line("GET /", 101), line("GET /" + "x" * 70_000)]
    + ['{"ts": 1e400, "uri": "/", "method": "GET", "status": 200}\n', '{"method": {}}\n', "{\n", "\0\n"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECES | st.text(max_size=60).map(lambda text: text + "\n") | st.binary(max_size=60)))
def test_any_file_of_lines_is_an_answer_or_one_clear_error(tmp_path: Path, pieces: list[str | bytes]) -> None:
    path = tmp_path / "access.log"
    path.write_bytes(
        b"".join(
            piece if isinstance(piece, bytes) else piece.encode(errors="surrogatepass") for piece in pieces
        )
    )
    with suppress(AccessLogError):
        assert_whole(access_log.read(path, methods=("GET", "PROPFIND")))


def assert_whole(found: AccessLog) -> None:
    assert [*lines.faults_of_all(found.requests)] == []
    assert found.covered == sum(request.weight for request in found.requests)
    assert found.logged == found.covered + sum(left_out.requests for left_out in found.left_out)


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    path = tmp_path / "access.log"

    def peak(count: int) -> int:
        with path.open("w") as file:
            file.writelines(line(f"GET /a-{at}/b-{at * 7}?{at % 5}={at}", at=at * 60) for at in range(count))
        tracemalloc.start()
        access_log.read(path)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(15_000) < 900_000, "its targets alone are 1,100,000"
