import json

from velodrome.report.deployment import Wishes, command_line, files

GUNICORN = (
    "python -m gunicorn --bind=127.0.0.1:8000 --workers=2 --backlog=2048 --worker-class=gthread --timeout=120 "
    "--graceful-timeout=2 --keep-alive=75 --no-control-socket --log-level=warning --threads=16 shop.wsgi:application"
)
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
    assert "loglevel" not in config


def test_a_unit_holds_the_limits_and_runs_where_the_app_is() -> None:
    wishes = Wishes(2, 2**30, python="/home/me/shop/.venv/bin/python", folder="/home/me/shop")
    unit = texts(UVICORN, wishes)["app.service"].splitlines()
    assert "ExecStart=/home/me/shop/.venv/bin/python -m uvicorn --host=127.0.0.1 --port=8000 " in unit[5]
    assert "WorkingDirectory=/home/me/shop" in unit
    assert "CPUQuota=200%" in unit
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
    assert command_line(command, Wishes()) == command


def test_workers_of_an_app_that_leaks_are_replaced() -> None:
    wishes = Wishes(requests_to_restart=20_000)
    assert "--max-requests=20000 --max-requests-jitter=2000 shop.wsgi:application" in command_line(
        GUNICORN, wishes
    )
    assert "--limit-max-requests=20000 shop:app" in command_line(UVICORN, wishes)
    assert "max_requests = 20000" in texts(GUNICORN, wishes)["gunicorn.conf.py"]


def test_a_program_that_is_written_is_started_by_its_file() -> None:
    found = texts("python serve.py", Wishes())
    assert "/srv/app/.venv/bin/python serve.py" in found["app.service"]
    assert "gunicorn.conf.py" not in found


def test_what_is_no_command_line_gives_nothing_to_paste() -> None:
    assert files("velodrome stacks show tornado", Wishes()) == ()
