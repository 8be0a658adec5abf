import json

import pytest

from velodrome.guest import catalog
from velodrome.report.recommendation import Full, Wishes, bound_command, files, replaces_workers, server_of

GUNICORN = (
    "python -m gunicorn --bind=127.0.0.1:8000 --workers=2 --backlog=2048 --worker-class=gthread --keep-alive=75 "
    "--threads=16 shop.wsgi:application"
)
GRANIAN = "python -m granian --interface=wsgi --port=8000 --workers=2 shop.wsgi:application"
CHEROOT = "python -m cheroot --bind=127.0.0.1:8000 --threads=4 shop.wsgi:application"
UVICORN = "python -m uvicorn --host=127.0.0.1 --port=8000 --workers=2 --loop=uvloop shop:app"


def texts(command: str, wishes: Wishes) -> dict[str, str]:
    return {file.name: file.text for file in files(command, wishes)}


def test_gunicorn_gets_its_file_as_python_reads_it() -> None:
    config: dict[str, object] = {}
    exec(texts(GUNICORN, Wishes())["gunicorn.conf.py"], config)
    assert config["workers"] == 2
    assert config["threads"] == 16
    assert config["worker_class"] == "gthread"
    assert config["keepalive"] == 75
    assert config["bind"] == "127.0.0.1:8000"
    assert config["wsgi_app"] == "shop.wsgi:application"
    assert "graceful_timeout" not in config


def test_a_unit_holds_the_limits_and_runs_where_the_app_is() -> None:
    wishes = Wishes(2, 2**30, python="/home/me/shop/.venv/bin/python", folder="/home/me/shop")
    unit = texts(UVICORN, wishes)["app.service"].splitlines()
    assert "ExecStart=/home/me/shop/.venv/bin/python -m uvicorn --host=127.0.0.1 --port=8000 " in next(
        line for line in unit if line.startswith("ExecStart=")
    )
    assert "WorkingDirectory=/home/me/shop" in unit
    assert "CPUAffinity=0-1" in unit
    assert "DynamicUser=yes" in unit
    assert not [line for line in unit if line.startswith("CPUQuota")]
    assert "MemoryMax=1073741824" in unit


def test_a_container_listens_on_all_addresses() -> None:
    docker = texts(UVICORN, Wishes())["Dockerfile"]
    words = json.loads(docker.splitlines()[-1].removeprefix("CMD "))
    assert words[:4] == ["python", "-m", "uvicorn", "--host=0.0.0.0"]
    assert words[-1] == "shop:app"


def test_variables_before_the_command_stay_variables() -> None:
    command = f"DJANGO_SETTINGS_MODULE=shop.settings {UVICORN}"
    found = texts(command, Wishes())
    assert "Environment=DJANGO_SETTINGS_MODULE=shop.settings" in found["app.service"]
    assert "ENV DJANGO_SETTINGS_MODULE=shop.settings" in found["Dockerfile"]
    assert bound_command(command, Wishes()) == command


def test_names_of_variables_are_there_to_be_filled_in_and_values_nowhere() -> None:
    found = texts(UVICORN, Wishes(variables=("DATABASE_URL", "SECRET_KEY")))
    unit = found["app.service"].splitlines()
    at = unit.index("EnvironmentFile=/etc/app.env")
    assert unit[at - 1].startswith("# Holds DATABASE_URL, SECRET_KEY: ")
    docker = found["Dockerfile"].splitlines()
    at = docker.index("ENV DATABASE_URL=")
    assert docker[at - 1].startswith("# Given when it is run")
    assert docker[at + 1] == "ENV SECRET_KEY="
    assert "EnvironmentFile" not in texts(UVICORN, Wishes())["app.service"]


def test_a_unit_takes_percents_and_dollars_and_blanks_for_what_they_are() -> None:
    command = (
        "MODE='50% of $it' python -m uvicorn --log-config='a b.ini' --root-path=/$x%20 'shop:make(\"it\")'"
    )
    wishes = Wishes(python="/srv/50%/bin/python", folder="/srv/50%")
    unit = texts(command, wishes)["app.service"].splitlines()
    assert "WorkingDirectory=/srv/50%%" in unit
    assert 'Environment="MODE=50%% of $it"' in unit
    (line,) = (setting for setting in unit if setting.startswith("ExecStart="))
    assert line == (
        'ExecStart=/srv/50%%/bin/python -m uvicorn "--log-config=a b.ini" --root-path=/$$x%%20 '
        '"shop:make(\\"it\\")"'
    )


def test_a_container_takes_variables_for_what_they_are() -> None:
    docker = texts("MODE='50% of $it' " + UVICORN, Wishes())["Dockerfile"]
    assert 'ENV MODE="50% of \\$it"' in docker.splitlines()


FULL = Wishes(full=Full(20_000, 210 * 2**20))


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (GUNICORN, "--max-requests=20000 --max-requests-jitter=2000"),
        (UVICORN, "--limit-max-requests=20000"),
        (GRANIAN, "--workers-max-rss=210"),
    ],
)
def test_workers_of_an_app_that_leaks_are_replaced(command: str, options: str) -> None:
    *before, app = command.split()
    assert bound_command(command, FULL) == " ".join([*before, options, app])
    assert replaces_workers(command, FULL)


def test_the_file_of_gunicorn_replaces_workers_too_and_a_unit_starts_anew_what_ends_for_it() -> None:
    assert "max_requests = 20000" in texts(GUNICORN, FULL)["gunicorn.conf.py"]
    assert "Restart=always" in texts(UVICORN, FULL)["app.service"]


@pytest.mark.parametrize("command", [CHEROOT, "python serve.py"])
def test_a_server_that_cannot_replace_workers_is_known_for_it(command: str) -> None:
    assert bound_command(command, FULL) == command
    assert not replaces_workers(command, FULL)
    assert server_of(CHEROOT) == "cheroot"


def test_a_program_that_is_written_is_started_by_its_file() -> None:
    found = texts("python serve.py", Wishes())
    assert "/srv/app/.venv/bin/python serve.py" in found["app.service"]
    assert "gunicorn.conf.py" not in found


def test_what_is_no_command_line_gives_nothing_to_paste() -> None:
    assert files("velodrome stacks show tornado", Wishes()) == ()


def of_stack(name: str, **knobs: int) -> Wishes:
    stack = catalog.stack(name)
    return Wishes(stack=stack, knobs=stack.settings(knobs), measured="Measured for 2 CPUs.")


@pytest.mark.parametrize(
    ("stack", "command", "kind", "mode", "ends_on"),
    [
        ("gunicorn-sync", GUNICORN, "notify", "mixed", "SIGTERM"),
        ("uvicorn", UVICORN, "exec", "mixed", "SIGTERM"),
        ("robyn", "python serve.py", "exec", "mixed", "SIGINT"),
        # A program that only forks: its children get the signal themselves.
        ("bjoern", "python serve.py", "exec", "control-group", "SIGTERM"),
        ("grpc-threads", "python serve.py", "exec", "control-group", "SIGTERM"),
    ],
)
def test_a_unit_starts_and_ends_a_server_as_that_does(
    stack: str, command: str, kind: str, mode: str, ends_on: str
) -> None:
    unit = texts(command, of_stack(stack))["app.service"].splitlines()
    assert {f"Type={kind}", f"KillMode={mode}", f"KillSignal={ends_on}"} <= set(unit)


@pytest.mark.parametrize("file", ["gunicorn.conf.py", "app.service", "Dockerfile", "nginx.conf"])
def test_each_file_says_for_what_it_was_measured(file: str) -> None:
    assert texts(GUNICORN, of_stack("gunicorn-gthread"))[file].startswith("# Measured for 2 CPUs.\n")


@pytest.mark.parametrize(
    ("stack", "knobs", "kept"),
    [
        ("gunicorn-gthread", {}, 56),
        ("gunicorn-gthread", {"keepalive": 4}, 3),
        ("uvicorn", {"keepalive": 600}, 60),
        ("granian-wsgi", {}, 45),
        ("bjoern", {}, 60),
        # It ends each connection; it keeps ten; how long it does is not known.
        ("gunicorn-sync", {}, None),
        ("cheroot", {}, None),
        ("socketserver-single", {}, None),
    ],
)
def test_nginx_ends_an_idle_connection_before_the_server(
    stack: str, knobs: dict[str, int], kept: int | None
) -> None:
    lines = [line.strip() for line in texts(GUNICORN, of_stack(stack, **knobs))["nginx.conf"].splitlines()]
    assert [line for line in lines if line.startswith("keepalive_timeout")] == (
        [f"keepalive_timeout {kept}s;"] if kept is not None else []
    )
    assert any(line.startswith("keepalive ") for line in lines) == (kept is not None)


def test_a_program_that_is_written_listens_on_all_addresses_of_a_container() -> None:
    assert "RUN sed -i s/127.0.0.1/0.0.0.0/ serve.py" in texts("python serve.py", Wishes())["Dockerfile"]


def test_nothing_of_nginx_stands_before_a_grpc_server() -> None:
    assert "nginx.conf" not in texts("python serve.py", of_stack("grpc-aio"))
