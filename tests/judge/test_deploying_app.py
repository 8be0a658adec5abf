"""What to paste to deploy a user's own app: their own names, and a file only where servers need one."""

import pytest

from velodrome.guest import catalog
from velodrome.judge.deploying import deploy_app
from velodrome.model.app import App, ThirdParty
from velodrome.model.trial import Contestant

PYTHON = "/shop/.venv/bin/python"
SERVED = ("wsgi", "asgi", "rsgi")


def pasted(app: App, stack: str, **knobs: int) -> str:
    of = catalog.stack(stack)
    packages = {line.partition("==")[0]: line.partition("==")[2] for line in of.requires}
    return deploy_app(app, Contestant(stack, knobs), of, {**packages, **app.packages})


def test_an_application_is_named_as_its_user_names_it() -> None:
    app = App("shop.wsgi:application", "wsgi", PYTHON, "/shop", packages={"flask": "3.1.2"})
    install, line = pasted(app, "gunicorn-gthread", workers=2).split("\n")
    assert install.startswith("python -m pip install gunicorn==")
    assert line.startswith("python -m gunicorn --bind=127.0.0.1:8000 --workers=2 ")
    assert line.endswith(" shop.wsgi:application")


def test_a_server_that_is_there_is_not_installed_again() -> None:
    app = App("shop:app", "wsgi", PYTHON, "/shop", packages={"gunicorn": "21.2.0"})
    line = pasted(app, "gunicorn-sync")
    assert line.startswith("python -m gunicorn ")
    assert "--no-control-socket" not in line


LABORATORY = ("graceful", "log-level", "kill-", "=10000", "--timeout=120")


@pytest.mark.parametrize(
    "stack", [name for name, stack in catalog.stacks().items() if stack.interface in SERVED]
)
def test_no_server_is_deployed_as_a_laboratory_wants_it(stack: str) -> None:
    app = App("shop:app", catalog.stack(stack).interface, PYTHON, "/shop")
    line = pasted(app, stack)
    assert line.split("\n")[-1].startswith("python ")
    server = catalog.stack(stack).server
    options = {word.strip("'\",").partition("=")[0] for word in line.split()}
    assert server is not None
    assert not options & set(server.has_value)
    assert not [part for part in LABORATORY if part in line]


def test_variables_are_named_before_the_command_and_their_values_nowhere() -> None:
    app = App(
        "shop:app",
        "wsgi",
        PYTHON,
        "/shop",
        packages={"cheroot": "11.1.2"},
        variables=("DATABASE_URL",),
        third_parties=(ThirdParty("PAYMENTS_URL", "50ms"),),
    )
    needs, line = pasted(app, "cheroot").split("\n")
    assert needs == "# needs in its environment: DATABASE_URL, PAYMENTS_URL"
    assert line.startswith("python -m cheroot ")


def test_waitress_is_silent_about_requests_that_wait_for_a_thread_as_it_was_measured() -> None:
    """Its own command line logs each of them, and has no option against it."""
    app = App("shop:app", "wsgi", PYTHON, "/shop", packages={"waitress": "3.0.2"})
    text = pasted(app, "waitress")
    assert 'logging.getLogger("waitress").setLevel(logging.ERROR)' in text
    assert "threads=4, backlog=2048, connection_limit=1000, asyncore_use_poll=True)" in text


@pytest.mark.parametrize("stack", ["waitress", "bjoern", "pyuwsgi"])
@pytest.mark.parametrize(
    ("served", "imports"),
    [
        ({"wsgi": "mall.wsgi:application"}, "from mall.wsgi import application"),
        (
            {"wsgi": "velodrome.guest.apps.served:django_wsgi"},
            "from django.core.wsgi import get_wsgi_application",
        ),
    ],
)
def test_a_program_serves_a_django_site_with_its_settings(
    stack: str, served: dict[str, str], imports: str
) -> None:
    app = App("mall.settings", "wsgi", PYTHON, "/shop", form="django", served=served)
    shell = pasted(app, stack).split("\n")
    source = "\n".join(shell[shell.index("cat > serve.py <<'END'") + 1 : shell.index("END")])
    compile(source, "serve.py", "exec")
    assert imports in source
    assert shell[-1] == "DJANGO_SETTINGS_MODULE=mall.settings python serve.py"


@pytest.mark.parametrize(
    ("path", "form", "lines"),
    [
        ("shop:create_app", "factory", ["from shop import create_app", "", "app = create_app()"]),
        ("shop:create_app('x')", "factory", ["from shop import create_app", "", "app = create_app('x')"]),
        (
            "shop:create_app",
            "coroutine",
            ["import asyncio", "", "from shop import create_app", "", "made = None"],
        ),
        ("shop:Double", "asgi2", ["from shop import Double", "", "", "async def app(scope, receive, send):"]),
    ],
)
def test_what_servers_cannot_load_gets_the_lines_of_a_file(path: str, form: str, lines: list[str]) -> None:
    app = App(path, "asgi", PYTHON, "/shop", form=form, packages={"uvicorn": "0.54.0"})
    shell = pasted(app, "uvicorn").split("\n")
    at = shell.index("cat > serve.py <<'END'")
    assert shell[at + 1 : at + 1 + len(lines)] == lines
    assert shell[-2] == "END"
    assert shell[-1].endswith(" serve:app")


def test_a_django_site_names_its_settings() -> None:
    app = App(
        "mall.settings", "wsgi", PYTHON, "/shop", form="django", served={"wsgi": "mall.wsgi:application"}
    )
    assert (
        pasted(app, "gunicorn-sync")
        .split("\n")[-1]
        .startswith("DJANGO_SETTINGS_MODULE=mall.settings python -m")
    )


@pytest.mark.parametrize("stack", ["aiohttp", "aiohttp-uvloop", "tornado", "tornado-uvloop"])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_framework_that_serves_itself_gets_a_program(stack: str, workers: int) -> None:
    interface = stack.partition("-")[0]
    app = App("shop:make_app", interface, PYTHON, "/shop", form="factory")
    shell = pasted(app, stack, workers=workers).split("\n")
    start = shell.index("cat > serve.py <<'END'")
    source = "\n".join(shell[start + 1 : shell.index("END")])
    compile(source, "serve.py", "exec")
    assert "from shop import make_app" in source
    assert "make_app()" in source
    assert "velodrome" not in source
    assert ("uvloop" in source) == stack.endswith("uvloop")
    assert ("fork" in source) == (workers > 1)
    assert shell[-1] == "python serve.py"
