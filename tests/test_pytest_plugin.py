"""The plugin as its user has it: tests of their own, run by pytest."""

from collections.abc import Iterator

import pytest

from velodrome.run import third_party

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.measured

TESTS = """
from velodrome import ms, per_second

URL = {url!r}
HOW = dict(rate=300, duration=0.9, warmup=0.1, blocks=3)

def test_surely_kept(velodrome):
    r = velodrome.load(URL, **HOW)
    assert r.p50 < ms(100)
    assert r.throughput > per_second(200)

def test_surely_broken(velodrome):
    r = velodrome.load(URL, **HOW)
    assert r.p50 < ms(1)

def test_by_luck(velodrome):
    r = velodrome.load(URL, **HOW)
    assert r.p50 < ms(r.p50.value * 1.001)

def test_nobody_there(velodrome):
    velodrome.load("http://127.0.0.1:9/", **HOW)
"""


@pytest.fixture(scope="module")
def five_ms() -> Iterator[str]:
    with third_party.serve_here({"host": "127.0.0.1", "port": 0, "latency": "5ms"}) as running:
        yield f"http://127.0.0.1:{running.port}/"


def test_a_test_passes_or_fails_surely_or_says_insufficient_data(
    pytester: pytest.Pytester, five_ms: str
) -> None:
    pytester.makepyfile(test_shop=TESTS.format(url=five_ms))
    ran = pytester.runpytest_subprocess("-p", "velodrome.pytest_plugin")
    ran.assert_outcomes(passed=1, failed=3)
    ran.stdout.fnmatch_lines(
        [
            "E       assert p50 5* < 1 ms",
            "test_shop.py:17: insufficient data: p50 is 5*which reaches across 5*",
            "test_shop.py:20: *http://127.0.0.1:9/*",
        ]
    )


def test_the_plugin_costs_a_session_that_does_not_load_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import sys\ndef test_light():\n    assert 'numpy' not in sys.modules\n")
    ran = pytester.runpytest_subprocess("-p", "velodrome.pytest_plugin")
    ran.assert_outcomes(passed=1)


FRAMEWORK = """
class App:
    def __init__(self):
        self.routes = {}

    def __call__(self, environ, start_response):
        body = self.routes[environ["PATH_INFO"]]()
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
        return [body]
"""
SHOP = """
from framework import App

application = App()
application.routes["/checkout"] = lambda: b"thanks"
"""
OF_AN_OBJECT = """
from velodrome import ms, percent
from shop.wsgi import application


def test_checkout(velodrome):
    r = velodrome.load(application, path="/checkout", rate=50, duration=1, warmup=0.1, blocks=3, stack="waitress")
    assert r.p50 < ms(300)
    assert r.target == "shop.wsgi:application"
"""


def test_an_app_imported_into_a_test_is_served_from_its_own_package(pytester: pytest.Pytester) -> None:
    """As docs/pytest.md has it: the framework's class does not tell where the app is."""
    pytester.mkpydir("shop")
    pytester.path.joinpath("framework.py").write_text(FRAMEWORK)
    pytester.path.joinpath("shop", "wsgi.py").write_text(SHOP)
    pytester.path.joinpath("tests").mkdir()
    pytester.path.joinpath("tests", "test_shop.py").write_text(OF_AN_OBJECT)
    pytester.makeini("[pytest]\npythonpath = .\n")
    ran = pytester.runpytest_subprocess("-p", "velodrome.pytest_plugin", "tests")
    ran.assert_outcomes(passed=1)
