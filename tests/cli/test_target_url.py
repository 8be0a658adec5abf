import pytest

from velodrome.cli._target_url import of_loopback


@pytest.mark.parametrize(
    ("given", "loaded"),
    [
        ("http://0.0.0.0:8000/a?b", "http://127.0.0.1:8000/a?b"),
        ("https://0.0.0.0", "https://127.0.0.1"),
        ("grpc://[::]:50051/a.B/C", "grpc://[::1]:50051/a.B/C"),
        ("http://[::]?x", "http://[::1]?x"),
    ],
)
def test_the_address_that_stands_for_all_becomes_loopback(given: str, loaded: str) -> None:
    url, note = of_loopback(given)
    assert url == loaded
    assert note.endswith("was loaded.")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/0.0.0.0",
        "http://0.0.0.0.example/",
        "http://[::1]:80/",
        "0.0.0.0:8000",
        "",
        "http://",
    ],
)
def test_any_other_is_left_as_it_is(url: str) -> None:
    assert of_loopback(url) == (url, "")
