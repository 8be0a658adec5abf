"""The commands `velodrome` and `python -m velodrome`: forget the folder they are started in, then begin.

Nothing may be imported above `main` but what the interpreter has when it has started.
"""

import os
import sys


def main() -> None:
    """Run the command line; ends the process."""
    forget_start_folder()
    from velodrome.cli.main import main as begin  # noqa: PLC0415 - a file in the start folder would be imported

    begin()


def forget_start_folder() -> None:
    """Take the folder this is started in off `sys.path`: what lies there is the user's and not to be run by us.

    It is there by `python -m`, or by an empty or relative entry of PYTHONPATH. An absolute entry is the user's word,
    and so is the folder velodrome itself lies in.
    """
    try:
        here = os.getcwd()
    except OSError:  # it was removed: there is nothing in it
        return
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.environ.get("PYTHONPATH") else []
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    kept = {home, *(entry for entry in entries if os.path.isabs(entry))}
    if not sys.flags.safe_path and sys.path[0] in ("", here) and here not in kept:
        del sys.path[0]
    meant = {os.path.abspath(entry) for entry in entries if not os.path.isabs(entry)} - kept
    sys.path[:] = [entry for entry in sys.path if entry not in meant]


if __name__ == "__main__":
    main()
