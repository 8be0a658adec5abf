"""What was allowed is remembered for its user alone, by its contents; a file that is not right counts as empty."""

import json
import os
import sys
import threading
from pathlib import Path

import pytest

from velodrome.model.files import Deed, Named
from velodrome.run import cache
from velodrome.usecases.studies import MOST, MOST_BYTES, NAME, SCHEMA, Trusted, fingerprint

BY = "mine.toml"
PACKAGES = Named(Deed.INSTALLS, "tornado==5.1.1", "contestant old")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


@pytest.fixture
def stored(own_cache: Path) -> Path:
    Trusted(print).remember([PACKAGES], BY)
    return own_cache / "trust" / NAME


def executes(what: str) -> Named:
    return Named(Deed.EXECUTES, what, "contestant old")


def test_what_was_allowed_is_known_to_the_next_and_readable_by_its_user_alone(stored: Path) -> None:
    assert stored.stat().st_mode & 0o777 == 0o600
    assert Trusted(print).unknown([PACKAGES, executes("./x")], "other.toml") == (executes("./x"),)
    assert {path.name for path in stored.parent.iterdir()} == {NAME, f"{NAME}.lock"}


def test_an_executable_is_known_by_its_path_and_its_bytes(tmp_path: Path) -> None:
    script = tmp_path / "x.sh"
    assert fingerprint(executes("./x.sh"), BY) is None  # nothing is there to be known by
    script.write_text("one")
    first = fingerprint(executes("./x.sh"), BY)
    assert first == fingerprint(Named(Deed.EXECUTES, str(script), "experiment y"), "other.toml")
    script.write_text("two")
    assert fingerprint(executes("./x.sh"), BY) not in (first, None)
    (tmp_path / "y.sh").write_text("one")
    assert fingerprint(executes("./y.sh"), BY) != first


def test_an_environment_is_known_by_what_it_runs_at_each_start_too(tmp_path: Path) -> None:
    site = tmp_path / "env" / "lib" / "python3.12" / "site-packages"
    site.mkdir(parents=True)
    (tmp_path / "env" / "bin").mkdir()
    (tmp_path / "env" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "env" / "pyvenv.cfg").write_text("home = /usr/bin")
    seen = {fingerprint(executes("./env/bin/python"), BY)}
    assert seen == {fingerprint(executes("env"), BY)}
    for name in ("a.pth", "sitecustomize.py"):
        (site / name).write_text("import os")
        seen.add(fingerprint(executes("./env/bin/python"), BY))
    (tmp_path / "env" / "pyvenv.cfg").write_text("home = /tmp")
    seen.add(fingerprint(executes("./env/bin/python"), BY))
    assert len(seen) == 4
    assert None not in seen


def test_a_file_that_is_sent_is_known_by_its_bytes_and_by_who_names_it(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("one")
    (tmp_path / "mixes").mkdir()
    named = Named(Deed.READS, "../secret", "request a, body")
    first = fingerprint(named, "mixes/mix.toml")
    assert first == fingerprint(named, str(tmp_path / "mixes" / "mix.toml"))
    assert fingerprint(named, "mixes/other.toml") != first
    (tmp_path / "secret").write_text("two")
    assert fingerprint(named, "mixes/mix.toml") != first


@pytest.mark.parametrize("what", ["pipe", "/dev/zero", "none", "."])
def test_what_has_no_contents_is_never_known(what: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    named = executes(what)
    kept = Trusted(print)
    kept.remember([named], BY)
    assert kept.unknown([named], BY) == (named,)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff\x00",
        b"[]",
        b'{"schema": "velodrome-trusted/0", "trusted": []}',
        b'{"schema": "velodrome-trusted/1", "trusted": [1]}',
        b"[" * 100_000,
        b" " * 300_000,
    ],
)
def test_a_damaged_file_counts_as_empty_and_is_reported_and_mended(text: bytes, stored: Path) -> None:
    stored.write_bytes(text)
    messages: list[str] = []
    assert Trusted(messages.append).unknown([PACKAGES], BY) == (PACKAGES,)
    assert len(messages) == 1
    assert str(stored) in messages[0]
    Trusted(messages.append).remember([PACKAGES], BY)
    assert json.loads(stored.read_text())["schema"] == SCHEMA
    assert Trusted(pytest.fail).unknown([PACKAGES], BY) == ()


def test_what_others_could_have_written_counts_for_nothing(stored: Path) -> None:
    messages: list[str] = []
    stored.chmod(0o622)
    assert Trusted(messages.append).unknown([PACKAGES], BY) == (PACKAGES,)
    stored.chmod(0o600)
    beside = stored.rename(stored.with_name("beside"))
    stored.symlink_to(beside)
    assert Trusted(messages.append).unknown([PACKAGES], BY) == (PACKAGES,)
    assert len(messages) == 2
    Trusted(messages.append).remember([PACKAGES], BY)
    assert not stored.is_symlink()


def test_only_so_many_are_kept_and_the_newest_stay(own_cache: Path) -> None:
    kept = Trusted(print)
    every = [Named(Deed.INSTALLS, f"a=={number}", "x") for number in range(MOST + 50)]
    for at in range(0, len(every), 50):
        kept.remember(every[at : at + 50], BY)
    assert (own_cache / "trust" / NAME).stat().st_size < MOST_BYTES
    assert Trusted(pytest.fail).unknown(every, BY) == tuple(every[:50])


def test_nothing_is_lost_where_several_write_at_once() -> None:
    every = [Named(Deed.INSTALLS, f"a=={number}", "x") for number in range(40)]
    writers = [threading.Thread(target=Trusted(print).remember, args=([named], BY)) for named in every]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert Trusted(pytest.fail).unknown(every, BY) == ()


def test_where_it_cannot_be_written_it_holds_for_this_process(own_cache: Path) -> None:
    messages: list[str] = []
    (own_cache / "trust" / f"{NAME}.new").mkdir(parents=True)  # cannot be unlinked as a file, by root either
    kept = Trusted(messages.append)
    kept.remember([PACKAGES], BY)
    assert kept.unknown([PACKAGES], BY) == ()
    assert Trusted(messages.append).unknown([PACKAGES], BY) == (PACKAGES,)
    assert len(messages) == 1
