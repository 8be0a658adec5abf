"""A request of which a part is withheld is known again, by nobody but its user."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from velodrome.model.app import Content, Request
from velodrome.model.secrets import MARK
from velodrome.run import cache
from velodrome.run.apps.serving import FOLDER, of, seal_request

PAY = Request(
    "pay",
    "/pay?access_token=hush-hush",
    "POST",
    headers=(("Private-Token", "tok-en-12"), ("Accept", "text/plain")),
    body=Content('{"password": "open-up-1", "amount": 5}'),
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))


def test_what_is_stored_of_a_request_has_marks_and_a_fingerprint() -> None:
    stored = seal_request(PAY)
    assert stored.path == f"/pay?access_token={MARK}"
    assert stored.headers == (("Private-Token", MARK), ("Accept", "text/plain"))
    assert stored.body == Content(f'{{"password": "{MARK}", "amount": 5}}')
    assert stored.fingerprint == of(PAY)
    plain = Request("cart", "/cart?id=7")
    assert seal_request(plain) == plain


def test_the_key_is_its_users_alone_and_of_another_key_all_is_another(tmp_path: Path) -> None:
    first = of(PAY)
    (key,) = (tmp_path / FOLDER).iterdir()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert of(PAY) == first
    key.write_bytes(b"torn")
    other = of(PAY)
    assert not set(first.split(":")) & set(other.split(":"))
    assert len(list((tmp_path / FOLDER).iterdir())) == 1


def test_two_that_begin_at_once_have_one_key(tmp_path: Path) -> None:
    program = (
        "from velodrome.run.apps import serving; from velodrome.model.app import Request; "
        "print(serving.of(Request('a')))"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    assert len({process.communicate(timeout=60)[0] for process in both}) == 1
