"""A simulated third party as it is typed, and typed again."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from velodrome.model.app import Content, Stall, ThirdParty
from velodrome.model.errors import BadOptionError
from velodrome.plan.surroundings import read_third_party


@pytest.mark.parametrize(
    ("text", "third"),
    [
        ("A=latency:lognormal(50ms,0.4)", ThirdParty("A", "lognormal(50ms,0.4)")),
        ("A=uniform(1ms,2ms)", ThirdParty("A", "uniform(1ms,2ms)")),
        ("A=errors:1%,latency:5ms", ThirdParty("A", "5ms", 0.01)),
        ("A=5ms,stall:1s/10s,body:4096", ThirdParty("A", "5ms", stall=Stall(1, 10), size=4096)),
        (
            'A=5ms,body:{"ok":true,"type":"x"}',
            ThirdParty(
                "A", "5ms", body=Content('{"ok":true,"type":"x"}'), size=22, content_type="application/json"
            ),
        ),
        ("A=body:<p>hi", ThirdParty("A", "0ms", body=Content("<p>hi"), size=5, content_type="text/html")),
        ("A=body:sold out", ThirdParty("A", "0ms", body=Content("sold out"), size=8)),
        (
            "A=type:application/xml,body:<a/>",
            ThirdParty("A", "0ms", body=Content("<a/>"), size=4, content_type="application/xml"),
        ),
    ],
)
def test_parts_stand_behind_commas_and_the_type_follows_from_the_body(text: str, third: ThirdParty) -> None:
    assert read_third_party(text) == third


def test_a_body_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "charge.json").write_text("[1]")
    (tmp_path / "picture").write_bytes(b"\x89PNG\xff")
    assert read_third_party("A=body:@charge.json,errors:2%", tmp_path).content_type == "application/json"
    picture = read_third_party("A=body:@picture", tmp_path)
    assert picture.content_type == "application/octet-stream"
    assert picture.body is not None
    assert picture.body.data == b"\x89PNG\xff"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("A", "write VARIABLE=latency:50ms"),
        ("A=5ms,errors:200%", "'200%' is not a share of answers"),
        ("A=5ms,stall:1s", "write 1s/10s"),
        ("A=5ms,latency:6ms", "its latency is given twice"),
        ("A=type:json", "'json' is no content type; write application/json"),
        ("A=type:a/b\r\nSet-Cookie: x", "is no content type"),
        ("A=body:@nowhere.json", "cannot read nowhere.json"),
    ],
)
def test_what_makes_no_sense_is_reported_with_what_to_write(text: str, sentence: str) -> None:
    with pytest.raises(BadOptionError) as caught:
        read_third_party(text)
    assert sentence in str(caught.value)


@given(
    errors=st.sampled_from([0.0, 0.01, 0.5]),
    stall=st.sampled_from([None, Stall(1, 10), Stall(0.5, 2)]),
    body=st.one_of(st.none(), st.sampled_from(['{"a": [1, 2]}', "<p>", "plain, text"])),
)
def test_what_is_typed_again_is_the_same(errors: float, stall: Stall | None, body: str | None) -> None:
    words = f"A=5ms,errors:{errors}" + (f",body:{body}" if body else "")
    third = read_third_party(words + (f",stall:{stall.for_s}s/{stall.every_s}s" if stall else ""))
    assert read_third_party(third.text("BODY")) == third


def test_a_long_body_is_typed_again_as_a_file() -> None:
    assert (
        read_third_party(f"A=5ms,body:{'x' * 500}").text("BODY") == "A=latency:5ms,type:text/plain,body:@BODY"
    )
