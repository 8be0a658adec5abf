"""What is sent of an app's folder, and what is made of it where it arrives."""

import io
import os
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from velodrome.model.errors import SendingError
from velodrome.run.cluster import sending


def written(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    subprocess.run(["git", *who, "-C", str(folder), *words], check=True, capture_output=True)


def arrived(folder: Path, into: Path) -> dict[str, str]:
    into.mkdir()
    sending.unpack(sending.pack(str(folder)), into)
    return {
        str(path.relative_to(into)): path.read_text()
        for path in sorted(into.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def test_of_a_repository_all_is_sent_that_git_does_not_ignore(tmp_path: Path) -> None:
    shop = written(
        tmp_path / "repository" / "shop",
        {"app.py": "1", ".flaskenv": "2", ".env": "SECRET=hunter22", "new.py": "3", "pkg/gone.py": "4"},
    )
    written(tmp_path / "repository", {".gitignore": ".env\n", "elsewhere.py": "5"})
    git(tmp_path / "repository", "init", "-q")
    git(tmp_path / "repository", "add", ".gitignore", "shop/app.py", "shop/.flaskenv", "shop/pkg/gone.py")
    git(tmp_path / "repository", "commit", "-qm", "first")
    (shop / "pkg" / "gone.py").unlink()
    assert arrived(shop, tmp_path / "there") == {"app.py": "1", ".flaskenv": "2", "new.py": "3"}


def test_without_git_what_is_hidden_or_made_anew_stays(tmp_path: Path) -> None:
    shop = written(
        tmp_path / "shop",
        {
            "app.py": "1",
            ".env": "2",
            ".venv/x.py": "3",
            "__pycache__/app.pyc": "4",
            "node_modules/x.js": "5",
            "a/b.py": "6",
        },
    )
    assert arrived(shop, tmp_path / "there") == {"app.py": "1", "a/b.py": "6"}


def test_links_modes_and_the_same_bytes_for_the_same_content(tmp_path: Path) -> None:
    shop = written(tmp_path / "shop", {"bin/run": "#!/bin/sh", "app.py": "1"})
    (shop / "bin" / "run").chmod(0o700)
    (shop / "bin" / "again").symlink_to("../app.py")
    first = sending.pack(str(shop))
    os.utime(shop / "app.py", (1, 1))
    assert sending.pack(str(shop)) == first
    there = tmp_path / "there"
    there.mkdir()
    sending.unpack(first, there)
    assert os.access(there / "bin" / "run", os.X_OK)
    assert (there / "bin" / "again").read_text() == "1"


def test_what_cannot_be_sent_is_refused_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = written(tmp_path / "shop", {"app.py": "1" * 1000})
    (shop / "data").symlink_to("/etc/passwd")
    with pytest.raises(SendingError, match="data is a link"):
        sending.pack(str(shop))
    (shop / "data").unlink()
    monkeypatch.setattr(sending, "MOST_UNPACKED", 999)
    with pytest.raises(SendingError, match="larger"):
        sending.pack(str(shop))
    with pytest.raises(SendingError, match="nothing"):
        sending.pack(str(written(tmp_path / "empty", {".hidden": ""})))


@pytest.mark.parametrize(
    ("name", "kind", "leads_to"),
    [
        ("../out", tarfile.REGTYPE, ""),
        ("/tmp/out", tarfile.REGTYPE, ""),
        ("a/../../out", tarfile.REGTYPE, ""),
        ("out", tarfile.SYMTYPE, "/etc"),
        ("out", tarfile.SYMTYPE, "../.."),
        ("out", tarfile.LNKTYPE, "app.py"),
        ("out", tarfile.CHRTYPE, ""),
    ],
)
def test_nothing_is_written_outside_of_the_folder(
    tmp_path: Path, name: str, kind: bytes, leads_to: str
) -> None:
    out, member = io.BytesIO(), tarfile.TarInfo(name)
    member.type, member.linkname = kind, leads_to
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        tar.addfile(member, io.BytesIO())
    there = tmp_path / "there"
    there.mkdir()
    with pytest.raises(SendingError):
        sending.unpack(out.getvalue(), there)
    assert [*tmp_path.rglob("*")] == [there]


def test_a_file_does_not_go_through_a_link_that_was_sent_with_it(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        link, file = tarfile.TarInfo("a"), tarfile.TarInfo("a/b")
        link.type, link.linkname = tarfile.SYMTYPE, "."
        tar.addfile(link)
        tar.addfile(file, io.BytesIO())
    there = tmp_path / "there"
    there.mkdir()
    with pytest.raises(SendingError):
        sending.unpack(out.getvalue(), there)
