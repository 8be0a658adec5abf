"""What is written of requests is read as the same requests."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from velodrome.model.app import Content, Request
from velodrome.plan.requests import file
from velodrome.plan.requests import file as written

ORDER = Request(
    "POST /orders",
    "/orders",
    "POST",
    headers=(("Content-Type", "application/json"), ("X!", "it's")),
    body=Content('{"id": "{{uuid}}"}'),
    expect_status=201,
    expect_contains="made",
)
TEXT = """\
# 7 requests in 2 s

[[request]]
name = "GET /items/*"
weight = 812
path = "/items/{{random 1..500}}"

[[request]]
name = "POST /orders"
method = "POST"
path = "/orders"
headers = { Content-Type = "application/json", "X!" = "it's" }
body = '{"id": "{{uuid}}"}'
expect-status = 201
expect-contains = "made"
"""


def test_a_file_is_written_as_people_write_it() -> None:
    item = Request("GET /items/*", "/items/{{random 1..500}}", weight=812)
    assert written.file_text([item, ORDER], ["7 requests\nin 2 s\x1b"]) == TEXT


WORDS = st.text(st.characters(codec="utf-8"), max_size=20)
CONTENTS = WORDS.filter(lambda text: not text.startswith("@") and "{{" not in text).map(Content)
REQUESTS = st.builds(
    Request,
    name=WORDS.filter(str.strip),
    path=st.text("abc/?=&%'\"", max_size=20).map(lambda text: f"/{text}"),
    method=st.sampled_from(["GET", "POST"]),
    weight=st.floats(1e-9, 1e9),
    headers=st.dictionaries(
        st.text("aB-!'", min_size=1, max_size=5), st.text("a \t'\"é\\", max_size=9), max_size=3
    ).map(lambda found: tuple(found.items())),
    body=st.none() | CONTENTS,
    expect_status=st.none() | st.integers(200, 599),
    expect_body=st.none() | CONTENTS,
)


@settings(suppress_health_check=list(HealthCheck))
@given(
    st.lists(REQUESTS, min_size=1, max_size=4, unique_by=lambda request: request.name),
    st.lists(WORDS, max_size=2),
)
def test_what_is_written_is_read_again_as_the_same(
    tmp_path: Path, requests: list[Request], comments: list[str]
) -> None:
    path = tmp_path / "mix.toml"
    path.write_text(written.file_text(requests, comments), encoding="utf-8", newline="")
    assert file.read(path) == tuple(requests)
