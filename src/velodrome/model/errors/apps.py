"""A user's own app cannot be looked at, served or asked."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

from velodrome.model.errors.root import UsageError, VelodromeError


def _tail(lines: Sequence[str]) -> str:
    return "".join(f"\n    {line}" for line in lines)


class AppRaisesError(UsageError):
    """Raised when an app, or what makes it, raises: `lines` are its own traceback, short."""

    def __init__(self, app: str, lines: Sequence[str], cure: str) -> None:
        self.lines = tuple(lines)
        super().__init__(f"{app} does not import:{_tail(lines)}\n  {cure}")


class AppEndsError(UsageError):
    """Raised when the process ends while an app is imported, so that nothing could be told of it."""

    def __init__(self, app: str, how: str, last_lines: Sequence[str] = ()) -> None:
        said = f" Its last lines:{_tail(last_lines)}\n " if last_lines else ""
        super().__init__(
            f"{app} ends the process that imports it ({how}).{said} An app must be importable: put what starts a "
            "server, leaves the process or goes into the background under if __name__ == '__main__'"
        )


class AppHangsError(UsageError):
    """Raised when the import of an app does not come to an end."""

    def __init__(self, app: str, seconds: float, last_lines: Sequence[str] = ()) -> None:
        said = f" Its last lines:{_tail(last_lines)}\n " if last_lines else ""
        super().__init__(
            f"{app} was not imported within {seconds:g} s.{said} If it starts a server of its own there, put that "
            "under if __name__ == '__main__'; if it waits for something, such as a database, see that this answers"
        )


class AppNameError(UsageError):
    """Raised when a module has nothing of the name asked for, or nothing that looks like an app."""

    def __init__(self, app: str, module: str, name: str, known: Sequence[str]) -> None:
        near = get_close_matches(name, known, n=3, cutoff=0.5) if name else []
        if near:
            hint = f"Nearest: {', '.join(near)}"
        elif known:
            more = f" and {len(known) - 8} more" if len(known) > 8 else ""
            hint = f"It has: {', '.join(known[:8])}{more}"
        else:
            hint = "It is empty"
        what = (
            f"has no '{name}'"
            if name
            else "has nothing that is called like an app, such as app or create_app"
        )
        super().__init__(f"{app}: the module {module} {what}. {hint}. Name the app as module:attribute")


class AppPathError(UsageError):
    """Raised when what should name an app cannot be read as a name."""

    def __init__(self, app: str, reason: str) -> None:
        super().__init__(
            f"{app}: {reason}. An app is named module:attribute, such as shop.wsgi:application, or "
            "module:factory('with', 'values')"
        )


class AppUnfitError(UsageError):
    """Raised when what is named is no app: not callable, of no known kind, or a factory that needs arguments.

    `awaited`: it has to be awaited first, and what comes of that only servers that do not await could serve.
    """

    def __init__(self, app: str, told: str, needs: Sequence[str], *, awaited: bool = False) -> None:
        if awaited:
            cure = (
                "which has to be awaited, and only servers of ASGI and of aiohttp do that. Name a function that is not "
                "async; or if it makes an app for one of these, say so: --interface asgi"
            )
        elif needs:
            module, _, name = app.partition(":")
            # Those that are given by name end in `=`.
            values = ", ".join(f"{one}<{one[:-1]}>" if one.endswith("=") else f"<{one}>" for one in needs)
            cure = (
                f"which needs {_arguments([one.rstrip('=') for one in needs])}. If it makes the app, say with what: "
                f"{module}:{name.partition('(')[0]}({values}), or name a function that needs nothing"
            )
        else:
            cure = (
                "which servers cannot call by WSGI, ASGI, or as an application of aiohttp or Tornado. If they can "
                "all the same, say how: --interface wsgi"
            )
        super().__init__(f"{app} is {told}, {cure}")


def _arguments(names: Sequence[str]) -> str:
    return f"the argument {names[0]}" if len(names) == 1 else f"the arguments {', '.join(names)}"


class AppFolderError(UsageError):
    """Raised when the folder an app is to run in is not there."""

    def __init__(self, folder: str, reason: str) -> None:
        super().__init__(f"--cwd {folder}: {reason}. Give the folder that the app's module lies in")


class AppInterpreterError(UsageError):
    """Raised when an app's interpreter is too old for any server to be told to it."""

    def __init__(self, python: str, version: str, oldest: str) -> None:
        super().__init__(
            f"{python} is Python {version}, and an app needs {oldest} or newer here. Give another with --python"
        )


class AppVariableError(UsageError):
    """Raised when an environment variable of an app has no value, or no name."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"--env{name and ' ' + name}: {reason}. Write NAME=VALUE, or NAME to hand on your own; or such lines in "
            "an --env-file"
        )


class EnvFileError(UsageError):
    """Raised when a file of environment variables cannot be read. No value of it is told."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        where = f"{path}, line {line}" if line else path
        super().__init__(
            f"--env-file {where}: {reason}. Write a variable a line: NAME=VALUE, NAME='the value'"
        )


class HeaderFileError(UsageError):
    """Raised when a file of headers cannot be read. No value of it is told."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        where = f"{path}, line {line}" if line else path
        super().__init__(f"--header-file {where}: {reason}. Write a header a line: Name: value")


class HeaderError(UsageError):
    """Raised when a header that every request is to have is none. Its value is not told: it may be a secret."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"--header{name and ' ' + name}: {reason}")


class WithheldHeaderError(UsageError):
    """Raised when requests are to be sent whose headers were withheld where they were written down."""

    def __init__(self, request: str, name: str) -> None:
        super().__init__(
            f"request {request}: the value of {name} is a secret that was not written down; give it again: "
            f"--header '{name}: …'"
        )


class WithheldRequestError(UsageError):
    """Raised when requests are to be sent of which a part was withheld where they were written down."""

    def __init__(self, request: str, field: str) -> None:
        super().__init__(
            f"request {request}: its {field} holds a secret that was not written down (•••). Give the value itself: "
            "on the line (--request), or in a file of requests (--requests)"
        )


class WithheldAnswerError(UsageError):
    """Raised when a third party is to be simulated whose answer was withheld where it was written down."""

    def __init__(self, variable: str) -> None:
        super().__init__(
            f"--upstream {variable}: its body holds a secret that was not written down (•••). Give the body itself: "
            f"--upstream '{variable}=…,body:@answer.json'"
        )


class NoStackFitsError(UsageError):
    """Raised when no stack, or none of those asked for, can serve an app."""

    def __init__(
        self, app: str, interfaces: Sequence[str], asked: Sequence[str], known: Sequence[str]
    ) -> None:
        how = " or ".join(interfaces)
        if asked:
            said = f"{app} is served through {how}, which {', '.join(asked)} cannot do. These can: {', '.join(known)}"
        else:
            said = f"no stack serves an app through {how}"
        super().__init__(said)


class AppNotServedError(VelodromeError):
    """Raised when a stack does not get an app to answer. `tried`: its server was started, so it may be the app."""

    def __init__(
        self, app: str, stack: str, reason: str, last_lines: Sequence[str] = (), *, tried: bool = True
    ) -> None:
        self.tried = tried
        said = f" Its last lines:{_tail(last_lines)}" if last_lines else ""
        cure = f"{_newline(said)}{HANGS}" if HANGING in reason else ""
        super().__init__(
            f"{app} could not be served, so nothing was measured. On {stack}: {reason}.{said}{cure}"
        )


HANGING = "does not finish an answer"
HANGS = (
    "See what it waits for; where that is a database or another service, see that this answers (--setup, --env), or "
    "ask for something that is answered sooner: --request 'GET /path'"
)


def _newline(said: str) -> str:
    return "\n  " if said else " "


class AppAnswersWrongError(UsageError):
    """Raised when an app answers what it is to be asked with something else than a right answer.

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
        said = f" Its last lines:{_tail(last_lines)}" if last_lines else ""
        super().__init__(
            f"{app} does not answer what it is to be asked, so nothing was measured. On {stack}: {reason}.{said}"
            f"{_newline(said)}{_other(reason, third_parties)}"
        )


def _other(reason: str, third_parties: Sequence[str]) -> str:
    """Return what to do about an answer that is not right."""
    if "grpc-status" in reason:
        return "Ask for a call it has: --request 'POST /package.Service/Method {\"id\": 1}'"
    found = re.search(r"\bstatus ([1-5]\d\d)\b", reason)
    status = found[1] if found else ""
    if status.startswith("5"):
        return f"{_of_failure(third_parties)}; if it is right so, say it: --request 'GET /path -> {status}'"
    if status.startswith("3"):
        return _of_redirection(reason, status)
    if status == "400":
        return (
            "It takes the request for a wrong one. An app that knows its hosts (ALLOWED_HOSTS of Django) is asked by "
            "one of them: --header 'Host: shop.example'; else ask for something it has: --request 'GET /path'"
        )
    if status in ("401", "403"):
        return (
            "It wants to know who asks: --header 'Authorization: …' or --header 'Cookie: …' (to POST to Django a "
            "csrftoken, and the same as X-CSRFToken); or say that it is right so: "
            f"--request 'GET /path -> {status}'"
        )
    return "Ask for something it has: --request 'GET /path', or say which status is right: --request 'GET /path -> 404'"


def _of_redirection(reason: str, status: str) -> str:
    told = re.search(r"leads to «([^»]*)»", reason)
    place = told[1] if told else ""
    if place.startswith("https:"):
        cure = "It wants https: say that it is, as a proxy would: --header 'X-Forwarded-Proto: https'"
    else:
        path = place if place.startswith("/") else "/there"
        cure = f"It leads elsewhere: ask for where it leads, --request 'GET {path}'"
    return f"{cure}; if it is right so, say it: --request 'GET /path -> {status}'"


def _of_failure(third_parties: Sequence[str]) -> str:
    needs = "The app itself fails. What it needs is handed on by --env NAME and started by --setup"
    if not third_parties:
        return needs
    names = " and ".join(third_parties)
    return (
        f"{needs}. Behind {names} stands a simulated third party: where the app reads its answers, say what they are: "
        f"--upstream '{third_parties[0]}=latency:50ms,body:@answer.json'"
    )


class CommandFailedError(VelodromeError):
    """Raised when the user's own command before the race fails."""

    def __init__(self, option: str, command: str, how: str, last_lines: Sequence[str] = ()) -> None:
        said = f" Its last lines:{_tail(last_lines)}" if last_lines else ""
        super().__init__(f"{option} '{command}' failed ({how}), so nothing was measured.{said}")


class TeardownInterruptedError(VelodromeError):
    """Raised when the user's own command after the race was ended by one interrupt too many."""

    exit_code = 130

    def __init__(self, command: str, times: int, before: str = "") -> None:
        self.command, self.times = command, times
        first = f"{before.rstrip('.')}. " if before else ""
        super().__init__(
            f"{first}--teardown '{command}' was ended by interrupt number {times}: what it takes down may still be "
            "there. Run it by hand"
        )
