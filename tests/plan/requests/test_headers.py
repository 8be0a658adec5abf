"""Headers of every request as they are typed; what is wrong with one is reported without its value."""

import pytest

from velodrome.model.app import Request
from velodrome.model.errors import HeaderError
from velodrome.plan.requests.lines import check_headers, read_headers, with_headers


def test_a_header_is_a_name_and_a_value() -> None:
    assert read_headers(["Host: shop.example", "Cookie:a=1; b=2:3"]) == (
        ("Host", "shop.example"),
        ("Cookie", "a=1; b=2:3"),
    )
    assert check_headers({"Host": "shop.example"}) == (("Host", "shop.example"),)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("s3cret", "write --header 'Name: value'"),
        ("My Name: s3cret", "'My Name' is no name of a header"),
        ("Content-Length: s3cret", "--header Content-Length: Content-Length is written by the generator"),
        ("X-Token: s3cret\r\nX: y", "has a control character in it"),
        ("X-Token: s3cret•", "a letter that is not of ASCII"),
        ("X-Token: s3cret {{nothing}}", "stands for nothing"),
    ],
)
def test_what_is_none_is_reported_without_its_value(text: str, sentence: str) -> None:
    with pytest.raises(HeaderError) as caught:
        read_headers([text])
    assert sentence in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_one_takes_the_place_of_a_requests_own_of_that_name() -> None:
    own = Request("a", headers=(("Content-Type", "text/plain"), ("host", "other")))
    (found,) = with_headers([own], (("Host", "shop.example"), ("Cookie", "a=1"), ("Cookie", "b=2")))
    assert found.headers == (
        ("Content-Type", "text/plain"),
        ("Host", "shop.example"),
        ("Cookie", "a=1"),
        ("Cookie", "b=2"),
    )
