"""Options that contradict each other, have no effect, or can never be met: one sentence and exit code 2, at once."""

from pathlib import Path

import pytest
from tests.cli.running import velodrome, within

SHOP = """
def application(environ, start_response):
    start_response("200 OK", [])
    return [b"served"]
"""
HTTP, HTTPS = "http://127.0.0.1:9/", "https://127.0.0.1:9/"
CAPACITY = ("capacity", "shop:application", "--stack", "waitress", "--dry-run")
COMPARE = ("compare", "shop:application", "--stack", "waitress", "--dry-run")
TUNE = ("tune", "shop:application", "--stack", "waitress", "--dry-run")
RUN = ("run", "first-lap", "--quick", "--dry-run")


@pytest.fixture
def where(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "studies").mkdir()
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun/results.jsonl").touch()
    return tmp_path


def run(where: Path, *words: str) -> tuple[int, str]:
    """Return exit code and what was written: of a load by a process, of what takes long to import in this one."""
    if words[0] == "load":
        ended = velodrome(where, *words)
        return ended.returncode, ended.stdout + ended.stderr.removeprefix("velodrome: ")
    return within(where, *words)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("load", HTTP, "--insecure"), "--insecure is about TLS"),
        (("load", HTTP, "--cacert", "nosuch"), "--cacert is about TLS"),
        (("load", HTTP, "--arrivals", "poisson"), "--arrivals has no effect here: in a closed loop"),
        (("load", HTTP, "-c", "auto", "--arrivals", "constant"), "--arrivals has no effect here"),
        (
            ("load", HTTP, "--connect-to", "shop.test:9::"),
            "--connect-to has no effect here: shop.test:9:: is not",
        ),
        (("load", HTTPS, "--connect-to", "127.0.0.1:443::8000"), "is not about 127.0.0.1:9 of the URL"),
        (("load", HTTP, "--keys", "keys"), "--keys has no effect here: only agents need it"),
        (("load", HTTP, "--agents", "-1"), "'-1' is no address of a coordinator"),
        (("cluster", "start", "--local", "65"), "1 to 64"),
        (("cluster", "start", "--local", "-1"), "--local"),
        (("cluster", "start", "--port", "99999"), "--port"),
        (("cluster", "start", "--hosts", ""), "--hosts names no host"),
        (("load", HTTP, "-m", "5"), "--streams applies only to grpc:// URLs and to HTTP/2 (--http2)"),
        (("load", HTTP, "--fail-if", "errors > 200%"), "errors is a share, and never above 100%"),
        (("load", HTTP, "--fail-if", "cpu > 80"), "write it in percent, as in 80%"),
        ((*COMPARE, "--methods", "GET"), "--methods has no effect here: it chooses from an access log"),
        ((*COMPARE, "--proto", "nosuch"), "--proto has no effect here: shop:application is "),
        ((*COMPARE, "--send"), "--send has no effect here: only agents need it"),
        ((*COMPARE, "--keys", "keys"), "--keys has no effect here: only agents need it"),
        ((*RUN, "--keys", "keys"), "--keys has no effect here"),
        ((*TUNE, "--keys", "keys"), "--keys has no effect here"),
        ((*COMPARE, "--agents", "0"), "'0' is no address of a coordinator"),
        ((*COMPARE, "--agents", "-1"), "'-1' is no address of a coordinator"),
        ((*RUN, "--agents", "65"), "1 to 64"),
        ((*TUNE, "--agents", "65"), "1 to 64"),
        ((*COMPARE, "--budget", "0"), "--budget 0: it leaves no time to measure"),
        ((*CAPACITY, "--budget", "0s"), "--budget 0s: it leaves no time to measure"),
        ((*TUNE, "--budget", "0"), "--budget 0: it leaves no time to measure"),
        ((*RUN, "--budget", "0"), "--budget 0: it leaves no time to measure"),
        (
            ("doctor", "shop:application", "--stack", "waitress", "--budget", "0"),
            "it leaves no time to measure",
        ),
        ((*CAPACITY, "-z", "0"), "a measured span of 0 s is too short; measure for 0.5 s at least"),
        ((*CAPACITY, "-z", "1ms"), "a measured span of 0.001 s is too short"),
        ((*CAPACITY, "--knob", "threads=2", "--threads", "3"), "--knob threads=2: --threads 3 sets it too"),
        ((*CAPACITY, "--slo", "errors < 200%"), "errors is a share, and never above 100%"),
        (
            (*CAPACITY, "--slo", "tls.p99 < 3ms"),
            "'tls.p99' of the condition 'tls.p99 < 3ms' is never measured here",
        ),
        ((*CAPACITY, "--slo", "delivery.p99 < 3ms"), "'delivery.p99' of the condition"),
        ((*COMPARE, "--env", "URL=a", "--upstream", "URL=5ms"), "--env URL sets this variable too"),
        ((*COMPARE, "--upstream", "URL=9ms", "--upstream", "URL=5ms"), "URL is given twice"),
        ((*CAPACITY, "--out", "shop.py"), "--out shop.py: shop.py is a file; name a folder"),
        ((*CAPACITY, "--out", "shop.py/run"), "shop.py is a file; name a folder"),
        ((*CAPACITY, "--out", "begun"), "begun/results.jsonl exists already"),
        (
            (*CAPACITY, "--resume", "../nope"),
            "--resume ../nope: there is no results.jsonl of a run to go on with",
        ),
        (
            (*TUNE, "--resume", "studies"),
            "--resume studies: there is no results.jsonl of a run to go on with",
        ),
        ((*COMPARE, "--out", "shop.py"), "--out shop.py: shop.py is a file"),
        (
            (*COMPARE, "--out", "nope", "--resume"),
            "--out nope: there is no results.jsonl of a run to go on with",
        ),
        ((*RUN, "--out", "shop.py"), "--out shop.py: shop.py is a file"),
        (("run", "./studies/", "--dry-run"), "the folder ./studies/ has no study (*.toml) in it"),
        (
            ("compare", "shop:application.x", "--stack", "waitress", "--dry-run"),
            "shop:application has no 'x'. It has no attributes of its own",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(where: Path, words: tuple[str, ...], sentence: str) -> None:
    code, written = run(where, *words)
    assert code == 2, written
    assert sentence in written
    assert "Traceback" not in written
    assert {path.name for path in where.iterdir()} - {"__pycache__"} == {"shop.py", "studies", "begun"}


@pytest.mark.parametrize(
    "rule", ["127.0.0.1:9:127.0.0.1:8", "::127.0.0.1:8", ":9::8", "127.0.0.1:::8", "SHOP.test:9:127.0.0.1:8"]
)
def test_a_rule_about_the_url_is_taken(rule: str) -> None:
    ended = velodrome(
        None, "load", "http://shop.test:9/" if "SHOP" in rule else HTTP, "--connect-to", rule, "-n", "1"
    )
    assert ended.returncode == 1, ended


def test_what_a_file_of_variables_has_of_a_simulated_third_party_is_not_meant(where: Path) -> None:
    (where / "app.env").write_text("URL=https://pay.example\nNAME=shop\n")
    code, written = run(where, *COMPARE, "--env-file", "app.env", "--upstream", "URL=5ms")
    assert code == 0, written
