"""The examples of docs/python.md run, in their order, as one notebook would."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
STUDY = """
title = "Made for the examples"
blocks = 2
contestants = [{stack = "waitress"}]

[[questions]]
name = "at-once"
recipe = "hello"
loads = [{connections = 4, warmup = "0.1s", duration = "0.6s", drain = "0.2s"}]
"""


SHOP = """
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "4")])
    return [b"cart"]
"""


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize(
    "searches", [False, pytest.param(True, marks=pytest.mark.exhaustive)], ids=["without searches", "all"]
)
def test_every_example_runs(
    searches: bool, five_ms: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "openapi.yaml").write_text("openapi: 3.1.0\npaths: {/cart: {get: {}}}\n")
    names: dict[str, Any] = {}
    found = examples()
    assert len(found) == 7
    for example in found:
        if "vd.capacity(" in example and not searches:
            continue
        exec(compile(example.replace("http://127.0.0.1:8000/", five_ms), str(PAGE), "exec"), names)
    assert {row["contestant"] for row in names["run"].rows()} == {"waitress", "gunicorn-gthread"}
    assert all(measurement.valid or measurement.flags for measurement in names["run"].measurements)
    assert names["change"].kept is not False
    assert (tmp_path / "comment.md").read_text().startswith("### ")
    assert not searches or names["found"].rows()
    for shown in (names[name] for name in ("r", "run", "found", "change") if name in names):
        html = shown._repr_html_()
        assert html.count("<table>") == html.count("</table>") > 0
    assert [request.path for request in names["mix"].requests] == ["/cart"]
    assert names["rows"][0]["throughput_rps"] > 0


def test_every_name_that_is_offered_is_there_and_importing_costs_nothing() -> None:
    import velodrome  # noqa: PLC0415

    for name in velodrome.__all__:
        assert getattr(velodrome, name) is not None
    assert set(velodrome.__all__) == set(velodrome._WHERE)
    assert set(velodrome.__all__) == {name for name in dir(velodrome) if not name.startswith("_")}
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        velodrome.nothing  # noqa: B018
