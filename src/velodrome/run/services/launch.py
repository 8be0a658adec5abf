"""What runs between the warden and a database: makes its folder ready, gives up root, becomes the database.

Run by file path, `python -I -S launch.py`, in the scratch folder that the warden has just made. The plan is in the
environment, because it holds a password and every user can read command lines: a line of JSON with `user` (or
null), `files` (name to content), `first` (command lines to run to their end) and `then` (the command line to become).
Databases refuse to run as root, and a database that does not would write files as root for whoever can log in to it.
"""

import ctypes
import json
import os
import pwd
import signal
import subprocess
import sys
from typing import Any

VARIABLE = "VELODROME_LAUNCH"
PR_SET_PDEATHSIG = 1


def hand_over(folder: str, user: str) -> None:
    """Give the folder and all in it to a user, and become that user for good."""
    entry = pwd.getpwnam(user)
    for path in (folder, *(os.path.join(folder, name) for name in os.listdir(folder))):
        os.chown(path, entry.pw_uid, entry.pw_gid)
    os.setgroups([])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)
    if sys.platform == "linux":  # the kernel forgets it with the change of user; the warden had set it
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def main() -> None:
    """Carry the plan out; exits with status 1 after the output of what failed."""
    plan: dict[str, Any] = json.loads(os.environ.pop(VARIABLE))
    folder = os.getcwd()
    for name, content in plan["files"].items():
        with open(name, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(content)
    if plan["user"]:
        hand_over(folder, plan["user"])
    os.environ["HOME"] = folder
    for argv in plan["first"]:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        if done.returncode:
            sys.stderr.buffer.write(done.stdout)
            sys.exit(f"{os.path.basename(argv[0])} ended with exit status {done.returncode}")
    os.execv(plan["then"][0], plan["then"])  # noqa: S606 - no shell on purpose


if __name__ == "__main__":
    main()
