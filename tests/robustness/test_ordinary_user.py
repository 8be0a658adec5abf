"""Where velodrome is root, nothing of the user's runs as root: a real user is made, and everything tells who it is."""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.run.link.possible import NEEDS_LINK
from tests.waiting import wait_until

from velodrome.model.errors import AccountError, StartRefusedError
from velodrome.model.load import Link, Load, Open
from velodrome.run import idle_clients, third_party
from velodrome.run.account import (
    Account,
    account_for,
    acting,
    acting_as,
    as_root_unnamed,
    take_back,
)
from velodrome.run.drivers.driver import LoadEvent, Target
from velodrome.run.drivers.velodrome import VelodromeDriver
from velodrome.run.link import open_site
from velodrome.run.supervision import own_process
from velodrome.run.supervision.ward import Order, Ward

SYSTEM_PYTHON = "/usr/bin/python3"
NEEDED = all(map(shutil.which, ("useradd", "userdel"))) and os.path.exists(SYSTEM_PYTHON)
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not NEEDED, reason="only root can make a user, and needs useradd and a system Python"
)
VELODROME = Path(sys.executable).with_name("velodrome")

APP = """
import os

def note(what):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "who"), "a") as file:
        file.write(f"{what} {os.getuid()} {os.getgid()} {sorted(os.getgroups())}\\n")

note("import")

def app(environ, start_response):
    note("request")
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"""


@pytest.fixture(scope="module")
def user() -> Iterator[Account]:
    """Make a user of this machine, and take it away again with all it has."""
    name = f"velodrome-{secrets.token_hex(3)}"
    subprocess.run(["useradd", "--create-home", "--user-group", name], check=True)
    try:
        found = account_for(name)
        assert found is not None
        yield found
    finally:
        subprocess.run(["userdel", "--remove", "--force", name], check=False, capture_output=True)


@pytest.fixture
def shop(user: Account) -> Iterator[Path]:
    """An app in that user's home, with an environment that tells who runs it."""
    folder = Path(user.home) / f"shop-{secrets.token_hex(3)}"
    folder.mkdir()
    (folder / "shop.py").write_text(APP)
    subprocess.run([SYSTEM_PYTHON, "-m", "venv", "--without-pip", folder / ".venv"], check=True)
    packages = next((folder / ".venv" / "lib").glob("*/site-packages"))
    who = folder / "who"
    (packages / "tells.pth").write_text(
        f"import os; open({str(who)!r}, 'a').write(f'interpreter {{os.getuid()}}\\n')\n"
    )
    subprocess.run(["chown", "-R", f"{user.uid}:{user.gid}", folder], check=True)
    yield folder
    shutil.rmtree(folder)


def of(user: Account, *argv: str, **more: object) -> Order:
    return Order(argv, {"PATH": os.environ["PATH"]}, user=user, **more)  # type: ignore[arg-type]


def test_a_process_of_a_ward_is_the_user_with_its_groups_and_without_any_right_of_roots(
    user: Account,
) -> None:
    with Ward(
        of(user, "/bin/sh", "-c", "id -u; id -g; id -G; grep -E 'Cap(Prm|Eff|Amb)' /proc/self/status")
    ) as ward:
        assert ward.wait(10) is not None
        ward.stop()
        uid, gid, groups, *rights = ward.tail.lines()
    assert (int(uid), int(gid)) == (user.uid, user.gid)
    assert {*map(int, groups.split())} == {*user.groups}
    assert [int(line.split()[1], 16) for line in rights] == [0, 0, 0]


def test_its_scratch_folder_is_the_users_and_goes_with_it(user: Account, tmp_path: Path) -> None:
    scratch = Path(f"/tmp/velodrome-test-{secrets.token_hex(4)}")
    order = of(
        user, "/bin/sh", "-c", "touch here; stat -c %u . here", cwd=str(scratch), scratch=(str(scratch),)
    )
    with Ward(order) as ward:
        assert ward.wait(10) is not None
        ward.stop()
        assert [*map(int, ward.tail.lines())] == [user.uid, user.uid]
    assert not scratch.exists()


def test_its_output_can_be_opened_by_its_path(user: Account) -> None:
    with Ward(of(user, "/bin/sh", "-c", "echo seen > /dev/stderr")) as ward:
        assert ward.wait(10) is not None
        ward.stop()
        assert ward.tail.lines() == ("seen",)


def test_it_dies_with_its_warden_although_the_kernel_forgets_that_with_the_change_of_user(
    user: Account,
) -> None:
    with Ward(of(user, "/bin/sleep", "60")) as ward:
        warden = int(Path(f"/proc/{ward.pid}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(warden, signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{ward.pid}").exists())


def test_a_folder_that_is_closed_to_the_user_is_named(user: Account, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    assert user.first_closed(closed / "in" / "it") in map(str, (closed, *tmp_path.parents))
    with pytest.raises(StartRefusedError) as refused:
        Ward(of(user, "/bin/true", cwd=str(closed)))
    assert refused.value.stage == "cwd"


def has_no_root(pid: int, user: Account) -> bool:
    """Whether all that a process may do is what the user may, and to be scheduled before others."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    rights = {
        int(status[name], 16) & ~own_process.SYS_NICE for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")
    }
    whole = {*map(int, status["Uid"].split())}, {*map(int, status["Groups"].split())}, rights
    return whole == ({user.uid}, {*user.groups}, {0})


def test_a_third_party_is_the_user(user: Account) -> None:
    with acting_as(user), third_party.start() as third:
        assert has_no_root(third.pid, user)


def loaded(url: str, see: Callable[[int], None]) -> int:
    """Load a server for a moment, and have the engine's process seen meanwhile; return how many answers were right."""
    pids: list[int] = []

    def look(event: LoadEvent) -> bool:
        if event.kind == "started":
            pids.append(event.facts["pid"])
        if event.kind == "measuring":
            see(pids[0])
        return True

    return VelodromeDriver().run(Load(Open(200.0), duration_s=0.3), Target(url), look).ok


def classes(pid: int) -> set[int]:
    """Return the scheduling classes of the threads of a process, without what a fork does to them."""
    tasks = map(int, os.listdir(f"/proc/{pid}/task"))
    return {os.sched_getscheduler(task) & ~os.SCHED_RESET_ON_FORK for task in tasks}


def test_the_engine_is_the_user_and_still_sends_in_the_real_time_class(user: Account) -> None:
    seen: list[set[int]] = []
    without_root: list[bool] = []

    def look(pid: int) -> None:
        seen.append(classes(pid))
        without_root.append(has_no_root(pid, user))

    with third_party.start() as server:
        as_root = loaded(server.url, lambda pid: seen.append(classes(pid)))
        with acting_as(user):
            as_user = loaded(server.url, look)
    assert without_root == [True]
    assert seen[0] == seen[1]
    assert as_user == as_root == 60


def test_idle_connections_are_held_by_the_user(user: Account) -> None:
    with (
        third_party.start() as server,
        acting_as(user),
        idle_clients.hold_idle(20, server.url) as held,
    ):
        assert held is not None
        assert has_no_root(held.pid, user)
        assert held.facts().still_open == 20


@NEEDS_LINK
def test_the_relay_of_a_link_is_the_user_and_still_has_priority(user: Account) -> None:
    with open_site(Link(2.0), joined_by="relay") as site:
        priority = site.joint.realtime  # type: ignore[attr-defined]
    with acting_as(user), open_site(Link(2.0), joined_by="relay") as site:
        assert site.joint.pid is not None
        assert has_no_root(site.joint.pid, user)
        assert site.joint.realtime == priority  # type: ignore[attr-defined]
        site.begin()
        assert site.end().there.packets == 0


def test_whom_it_is_comes_from_the_name_then_from_sudo_then_from_the_folder(
    user: Account, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert account_for("", str(shop)) == user
    assert account_for("", str(tmp_path)) is None
    monkeypatch.setenv("SUDO_UID", str(pwd.getpwnam("nobody").pw_uid))
    found = account_for("", str(shop))
    assert found is not None
    assert found.name == "nobody"
    assert account_for(user.name, str(tmp_path)) == user
    assert account_for("root", str(shop)) is None
    assert as_root_unnamed("", None)
    assert not as_root_unnamed("root", None)


def test_a_number_without_an_entry_is_a_user_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    os.chown(tmp_path, 61234, 61234)
    found = account_for("", str(tmp_path))
    assert found is not None
    assert (found.uid, found.groups) == (61234, ())


def test_a_user_that_does_not_exist_is_refused() -> None:
    with pytest.raises(AccountError) as refused:
        account_for("nobody-of-that-name")
    assert refused.value.exit_code == 2


def test_nobody_but_root_may_name_another_user(user: Account) -> None:
    sentence = run_as(user, "from velodrome.run.account import account_for; account_for('root')")
    if "No module named" in sentence or "Permission denied" in sentence:
        pytest.skip("this interpreter is closed to other users")
    assert "AccountError" in sentence


def run_as(user: Account, program: str) -> str:
    source = Path(__file__).parents[2] / "src"
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONPATH": str(source)},
            cwd="/",
            check=False,
            capture_output=True,
            text=True,
            **user.process,
        )
    except PermissionError as error:
        return str(error)
    return done.stderr


def test_what_is_taken_back_is_roots_but_for_what_has_other_names(user: Account, tmp_path: Path) -> None:
    made = tmp_path / "made"
    (made / "in").mkdir(parents=True)
    plain, shared, elsewhere = made / "in" / "plain", made / "shared", tmp_path / "elsewhere"
    plain.touch()
    elsewhere.touch()
    os.link(elsewhere, shared)
    (made / "link").symlink_to(elsewhere)
    for path in (made, made / "in", plain, elsewhere):
        os.chown(path, user.uid, user.gid)
    with acting_as(user):
        take_back(made)
    assert [path.lstat().st_uid for path in (made, made / "in", plain, made / "link")] == [0, 0, 0, 0]
    assert elsewhere.stat().st_uid == user.uid


def velodrome(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("SUDO_", "VELODROME_CACHE"))
    }
    return subprocess.run(  # noqa: PLW1510 - what it ends with is looked at
        [VELODROME, *arguments],
        cwd=cwd,
        env={**env, **variables},
        capture_output=True,
        text=True,
        timeout=110,
    )


@pytest.mark.exhaustive
def test_app_interpreter_installer_setup_and_teardown_of_a_comparison_are_the_users(
    user: Account, shop: Path
) -> None:
    done = velodrome(
        *("compare", "shop:app", "--python", ".venv/bin/python", "--stack", "waitress"),
        *("--blocks", "1", "-z", "1s", "-c", "4", "--out", "run", "--wait"),
        *("--setup", 'echo "setup $(id -u) $HOME" >> who', "--teardown", 'echo "teardown $(id -u)" >> who'),
        cwd=shop,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in (shop / "who").read_text().splitlines()]
    assert {line[0] for line in lines} == {"import", "request", "interpreter", "setup", "teardown"}
    assert {int(line[1]) for line in lines} == {user.uid}
    assert next(line for line in lines if line[0] == "setup")[2] == user.home
    ours = [path for path in Path(user.home).rglob("*") if path.lstat().st_uid != user.uid]
    assert not ours, "files of root in the user's home"
    print(f"{len(lines)} processes and requests wrote who they are, all of them uid {user.uid}")


def test_root_without_a_user_is_reported_once_and_root_by_name_is_not(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP)
    options = ("compare", "shop:app", "--stack", "no-such-stack", "--python", SYSTEM_PYTHON)
    unnamed = velodrome(*options, cwd=tmp_path)
    assert unnamed.stderr.count("--user") == 1
    assert "--user" not in velodrome(*options, "--user", "root", cwd=tmp_path).stderr
    assert acting() is None


def test_an_interpreter_that_is_closed_to_the_user_is_refused_by_the_folder_that_closes_it(
    user: Account, shop: Path, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    subprocess.run([SYSTEM_PYTHON, "-m", "venv", "--without-pip", closed / "venv"], check=True)
    done = velodrome("compare", "shop:app", "--python", str(closed / "venv"), cwd=shop)
    assert done.returncode == 2
    assert user.name in done.stderr
    assert "--user" in done.stderr
    assert "Traceback" not in done.stderr
