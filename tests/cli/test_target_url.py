import pytest

from velodrome.cli._load_options import of_loopback
from velodrome.model.errors import CredentialsInUrlError, UsageError


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
        "http://127.0.0.1/a@b?c@d",
        "http+unix://%2Ftmp%2Fa@b.sock/",
    ],
)
def test_any_other_is_left_as_it_is(url: str) -> None:
    assert of_loopback(url) == (url, "")


@pytest.mark.parametrize(
    "url",
    [
        "http://jane:s3cret@0.0.0.0:8000/a@b",
        "https://jane:s3cret@127.0.0.1?x",
        "grpc://jane:s3%40cret@[::1]:50051/a.B/C",
        "ws://jane:s3@cret@h#x",
    ],
)
def test_a_user_and_a_password_are_refused_and_not_shown(url: str) -> None:
    with pytest.raises(CredentialsInUrlError) as refused:
        of_loopback(url)
    assert isinstance(refused.value, UsageError)
    shown = str(refused.value)
    assert "jane" not in shown
    assert "s3" not in shown
    assert url.rpartition("@")[2] in shown
