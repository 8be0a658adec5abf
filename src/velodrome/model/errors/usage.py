"""What was asked makes no sense, names something unknown, or leaves nothing to do."""

from collections.abc import Sequence
from difflib import get_close_matches

from velodrome.model.errors.root import UsageError
from velodrome.model.files import Problem

MOST_FAULTS = 10
"""Of a file, shown in its sentence; those behind them are most often of the same kind."""
MOST_PROBLEMS = 100
"""Of a study, shown with their places."""
LONGEST = 400
"""Letters of one of these: a file may have names of any length."""


class UnknownNameError(UsageError):
    """Raised when a stack, recipe or study is asked for that does not exist."""

    def __init__(self, kind: str, name: str, known: Sequence[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        plural = {"study": "studies"}.get(kind, f"{kind}s")
        hint = f" Nearest: {', '.join(near)}." if near else ""
        super().__init__(f"no {kind} is called '{name}'.{hint} All: velodrome {plural}")


class BadOptionError(UsageError):
    """Raised when an option of the command line has a value that makes no sense."""

    def __init__(self, option: str, value: str, reason: str) -> None:
        super().__init__(f"{option} {value}: {reason}")


class CredentialsInUrlError(UsageError):
    """Raised when a URL has a user or a password in it: whatever shows the URL would show them."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        super().__init__(
            f"url: {scheme}://…@{rest.rpartition('@')[2]} has a user or a password in it, which a URL shows to "
            "whoever sees it: leave them out and give -H 'Authorization: Basic …', with what this prints: "
            "printf %s 'USER:PASSWORD' | base64"
        )


class MisplacedOptionError(UsageError):
    """Raised when an option is given that says nothing to the kind of server that the URL names."""

    def __init__(self, option: str, url: str, wanted: str) -> None:
        super().__init__(
            f"{option} goes with {wanted}:// URLs, and {url} is none: leave it out, or correct the URL"
        )


class NeedlessOptionError(UsageError):
    """Raised when options are given that do nothing here; `why` says for what they are."""

    def __init__(self, options: Sequence[str], why: str) -> None:
        self.options = tuple(options)
        verb = "says" if len(options) == 1 else "say"
        super().__init__(f"{', '.join(options)} {verb} nothing here: {why}")


class RequestsFileError(UsageError):
    """Raised when a file of requests cannot be loaded with; all that is wrong at once."""

    def __init__(self, path: str, faults: Sequence[str]) -> None:
        self.path, self.faults = path, tuple(faults)
        more = f"; and {len(faults) - MOST_FAULTS} more" if len(faults) > MOST_FAULTS else ""
        super().__init__(f"{path}: {'; '.join(map(_short, faults[:MOST_FAULTS]))}{more}")


class AccessLogError(UsageError):
    """Raised when an access log tells nothing that can be asked; `why` is the reason."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")


class OpenApiError(UsageError):
    """Raised when an OpenAPI document tells nothing that can be asked; `why` is the reason."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")


class TooLargeError(UsageError):
    """Raised when a file, or what it stands for when it is written out, is more than is read.

    `place` is a line (`line 7`) or a JSON pointer (`#/paths/~1items/get`), empty for the whole; `budget` is how much is
    read, such as `2 000 000 values`.
    """

    def __init__(self, path: str, place: str, budget: str) -> None:
        self.path, self.place, self.budget = path, place, budget
        where = f"{path}, {place}" if place else path
        super().__init__(
            f"{where}: it has, or stands for, more than {budget}, and no more are read. Give a smaller file, or write "
            "what it repeats fewer times"
        )


class RequestLineError(UsageError):
    """Raised when a line is no request; `why` is what is wrong with it."""

    def __init__(self, line: str, why: str) -> None:
        self.line = line
        super().__init__(
            f"'{line}' is no request: {why}. Write it as 'GET /cart?id=7' or 'POST /orders {{\"id\": 1}} -> 201'"
        )


class NoSourceError(UsageError):
    """Raised when nothing says what is asked of an app."""

    def __init__(self, example: str) -> None:
        super().__init__(f"nothing says what is asked; name a log, a document or a file: {example}")


class TwoSourcesError(UsageError):
    """Raised when what is asked of an app is told in more than one way."""

    def __init__(self, options: Sequence[str]) -> None:
        super().__init__(f"{' and '.join(options)} each say what is asked; give one of them")


class UnknownKnobError(UsageError):
    """Raised when a stack is given a setting it does not have, or one without a value."""

    def __init__(self, stack: str, knob: str, known: Sequence[str]) -> None:
        super().__init__(
            f"'{knob}' is no setting of {stack}; write one of these as name=value: {', '.join(known)}"
        )


class BrokenPluginError(UsageError):
    """Raised when a stack or recipe is asked for whose file could not be loaded."""

    def __init__(self, kind: str, name: str, reason: str) -> None:
        super().__init__(f"the {kind} '{name}' could not be loaded: {reason}")


class StudyFileError(UsageError):
    """Raised when a study file has problems: holds all of them, in the order of the file."""

    def __init__(self, path: str, problems: Sequence[Problem]) -> None:
        self.path, self.problems = path, tuple(sorted(problems))
        places = [f"line {problem.line}, column {problem.column}" for problem in self.problems]
        width = max(map(len, places), default=0)
        lines = [
            f"  {place:<{width}}   {_short(problem.sentence)}"
            for place, problem in zip(places[:MOST_PROBLEMS], self.problems[:MOST_PROBLEMS], strict=True)
        ]
        if len(self.problems) > MOST_PROBLEMS:
            lines.append(f"  and {len(self.problems) - MOST_PROBLEMS} more")
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        super().__init__("\n".join([f"{path} has {count}; nothing was run", *lines]))


class NothingSelectedError(UsageError):
    """Raised when `--only` leaves no trial of a study."""

    def __init__(self, pattern: str, cells: Sequence[str]) -> None:
        near = get_close_matches(pattern, cells, n=3, cutoff=0.4)
        hint = f"Nearest: {', '.join(near)}." if near else f"Cells of this study: {', '.join(cells[:8])}"
        more = f" and {len(cells) - 8} more" if not near and len(cells) > 8 else ""
        super().__init__(f"--only '{pattern}' matches no question/contestant of this study. {hint}{more}")


class MissingLibraryError(UsageError):
    """Raised when results are asked for as a table of a library that is not installed."""

    def __init__(self, library: str) -> None:
        self.library = library
        super().__init__(f"{library} is not installed here. Install it with: pip install {library}")


class AppNotFoundError(UsageError):
    """Raised when an app is given as an object that no imported module holds, so that no server can import it."""

    def __init__(self, app: str) -> None:
        super().__init__(
            f"{app} is in no module, so a server process cannot import it. Put it at the top level of one, or name it "
            "as 'module:attribute'; where a function makes it, such as one of a fixture, name that: 'shop:create_app'"
        )


class AppInTestError(UsageError):
    """Raised when nothing holds an app but a test that needs velodrome, whose names a server process does not have."""

    def __init__(self, app: str, file: str, attribute: str) -> None:
        super().__init__(
            f"{app} is '{attribute}' of {file} and of no other module. A server process cannot import that file, as it "
            "imports from velodrome. Put the app into a module of its own; or name what makes it, as "
            "'shop:create_app' or \"shop:create_app('test')\""
        )


class AppInProgramError(UsageError):
    """Raised when nothing holds an app but the program that runs: to import it would be to run it once more."""

    def __init__(self, app: str, file: str, attribute: str) -> None:
        stem = file.rpartition("/")[2].removesuffix(".py")
        super().__init__(
            f"{app} is '{attribute}' of {file}, the program that runs, and of no other module. Name the app's module: "
            f"put it into one of its own, or, where all that the program does stands under if __name__ == '__main__', "
            f"write '{stem}:{attribute}'"
        )


def _short(sentence: str) -> str:
    return sentence if len(sentence) <= LONGEST else f"{sentence[:LONGEST]}…"
