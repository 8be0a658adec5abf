"""A user's own app cannot be imported, read from a revision, served, or requested."""

import math
import re
from collections.abc import Sequence
from difflib import get_close_matches

from velodrome.model import quantity
from velodrome.model.errors import UsageError, VelodromeError, quote_lines

UNFINISHED = re.compile("does not finish (an answer|a response)")
"""In the reason of a server that accepts connections and does not respond."""


class AppRaisesError(UsageError):
    """Raised when an app, or its factory, raises: `lines` are its own traceback, shortened."""

    def __init__(self, app: str, lines: Sequence[str], cure: str) -> None:
        self.lines = tuple(lines)
        super().__init__(f"{app} cannot be imported:{''.join(_indent(lines))}\n  {cure}")


class AppEndsError(UsageError):
    """Raised when importing an app ends the process, so that nothing is known of the app."""

    def __init__(self, app: str, how: str, last_lines: Sequence[str] = ()) -> None:
        super().__init__(
            f"{app}: importing it ends the process ({how}).{_between(last_lines)} An app must be importable: move "
            "code that starts a server, exits or daemonizes under if __name__ == '__main__'"
        )


class AppHangsError(UsageError):
    """Raised when the import of an app does not finish."""

    def __init__(self, app: str, seconds: float, last_lines: Sequence[str] = ()) -> None:
        super().__init__(
            f"{app}: the import did not finish within {seconds:g} s.{_between(last_lines)} Move code that starts a "
            "server under if __name__ == '__main__'; if the import waits for a service, such as a database, check "
            "that the service runs"
        )


class AppNameError(UsageError):
    """Raised when a module, or `holder` in it, has no attribute of that name, or none that looks like an app."""

    def __init__(self, app: str, module: str, name: str, known: Sequence[str], holder: str = "") -> None:
        near = get_close_matches(name, known, n=3, cutoff=0.5) if name else []
        if near:
            hint = f"Nearest: {', '.join(near)}"
        elif known:
            more = f" and {len(known) - 8} more" if len(known) > 8 else ""
            hint = f"It has: {', '.join(known[:8])}{more}"
        else:
            hint = "It has no attributes of its own" if holder else "It is empty"
        who = f"{module}:{holder}" if holder else f"the module {module}"
        what = f"has no '{name}'" if name else "has no attribute with a usual name, such as app or create_app"
        super().__init__(f"{app}: {who} {what}. {hint}. Name the app as module:attribute")


class AppPathError(UsageError):
    """Raised when the name of an app cannot be parsed."""

    def __init__(self, app: str, reason: str) -> None:
        super().__init__(
            f"{app}: {reason}. Name an app as module:attribute, such as shop.wsgi:application, or "
            "module:factory('with', 'values')"
        )


class AppUnfitError(UsageError):
    """Raised when an attribute is not an app: not callable, of no known kind, or a factory that needs arguments.

    `awaited`: calling it returns an awaitable, which only some servers can await.
    """

    def __init__(self, app: str, described: str, needs: Sequence[str], *, awaited: bool = False) -> None:
        if awaited:
            cure = (
                "which must be awaited, and only ASGI and aiohttp servers can do that. Name a function that is not "
                "async; or, if it returns an app for these servers, pass --interface asgi"
            )
        elif needs:
            module, _, name = app.partition(":")
            # Keyword arguments end in `=`.
            values = ", ".join(
                f"{need}<{need[:-1]}>" if need.endswith("=") else f"<{need}>" for need in needs
            )
            cure = (
                f"which needs {_arguments([need.rstrip('=') for need in needs])}. If it creates the app, pass them: "
                f"{module}:{name.partition('(')[0]}({values}), or name a function that needs none"
            )
        else:
            cure = (
                "which servers cannot call as WSGI, as ASGI, or as an application of aiohttp or Tornado. If they can, "
                "say how: --interface wsgi"
            )
        super().__init__(f"{app} is {described}, {cure}")


class SameAppError(UsageError):
    """Raised when an app is to be compared with itself."""

    def __init__(self, app: str, again: str) -> None:
        which = f"{app} is given twice" if app == again else f"{app} and {again} are the same app"
        super().__init__(f"{which}; name each app once")


class AppFolderError(UsageError):
    """Raised when an app's working directory does not exist."""

    def __init__(self, folder: str, reason: str) -> None:
        super().__init__(f"--cwd {folder}: {reason}. Give the folder that contains the app's module")


class AppInterpreterError(UsageError):
    """Raised when an app's interpreter is too old."""

    def __init__(self, python: str, version: str, oldest: str) -> None:
        super().__init__(
            f"{python} is Python {version}; an app needs {oldest} or newer. Choose another with --python"
        )


class AppVariableError(UsageError):
    """Raised when an environment variable of an app has no value, or no name."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"--env{name and ' ' + name}: {reason}. Write NAME=VALUE, or NAME to pass on your own value; or put such "
            "lines into an --env-file"
        )


class EnvFileError(UsageError):
    """Raised when a file of environment variables is invalid. The message contains no value."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        super().__init__(
            f"--env-file {_place(path, line)}: {reason}. Write one variable per line: NAME=VALUE, NAME='the value'"
        )


class HeaderFileError(UsageError):
    """Raised when a file of headers is invalid. The message contains no value."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        super().__init__(
            f"--header-file {_place(path, line)}: {reason}. Write one header per line: Name: value"
        )


class HeaderError(UsageError):
    """Raised when a header for every request is invalid. The message omits its value, which may be a secret."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"--header{name and ' ' + name}: {reason}")


class WithheldHeaderError(UsageError):
    """Raised when a request needs a header whose value was a secret and was not stored."""

    def __init__(self, request: str, name: str) -> None:
        super().__init__(
            f"request {request}: the value of {name} is a secret and was not stored; pass it again: "
            f"--header '{name}: …'"
        )


class WithheldRequestError(UsageError):
    """Raised when a request needs a part that was a secret and was not stored."""

    def __init__(self, request: str, field: str) -> None:
        super().__init__(
            f"request {request}: its {field} contains a secret that was not stored (•••). Pass the value itself: "
            "on the command line (--request), or in a file of requests (--requests)"
        )


class WithheldAnswerError(UsageError):
    """Raised when a simulated third party needs a response body that was a secret and was not stored."""

    def __init__(self, variable: str) -> None:
        super().__init__(
            f"--upstream {variable}: its body contains a secret that was not stored (•••). Pass the body itself: "
            f"--upstream '{variable}=…,body:@answer.json'"
        )


class NoStackFitsError(UsageError):
    """Raised when no stack, or no named stack, can serve an app."""

    def __init__(
        self, app: str, interfaces: Sequence[str], stacks: Sequence[str], known: Sequence[str]
    ) -> None:
        how = " or ".join(interfaces)
        if stacks:
            others = ", ".join(known)
            sentence = (
                f"{app} needs a server for {how}, which {', '.join(stacks)} is not. Servers for it: {others}"
            )
        else:
            sentence = f"no stack serves an app through {how}"
        super().__init__(sentence)


class AppNotServedError(VelodromeError):
    """Raised when a stack cannot serve an app. `tried`: its server was started, so the app may be the cause."""

    def __init__(
        self, app: str, stack: str, reason: str, last_lines: Sequence[str] = (), *, tried: bool = True
    ) -> None:
        self.tried = tried
        output = quote_lines(last_lines, 4)
        cure = f"{_newline(output)}{HANGS}" if UNFINISHED.search(reason) else ""
        super().__init__(
            f"{app} could not be served, so nothing was measured. On {stack}: {reason}.{output}{cure}"
        )


HANGS = (
    "Check what it waits for: if it is a database or another service, that this runs (--setup, --env); or use a "
    "request that is answered sooner: --request 'GET /path'"
)


class AppAnswersWrongError(UsageError):
    """Raised when an app's response to a configured request is not the expected one.

    `third_parties` are the variables of those that are simulated for it.
    """

    def __init__(
        self,
        app: str,
        stack: str,
        reason: str,
        last_lines: Sequence[str] = (),
        third_parties: Sequence[str] = (),
    ) -> None:
        self.reason = reason
        output = quote_lines(last_lines, 4)
        super().__init__(
            f"{app} does not respond correctly to the configured requests, so nothing was measured. On {stack}: "
            f"{reason}.{output}{_newline(output)}{_cure(reason, third_parties)}"
        )


class TooSlowError(UsageError):
    """Raised when an app takes so long for a request that its examination would not fit into the budget. Seconds."""

    def __init__(self, app: str, each_s: float, needed_s: float, left_s: float) -> None:
        super().__init__(
            f"{app} takes {quantity.duration(each_s)} for a request that is alone: the screens take about "
            f"{quantity.duration(needed_s)}, and {quantity.duration(left_s)} are left of the budget. Give more time "
            f"(--budget {_minutes(needed_s)}m), or a request that is answered sooner: --request 'GET /path'"
        )


def _minutes(screens_s: float) -> int:
    """Return a budget for screens that take so long, and for experiments behind them."""
    return max(5, math.ceil(4 * screens_s / 60))


def _cure(reason: str, third_parties: Sequence[str]) -> str:
    """Return what to do about a response that is not the expected one."""
    if "grpc-status" in reason:
        return "Call a method that it has: --request 'POST /package.Service/Method {\"id\": 1}'"
    status = status_in(reason)
    if status.startswith("5"):
        return f"{_of_failure(third_parties)}; {_expect(status)}"
    if status.startswith("3"):
        return _of_redirection(reason, status)
    if status == "400":
        return (
            "It rejects the request as invalid. An app that checks its host (ALLOWED_HOSTS of Django) needs one of its "
            "own: --header 'Host: shop.example'; otherwise request something it has: --request 'GET /path'"
        )
    if status in ("401", "403"):
        return (
            "It requires authentication: --header 'Authorization: …' or --header 'Cookie: …' (for POST to Django a "
            f"csrftoken, and the same as X-CSRFToken); {_expect(status)}"
        )
    return (
        "Request something it has, with the method and the body that it takes: --request 'GET /path', "
        f"--request 'POST /path @body.json'; {_expect(status)}"
    )


def status_in(reason: str) -> str:
    """Return the status of the response that a server was refused for; empty: it was refused for something else."""
    found = re.search(r"\bstatus ([1-5]\d\d)\b", reason)
    return found[1] if found else ""


def _expect(status: str) -> str:
    return f"if that is the correct response, declare it: --request 'GET /path -> {status}'"


def _of_redirection(reason: str, status: str) -> str:
    target = re.search(r"to «([^»]*)»", reason)
    place = target[1] if target else ""
    if place.startswith("https:"):
        cure = "It requires https: declare it, as a proxy would: --header 'X-Forwarded-Proto: https'"
    else:
        path = place if place.startswith("/") else "/there"
        cure = f"It redirects: request the target of the redirect, --request 'GET {path}'"
    return f"{cure}; {_expect(status)}"


def _of_failure(third_parties: Sequence[str]) -> str:
    needs = "The app itself fails. Pass on the variables it needs with --env NAME, and start what it needs with --setup"
    if not third_parties:
        return needs
    names = " and ".join(third_parties)
    return (
        f"{needs}. The URL in {names} is that of a simulated third party: if the app parses its responses, give their "
        f"body: --upstream '{third_parties[0]}=latency:50ms,body:@answer.json'"
    )


class CommandFailedError(VelodromeError):
    """Raised when the user's own command before the race fails."""

    def __init__(self, option: str, command: str, how: str, last_lines: Sequence[str] = ()) -> None:
        super().__init__(
            f"{option} '{command}' failed ({how}), so nothing was measured.{quote_lines(last_lines, 4)}"
        )


class TeardownInterruptedError(VelodromeError):
    """Raised when repeated interrupts ended the user's own command after the race."""

    exit_code = 130

    def __init__(self, command: str, times: int, before: str = "") -> None:
        self.command, self.times = command, times
        first = f"{before.rstrip('.')}. " if before else ""
        super().__init__(
            f"{first}--teardown '{command}' was ended by interrupt number {times}: what it removes may still exist. "
            "Run it by hand"
        )


class AppNotFoundError(UsageError):
    """Raised when an app is an object that no imported module holds, so that no server can import it."""

    def __init__(self, app: str) -> None:
        super().__init__(
            f"{app} is in no module, so a server process cannot import it. Assign it at the top level of a module, or "
            "name it as 'module:attribute'; if a function creates it, such as that of a fixture, name the function: "
            "'shop:create_app'"
        )


class AppInTestError(UsageError):
    """Raised when only a test file holds an app, and the file needs velodrome, which no server process can import."""

    def __init__(self, app: str, file: str, attribute: str) -> None:
        super().__init__(
            f"{app} is '{attribute}' of {file} and of no other module. A server process cannot import that file, "
            "because it imports velodrome. Move the app to a module of its own; or name the function that creates it, "
            "as 'shop:create_app' or \"shop:create_app('test')\""
        )


class AppInProgramError(UsageError):
    """Raised when only the running program holds an app: importing it would run the program again."""

    def __init__(self, app: str, file: str, attribute: str) -> None:
        stem = file.rpartition("/")[2].removesuffix(".py")
        super().__init__(
            f"{app} is '{attribute}' of {file}, the running program, and of no other module. Move it to a module of "
            "its own; or, if everything that the program does is under if __name__ == '__main__', write "
            f"'{stem}:{attribute}'"
        )


class GitError(UsageError):
    """Raised when git fails, or is not installed."""

    def __init__(self, command: str, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"git {command}: {reason}. To compare two revisions, the app must be in a git repository"
        )


class RevisionError(UsageError):
    """Raised when a name is no revision, or no revision of this app."""

    CURE = "Name a commit, branch or tag: velodrome diff HEAD~1 HEAD --app …"

    def __init__(self, revision: str, reason: str, cure: str = CURE) -> None:
        super().__init__(f"{revision}: {reason}. {cure}")


class NotFromRevisionError(UsageError):
    """Raised when the app of a revision is imported from elsewhere: both sides would be the same code."""

    def __init__(self, app: str, revision: str, where: str) -> None:
        super().__init__(
            f"{app} at {revision}: the import finds {where}, which is not part of the revision, so both sides would "
            "run the same code. Perhaps it is installed with pip install -e. Put the revision's source folder first, "
            "such as --env PYTHONPATH=src"
        )


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"\n    {line}" for line in lines]


def _between(lines: Sequence[str]) -> str:
    """Return last lines for the middle of a message, which goes on below them."""
    return f"{quote_lines(lines, 4)}\n " if lines else ""


def _newline(output: str) -> str:
    return "\n  " if output else " "


def _place(path: str, line: int) -> str:
    return f"{path}, line {line}" if line else path


def _arguments(names: Sequence[str]) -> str:
    return f"the argument {names[0]}" if len(names) == 1 else f"the arguments {', '.join(names)}"
