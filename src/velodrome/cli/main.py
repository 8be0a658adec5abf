"""Finds the requested command, runs it, and turns errors into one sentence and an exit code.

What is raised is named by where it is raised. What nobody foresaw ends here, with code 3 and its traceback in a file:
code 1 would say that a claim or a threshold failed.

Exit codes: 0 fine, 1 a claim or threshold failed, 2 usage or configuration, 3 the lab itself could not run,
4 it is undecided whether a threshold failed, 130 interrupted.
"""

import os
import sys

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Sequence

ALGEBRA_THREADS = "OPENBLAS_NUM_THREADS"


class Heavy:
    """Around the imports of a command that bring numerical libraries: `with heavy: from velodrome.usecases import …`.

    OpenBLAS starts as many threads as there are CPUs; where it may not, it prints so and sends us SIGINT. The variable
    is gone again afterwards: processes that are started later are not to see it. Nothing that a module defines is
    garbage: to look for some, during the imports and later, takes a tenth of them.
    """

    def __enter__(self) -> None:
        import gc  # noqa: PLC0415 - a load does without

        self._unset = ALGEBRA_THREADS not in os.environ
        os.environ.setdefault(ALGEBRA_THREADS, "1")
        gc.disable()

    def __exit__(self, *_error: object) -> None:
        import gc  # noqa: PLC0415

        gc.freeze()
        gc.enable()
        if self._unset:
            os.environ.pop(ALGEBRA_THREADS, None)


heavy = Heavy()


def print_version() -> None:
    """Print the version."""
    from importlib.metadata import version  # noqa: PLC0415 - a load does without

    print(f"velodrome {version('velodrome')}")


def _at_once(arguments: "Sequence[str]") -> bool:
    """Run a load whose command line has nothing wrong with it; returns whether it had not.

    typer takes longer to import than all the rest of a load's start.
    """
    if arguments[:1] != ["load"]:
        return False
    from velodrome.cli import _quick, load  # noqa: PLC0415

    given = _quick.read(load.command, arguments[1:])
    if given is not None:
        load.command(**given)
    return given is not None


def main() -> None:
    """Run the command line; ends the process."""
    _open_closed()
    _print_whatever()
    try:
        _run(sys.argv[1:])
        _flush()
    except SystemExit as end:
        code = _code_of(end)
    except BaseException as error:
        code = _report_error(error)
    else:
        code = 0
    _drop_output()
    if _interrupted():
        sys.modules["velodrome.run.supervision.undisturbed"].deaf()
    # What ended a thread has been reported; the interruption of this thread was its consequence.
    sys.exit(_thread_ended or code)


def _open_closed() -> None:
    """Give what is closed (`>&-`) a place: else the next socket would get its number, and what is printed."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.open(
                os.devnull, os.O_RDWR
            )  # the lowest number that is free, which is that of the closed descriptor
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - to the end


def _print_whatever() -> None:
    """Print letters that the locale lacks as `?`: none of them is worth a result that took minutes to measure."""
    for stream in (sys.stdout, sys.stderr):
        if (stream.encoding or "utf-8").lower() != "utf-8" and (
            reconfigure := getattr(stream, "reconfigure", None)
        ):
            reconfigure(errors="replace")


def _run(arguments: "Sequence[str]") -> None:
    command = next((word for word in arguments if not word.startswith("-")), None)
    if _at_once(arguments):
        return
    if arguments in (["--version"], ["version"]):  # typer takes longer to import than this takes
        print_version()
        return
    if "--help" not in arguments:
        _watch_threads()
    if command != "load" and "--help" not in arguments:  # which ends its span, and tells of it
        from velodrome.run.supervision import undisturbed  # noqa: PLC0415

        undisturbed.stoppable_to_the_end()
    from velodrome.cli._application import application  # noqa: PLC0415 - a load does without

    application()(prog_name="velodrome")


def _code_of(end: SystemExit) -> "int | str | None":
    """Return what a command ends with, once all that it printed is written."""
    try:
        _flush()
    except Exception as error:
        return end.code or _report_error(error)
    return end.code


def _flush() -> None:
    """Write what was printed: Python would find at its end that it cannot, and end with 120."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            from velodrome.model.errors.lab import TerminalError  # noqa: PLC0415

            which = "output" if name == "stdout" else "error"
            raise TerminalError(f"standard {which}", error.strerror or str(error)) from error


def _drop_output() -> None:
    """Throw away what nobody takes, so that the interpreter does not try it once more."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _report_error(error: BaseException) -> int:
    """Say in a sentence what ended the command; return its exit code."""
    if type(error).__name__ == "WrappedError" and error.__cause__ is not None:
        error = error.__cause__
    code = getattr(error, "exit_code", None)
    if code is not None:
        _say(str(error))
        return int(code)
    # A terminal that has gone refuses what is written as the command ends: it was still interrupted.
    if isinstance(error, KeyboardInterrupt) or _interrupted():
        _say("interrupted")
        return 130
    if isinstance(error, BrokenPipeError) and _reader_gone():
        return 141
    return _unforeseen(error)


def _unforeseen(error: BaseException) -> int:
    try:
        from velodrome.run import faults  # noqa: PLC0415 - only where something failed

        found = faults.as_velodrome_error(error)
    except BaseException as again:
        _say(
            f"{type(error).__name__}: {error}. Its traceback could not be kept ({type(again).__name__}: {again})"
        )
        return 3
    _say(str(found))
    return found.exit_code


def _say(sentence: str) -> None:
    try:
        from velodrome.model.secrets import mask  # noqa: PLC0415 - a load does without
        from velodrome.report.typeset import LINES, visible  # noqa: PLC0415

        sentence = visible(mask(sentence), LINES)
    except Exception:  # the message is printed even where masking is broken, without what a terminal obeys
        sentence = "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in sentence)
    try:
        print(f"velodrome: {sentence}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        return  # nobody listens any more


def _interrupted() -> bool:
    signals = sys.modules.get("velodrome.run.supervision.undisturbed")
    return signals is not None and signals.interrupts() > 0


def _reader_gone() -> bool:
    """Whether nobody reads standard output any more (`velodrome stacks | head`): another pipe's end is a fault."""
    import select  # noqa: PLC0415

    poll = select.poll()
    poll.register(1, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


_thread_ended = 0
"""The exit code of what ended a thread that nobody listens to."""


def _watch_threads() -> None:
    """End the command, in order, with what ended one of its threads: nobody else would notice."""
    import signal  # noqa: PLC0415 - a load does without
    import threading  # noqa: PLC0415

    def ended(thread: "threading.ExceptHookArgs") -> None:
        global _thread_ended  # noqa: PLW0603 - one a process
        if thread.exc_value is not None and not isinstance(thread.exc_value, SystemExit):
            _thread_ended = _report_error(thread.exc_value)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.excepthook = ended


if __name__ == "__main__":
    main()
