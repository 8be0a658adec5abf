"""A document read as a command would read it, and what came of it."""

from pathlib import Path

from tests.plan.made import KNOWN

from velodrome.model.errors import UsageError
from velodrome.plan import study_file
from velodrome.plan.requests import access_log, file, openapi


def read(path: Path) -> str:
    """Return what reading a file came to: how many requests, or the name of its error."""
    try:
        if path.suffix == ".log":
            return f"{len(access_log.read(path).requests)} requests"
        if path.suffix == ".study":
            return f"{len(study_file.read(path, KNOWN).questions)} questions"
        if path.suffix == ".toml" or path.name == "deep_requests.json":
            return f"{len(file.read(path))} requests"
        return f"{len(openapi.read(path, ('GET', 'POST')).requests)} requests"
    except UsageError as error:
        wordy = len(str(error)) > 20_000
        return f"{type(error).__name__}{' of many words' if wordy else ''}"
