"""A study's versions take the place of those a stack pins."""

import pytest

from velodrome.run.environments.environment import with_versions


@pytest.mark.parametrize(
    ("requires", "packages", "found"),
    [
        (("tornado==6.5.2",), {}, ("tornado==6.5.2",)),
        (("tornado==6.5.2", "uvloop==0.22.1"), {"Tornado": "5.1.1"}, ("tornado==5.1.1", "uvloop==0.22.1")),
        (("aio_http==3", "b==1"), {"aio-http": "3.4.4"}, ("aio_http==3.4.4", "b==1")),
        (("uvicorn[standard]==0.3",), {"uvicorn": "0.2"}, ("uvicorn[standard]==0.2",)),
        (
            ('uvloop==0.2; sys_platform != "win32"',),
            {"uvloop": "0.11.3"},
            ('uvloop==0.11.3 ; sys_platform != "win32"',),
        ),
        (("b==1",), {"a": "2"}, ("a==2", "b==1")),
        ((), {"a": "2"}, ("a==2",)),
        (("gunicorn==23",), {"gun": "1"}, ("gun==1", "gunicorn==23")),
    ],
)
def test_a_version_replaces_a_pin_or_is_added(
    requires: tuple[str, ...], packages: dict[str, str], found: tuple[str, ...]
) -> None:
    assert with_versions(requires, packages) == found
