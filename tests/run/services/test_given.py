"""What `--database` takes."""

import pytest

from velodrome.model.errors import BadOptionError
from velodrome.run.services.service import databases_of


def test_a_url_may_hold_anything_but_has_a_name_before_it() -> None:
    url = "mysql://me:p=ss@host/x?a=b"
    assert databases_of([f"mariadb={url}", "redis=redis://h/0"]) == {"mariadb": url, "redis": "redis://h/0"}
    assert databases_of([]) == {}


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("oracle=x://y", "no database is called 'oracle'; write one of these as name=URL: mariadb, mongodb"),
        ("sqlite=sqlite://x", "no database is called 'sqlite'"),
        ("redis://h/0", "no database is called 'redis://h/0'"),
        ("redis=localhost", "needs a URL, such as redis=scheme://host/database"),
    ],
)
def test_what_is_no_database_is_reported_with_those_there_are(option: str, sentence: str) -> None:
    with pytest.raises(BadOptionError) as refused:
        databases_of([option])
    assert sentence in str(refused.value)
