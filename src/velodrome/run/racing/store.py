"""The file results are appended to: one line per result, on the disk before the next begins."""

import copy
import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from velodrome.model import results, secrets
from velodrome.model.errors import (
    OutputError,
    ResultsError,
    ResultsExistError,
    ResultsInUseError,
    StudyChangedError,
)
from velodrome.model.results import COMPARABLE, Entry, Header, Results
from velodrome.model.study import Study

NAME = "results.jsonl"
BEGINNING = b'{"schema":"' + results.SCHEMA.encode()

FREE = ("title", "sources", "claims", "tables", "blocks", "until_settled", "budget_s")
"""What may change between a run and its resume: what a study says of its measurements, which none depends on, and how
many of them there are to be. Whether it runs until it is settled stays as it began, and so it is judged."""


def now() -> str:
    """Return the time as headers have it: ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Store:
    """An open results file. Only one process writes it: the file itself is locked."""

    def __init__(self, path: Path, number: int, end: int, study: Study | None = None) -> None:
        """`study` is the one in its header."""
        self.path, self._number, self._end, self._study = path, number, end, study

    @classmethod
    def create(cls, folder: Path, header: Header) -> Self:
        """Begin a new file with its header. Raises OutputError, ResultsExistError."""
        path = folder / NAME
        try:
            folder.mkdir(parents=True, exist_ok=True)
            number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError as error:
            if folder.is_dir():
                raise ResultsExistError(str(path)) from error
            raise OutputError(str(path), f"{folder} is a file") from error
        except OSError as error:
            raise OutputError(str(path), os.strerror(error.errno or 0)) from error
        store = cls(path, number, 0, header.study)
        try:
            store._lock()
            store._append(results.dump_header(_mask_header(header)))
            _sync_folder(folder)
        except OutputError:
            store.close()
            path.unlink(missing_ok=True)  # a file without a header could not be resumed
            raise
        return store

    @classmethod
    def resume(cls, folder: Path, header: Header) -> tuple[Self, Results]:
        """Go on with a file, cutting off a last line that a crash tore; return what is in it.

        Raises ResultsError when it cannot be read, StudyChangedError when it was begun under other
        conditions, ResultsInUseError when another velodrome writes it.
        """
        path = folder / NAME
        try:
            number = os.open(path, os.O_RDWR)
        except OSError as error:
            raise ResultsError(str(path), 0, os.strerror(error.errno or 0)) from error
        store = cls(path, number, 0, header.study)
        try:
            store._lock()
            data = path.read_bytes()
            if b"\n" not in data and BEGINNING.startswith(data[: len(BEGINNING)]):
                os.ftruncate(number, 0)  # killed before its header was written: nothing is lost
                store._append(results.dump_header(_mask_header(header)))
                return store, Results(header, (), store._end, torn=bool(data))
            found = results.parse(data, str(path))
            differing = differences(found.header, header)
            if differing:
                raise StudyChangedError(str(path), differing)
            os.ftruncate(number, found.whole_bytes)
        except BaseException:
            store.close()
            raise
        store._end, store._study = found.whole_bytes, found.header.study
        return store, found

    def append(self, entry: Entry) -> None:
        """Add one result, secrets masked; on return it is on the disk. Raises OutputError: the file is as before."""
        self._append(results.dump(secrets.mask_noun(entry), self._study))

    def _append(self, line: str) -> None:
        data = memoryview(line.encode() + b"\n")
        length = len(data)
        try:
            at = self._end
            while data:
                written = os.pwrite(self._number, data, at)
                data, at = data[written:], at + written
            os.fsync(self._number)
        except OSError as error:
            self._truncate()
            raise OutputError(str(self.path), os.strerror(error.errno or 0)) from error
        self._end += length

    def _truncate(self) -> None:
        """Take back a line that did not fit, so that the file ends with a whole one."""
        try:
            os.ftruncate(self._number, self._end)
        except OSError:
            return  # the next reader leaves a torn last line out by itself

    def _lock(self) -> None:
        try:
            fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ResultsInUseError(str(self.path)) from error

    def discard(self) -> None:
        """Remove the file, and its folder if nothing else is in it: nothing was measured."""
        self.close()
        self.path.unlink(missing_ok=True)
        with suppress(OSError):  # what else is in it is somebody's
            self.path.parent.rmdir()

    def close(self) -> None:
        """Close the file; may be called again."""
        if self._number >= 0:
            os.close(self._number)
            self._number = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read(path: Path) -> Results:
    """Read a results file, or the one in a folder. Raises ResultsError."""
    file = path / NAME if path.is_dir() else path
    try:
        return results.parse(file.read_bytes(), str(file))
    except OSError as error:
        raise ResultsError(str(file), 0, error.strerror or str(error)) from error


def read_header(folder: Path) -> Header:
    """Read how the results in a folder were begun, and none of them. Raises ResultsError."""
    file = folder / NAME
    try:
        with file.open("rb") as lines:
            return results.parse(lines.readline(), str(file)).header
    except OSError as error:
        raise ResultsError(str(file), 0, error.strerror or str(error)) from error


def differences(begun: Header, now: Header) -> list[str]:
    """Return in what two headers differ that forbids their trials to stand in one file, as phrases."""
    found = []
    if begun.seed != now.seed:
        found.append(f"seed {begun.seed}, now {now.seed}")
    before, after = results.plain_study(begun.study), results.plain_study(secrets.mask_noun(now.study))
    if sealed := _resealed(before, after):
        found.append(sealed)
        after["questions"] = before["questions"]  # which this is all that changed of
    found += [
        f"the study's {name} changed"
        for name in before
        if name not in FREE and before[name] != after.get(name)
    ]
    searched, now_sought = results.plain_sought(begun.sought), results.plain_sought(now.sought)
    found += [
        f"the search's {name} changed"
        for name in sorted(searched.keys() | now_sought.keys())
        if (name != "budget_s" or searched.get("what") == "capacity")
        # Which loads a capacity has follows from its budget, so that another one does not go on from them.
        and searched.get(name) != now_sought.get(name)
    ]
    for name in COMPARABLE:
        if begun.machine.get(name) != now.machine.get(name):
            found.append(f"{name} {begun.machine.get(name)}, now {now.machine.get(name)}")
    if begun.velodrome != now.velodrome:
        found.append(f"velodrome {begun.velodrome}, now {now.velodrome}")
    return found


def _mask_header(header: Header) -> Header:
    return replace(header, study=secrets.mask_noun(header.study))


def _resealed(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return a phrase where secrets of what is asked are all that two studies' questions differ in; else nothing."""
    olds, news = list(_fingerprints(before)), list(_fingerprints(after))
    if olds == news or _without_fingerprints(before) != _without_fingerprints(after):
        return ""
    changed = [(old, new) for old, new in zip(olds, news, strict=True) if old != new]
    names = ", ".join(dict.fromkeys(name for (name, _), _ in changed))
    if any(old.partition(":")[0] != new.partition(":")[0] for (_, old), (_, new) in changed):
        return (
            f"whether the secrets of {names} are the same cannot be seen, as the key of their fingerprints is another: "
            "it is of another user, or the cache was emptied"
        )
    return f"the secrets of {names} are others than they were; give the same again"


def _requests(study: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for question in study["questions"]:
        yield from (question.get("app") or {}).get("requests", ())


def _fingerprints(study: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    return ((request["name"], request["fingerprint"]) for request in _requests(study))


def _without_fingerprints(study: Mapping[str, Any]) -> Any:
    found = copy.deepcopy(study["questions"])
    for request in _requests({"questions": found}):
        request["fingerprint"] = ""
    return found


def _sync_folder(folder: Path) -> None:
    """Bring the folder's entry to the disk too, or a power cut could lose the whole file."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError:
        return  # some file systems cannot; the file itself is synced
    finally:
        os.close(number)
