"""`velodrome.load` on real servers."""

from pathlib import Path

import pytest
from tests.judge import made

import velodrome as vd
from velodrome.api.loads import Loaded
from velodrome.judge.loaded import Block, Blocks
from velodrome.model.errors import LoadRefusedError, MissingLibraryError, NothingAnsweredError, UsageError

SHOP = """
import time

def application(environ, start_response):
    time.sleep(0.002)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "4")])
    return [environ["PATH_INFO"].encode()[:4]]
"""


PICKY = """
ANSWERS = {("GET", "/cart"): "200 OK", ("POST", "/orders"): "201 Created"}

def application(environ, start_response):
    known = environ["HTTP_HOST"] == "shop.example"
    request = environ["REQUEST_METHOD"], environ["PATH_INFO"]
    start_response(ANSWERS.get(request, "404 Not Found") if known else "400 Bad Request", [("Content-Length", "0")])
    return []
"""


def test_no_secret_of_a_url_is_reported() -> None:
    with pytest.raises(NothingAnsweredError) as refused:
        vd.load(
            "http://127.0.0.1:1/pay?access_token=hush-hush", duration=1, headers={"X-Api-Key": "tok-en-12"}
        )
    assert "access_token=•••" in str(refused.value)
    assert "hush" not in repr(refused.value)


@pytest.fixture(scope="module")
def loaded(five_ms: str) -> Loaded:
    # Even gaps: so many requests fall due, no more and no fewer.
    return vd.load(five_ms, rate=300, duration=2.5, warmup="200ms", arrivals="constant")


@pytest.mark.measured
def test_a_known_delay_is_surely_on_its_side_of_a_limit(loaded: Loaded) -> None:
    assert loaded.p50 > vd.ms(4)
    assert loaded.p50 < vd.ms(20)
    assert loaded.throughput > vd.per_second(250)
    assert loaded.requests == pytest.approx(750, abs=5)


@pytest.mark.measured
def test_a_limit_at_the_figure_itself_is_insufficient_data(loaded: Loaded) -> None:
    with pytest.raises(vd.InsufficientDataError, match="insufficient data: p50 is 5"):
        assert loaded.p50 < vd.ms(loaded.p50.value)


@pytest.mark.measured
def test_blocks_are_rows_of_a_table_and_a_notebook_shows_figures(loaded: Loaded) -> None:
    rows = loaded.rows()
    assert [row["block"] for row in rows] == [0, 1, 2, 3, 4]
    assert all(row["requests"] == 150 for row in rows)
    html = loaded._repr_html_()
    assert "<td>p99</td>" in html
    assert html.count("<tr>") == html.count("</tr>")
    assert f": {loaded.throughput!r}, " in repr(loaded)


def test_what_came_of_a_load_is_shown_with_its_figures() -> None:
    # Made-up blocks: a block that a real server answers takes a few milliseconds more than its requests fall due in.
    blocks = [
        made.measured(made.trial("uvicorn", block=n, load=made.OPEN), rps=300, latencies_ms=[5.0] * 600)
        for n in range(5)
    ]
    shown = repr(Loaded("shop:app", Blocks(made.OPEN, tuple(map(Block.of, blocks)))))
    assert shown.startswith("<shop:app under open loop, ")
    assert ": throughput 300" in shown
    assert ", p50 5" in shown
    assert ", errors 0" in shown


@pytest.mark.measured
def test_an_app_is_served_from_its_import_path_and_tells_cpu_and_memory(tmp_path: Path) -> None:
    (tmp_path / "tiny_shop.py").write_text(SHOP)
    found = vd.load(
        "tiny_shop:application",
        cwd=str(tmp_path),
        path="/cart",
        rate=100,
        duration=1.5,
        warmup=0.2,
        blocks=3,
        expect_body="/car",
    )
    assert sum(row["ok"] for row in found.rows()) == found.requests
    assert all(row["p50_ms"] > 1.5 for row in found.rows())
    assert all(1e6 < row["memory_bytes"] < 5e8 and row["cpu_us"] > 0 for row in found.rows())
    if not any(row["set_aside"] for row in found.rows()):  # other programs may have taken the CPUs
        assert found.p50 > vd.ms(1.5)
        assert found.memory < vd.mb(500)


def test_a_server_is_sent_a_mix_with_headers(tmp_path: Path) -> None:
    (tmp_path / "picky_shop.py").write_text(PICKY)
    found = vd.load(
        "picky_shop:application",
        cwd=str(tmp_path),
        stack="waitress",
        knobs={"threads": "2"},
        requests=["GET /cart", 'POST /orders {"id": 1} -> 201'],
        headers={"Host": "shop.example"},
        connections=2,
        duration=0.5,
        warmup=0.1,
        blocks=1,
    )
    assert found.requests > 10
    assert sum(row["ok"] for row in found.rows()) >= found.requests - 2


def test_what_makes_no_sense_is_refused_before_anything_is_started() -> None:
    with pytest.raises(UsageError, match="rate=-5 is not a rate"):
        vd.load("http://127.0.0.1:9/", rate=-5)
    with pytest.raises(UsageError, match=r"0\.5 s are too few for 5 blocks; load for 1 s at least"):
        vd.load("http://127.0.0.1:9/", duration=0.5)
    with pytest.raises(UsageError, match="'soon' is not a span of time"):
        vd.load("http://127.0.0.1:9/", duration="soon")
    with pytest.raises(UsageError, match="python: only for an app"):
        vd.load("http://127.0.0.1:9/", python="3.12")


def test_a_server_that_is_not_this_machine_is_not_loaded() -> None:
    with pytest.raises(LoadRefusedError):
        vd.load("http://192.0.2.1/", duration=1)


def test_a_server_that_answers_nothing_right_is_reported_at_once() -> None:
    with pytest.raises(NothingAnsweredError, match="http://127"):
        vd.load("http://127.0.0.1:9/", duration=1, warmup=0, connections=1)


def test_a_library_that_is_not_there_is_reported_with_its_cure() -> None:
    from velodrome.api.tables import _library  # noqa: PLC0415

    with pytest.raises(MissingLibraryError, match=r"Install it with: pip install no_such_library"):
        _library("no_such_library")
