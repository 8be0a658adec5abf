"""Lines of access logs as servers write them, and as nobody should."""

import json

import pytest

from velodrome.plan.requests import access_log
from velodrome.plan.requests.access_log import Line

SECOND = 971_211_336  # 2000-10-10T20:55:36Z
CART = Line("GET", "/cart?id=7", 200, SECOND)
TIMELESS = Line("GET", "/cart?id=7", 200, None)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /cart?id=7 HTTP/1.0" 200 2326', CART),
        ('127.0.0.1 - - [10/Oct/2000:20:55:36 +0000] "GET /cart?id=7 HTTP/2.0" 200 - "-" "curl/8.5.0"', CART),
        ('shop.test:80 127.0.0.1 - - [10/Oct/2000:20:55:36 +0000] "GET /cart?id=7 HTTP/1.1" 200 5', CART),
        ('INFO:     127.0.0.1:54321 - "GET /cart?id=7 HTTP/1.1" 200 OK', TIMELESS),
        ('1.2.3.4 - a] "b [10/Oct/2000:20:55:36 +0000] "GET /cart?id=7" 200 5', CART),
        (
            '::1 - - [10/Oct/2000:20:55:36 +0000] "GET /a\\"b HTTP/1.1" 404 5 "-" "\\"GET / HTTP/1.1\\" 200"',
            Line("GET", '/a\\"b', 404, SECOND),
        ),
        ('::1 - - [99/Oct/2000:20:55:36 +0000] "GET /cart?id=7 HTTP/1.1" 200 5', TIMELESS),
    ],
)
def test_a_line_of_text_is_read(text: str, line: Line) -> None:
    assert access_log.read_log_line(text) == line


@pytest.mark.parametrize(
    "document",
    [
        {"ts": SECOND + 0.52, "request": {"method": "GET", "uri": "/cart?id=7", "host": "a"}, "status": 200},
        {"time_iso8601": "2000-10-10T13:55:36-07:00", "request": "GET /cart?id=7 HTTP/1.1", "status": "200"},
        {"msec": f"{SECOND}.123", "request_method": "GET", "request_uri": "/cart?id=7", "status": "200"},
        {
            "time": "[10/Oct/2000:20:55:36 +0000]",
            "request_method": "GET",
            "request_path": "/cart",
            "request_querystring": "?id=7",
            "response_code": "200",
        },
        {"t": "[10/Oct/2000:20:55:36 +0000]", "r": "GET /cart?id=7 HTTP/1.1", "s": "200"},
        {"t": "[10/Oct/2000:20:55:36 +0000]", "m": "GET", "U": "/cart", "q": "id=7", "s": 200},
        {
            "timestamp": "2000-10-10T20:55:36.5Z",
            "http": {"method": "GET", "url": "/cart?id=7", "status_code": 200},
        },
        {"asctime": "2000-10-10 20:55:36,123", "method": "GET", "path": "/cart?id=7", "status": "200 OK"},
        {"ts": SECOND * 1000, "method": "GET", "uri": "/cart?id=7", "status": 200},
        {"ts": SECOND * 10**9, "method": "GET", "uri": "/cart?id=7", "status": 200},
    ],
)
def test_a_line_of_json_is_read(document: object) -> None:
    assert access_log.read_log_line(json.dumps(document)) == CART


@pytest.mark.parametrize(
    "ts", [True, -1, float("nan"), float("inf"), 1e300, "", "soon", [], None, "9" * 5000]
)
def test_a_time_that_is_none_is_missing(ts: object) -> None:
    document = {"ts": ts, "method": "GET", "uri": "/cart?id=7", "status": 200}
    assert access_log.read_log_line(json.dumps(document)) == TIMELESS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        '1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "-" 400 0',
        '1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "\\x16\\x03\\x01" 400 0',
        '1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "GET /a b c HTTP/1.1" 400 0',
        '1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "GET /" 20',
        "{",
        "{}",
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"method": "get", "uri": "/", "status": 200}',
        '{"method": "GET", "uri": 7, "status": 200}',
        '{"method": "GET", "uri": "/", "status": "many"}',
        '{"method": "GET", "uri": "/", "status": true}',
        '{"msg": "Server running on socket 127.0.0.1:8000"}',
    ],
)
def test_what_is_no_request_is_no_line(text: str) -> None:
    assert access_log.read_log_line(text) is None
