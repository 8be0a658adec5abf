"""uv: where it is, and how it is run from here, in an environment that has nothing of the user's but what it needs."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile

from uv import find_uv_bin

from velodrome.model import amounts
from velodrome.model.errors import AccountError, BadOptionError, UvMissingError
from velodrome.run.account import acting
from velodrome.run.supervision.ward import Order, Ward

LAST_LINES = 200
"""Of what uv says on standard error: more than it ever tells about one failure."""
SHOWN_LINES = 6
LOG = "uv_distribution::source=debug"
"""What uv is to log: which source package it is at. A build tells its name else only in its second half."""
LOGGED = "DEBUG "
BEGINS = ("Preparing metadata for:", "Building:", "Building")
ENDS = ("Prepared metadata for:", "Finished building:", "Built")
LIMIT = "VELODROME_INSTALL_LIMIT"
"""Environment variable: how long one run of uv may take, such as `45m`."""
LONGEST_S = 1800.0
"""The limit where none is set. Large packages are built from source for ten minutes; a build that asks a question
on its terminal waits for ever.
"""

FOREIGN = (
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "__PYVENV_LAUNCHER__",
    "UV_PYTHON",
)
"""Variables by which the environment velodrome itself runs in would leak into interpreters that it asks."""

SEEN = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "TZ", "LANG", "LANGUAGE", "TMPDIR", "TMP", "TEMP", "NETRC"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "SSL_CLIENT_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"),
        *("NIX_LD", "NIX_LD_LIBRARY_PATH", "NIX_SSL_CERT_FILE"),
    }
)
"""What uv is given of our environment, with all of `SEEN_BEGIN`: where things are, how to reach the index, and uv's
own settings, which may hold the credentials of an index.
"""
SEEN_BEGIN = ("LC_", "XDG_", "UV_")
UNSEEN = frozenset(
    {
        *("UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_PROJECT", "UV_PROJECT_ENVIRONMENT", "UV_WORKING_DIR"),
        *("UV_WORKING_DIRECTORY", "UV_ENV_FILE", "UV_TARGET", "UV_PREFIX"),
        *("UV_NO_VERIFY_HASHES", "UV_VENV_SEED", "UV_VENV_CLEAR", "UV_PUBLISH_TOKEN"),
        *("UV_PUBLISH_PASSWORD", "UV_PUBLISH_USERNAME"),
    }
)
"""Settings of uv that would lead it to other environments than ours, or that are for something else."""
BUILDS = frozenset(
    {
        *("CC", "CXX", "CPP", "AR", "AS", "LD", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "ARCHFLAGS"),
        *("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "PKG_CONFIG", "MAKEFLAGS"),
        *("CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "RUSTFLAGS", "CARGO_BUILD_JOBS"),
        *("MACOSX_DEPLOYMENT_TARGET", "SDKROOT", "DEVELOPER_DIR", "SOURCE_DATE_EPOCH"),
        *("MYSQLCLIENT_CFLAGS", "MYSQLCLIENT_LDFLAGS"),
    }
)
"""What compilers read, with all of `BUILDS_BEGIN`: given where packages may be built."""
BUILDS_BEGIN = ("PKG_CONFIG_", "CMAKE_")


@dataclass(frozen=True)
class Said:
    """How uv ended, and what it said."""

    returncode: int | None
    """None: it did not end in time, and was ended."""
    stdout: str
    stderr: str
    """Its last lines."""

    @property
    def built(self) -> tuple[str, ...]:
        """What it was building when it ended, as `mysqlclient==2.2.8`."""
        at: dict[str, None] = {}
        for line in self.stderr.splitlines():
            said, _, package = line.strip().removeprefix(LOGGED).rpartition(" ")
            if said in BEGINS:
                at[package] = None
            elif said in ENDS:
                at.pop(package, None)
        return tuple(at)

    @property
    def last_lines(self) -> tuple[str, ...]:
        """What a person is to read of it."""
        lines = [line for line in self.stderr.splitlines() if line.strip() and not line.startswith(LOGGED)]
        return tuple(lines[-SHOWN_LINES:])


@cache
def find_uv() -> str:
    """Return the path of uv, installed with velodrome or else on PATH. Raises UvMissingError."""
    try:
        return os.fspath(find_uv_bin())
    except FileNotFoundError:
        found = shutil.which("uv")
        if found is None:
            raise UvMissingError from None
        return found


def quiet_environment() -> dict[str, str]:
    """Return this process's environment without what would lead an interpreter astray."""
    return {key: value for key, value in os.environ.items() if key not in FOREIGN}


def installer_environment(builds: bool) -> dict[str, str]:
    """Return what uv sees of this process's environment: no variable that is not for it, which may be a secret.

    `builds`: whether it may build packages, whose build code sees the same.
    """
    names = SEEN | BUILDS if builds else SEEN
    begin = (*SEEN_BEGIN, *BUILDS_BEGIN) if builds else SEEN_BEGIN
    found = {
        key: value
        for key, value in os.environ.items()
        if (key in names or key.startswith(begin)) and key not in UNSEEN
    }
    account = acting()
    if account is None:
        return found
    # Folders of root's own are closed to them; a copy can become root's, a link into their cache cannot.
    theirs = {key: value for key, value in found.items() if not key.startswith(("XDG_", "UV_CACHE_DIR"))}
    cache = {} if os.path.isdir(account.home) else {"UV_NO_CACHE": "1"}
    return {**theirs, **account.variables, "UV_LINK_MODE": "copy", **cache}


def limit_s() -> float:
    """Return how long one run of uv may take. Raises BadOptionError for a limit that cannot be read."""
    told = os.environ.get(LIMIT)
    if not told:
        return LONGEST_S
    try:
        return amounts.seconds(told)
    except ValueError as error:
        raise BadOptionError(LIMIT, told, str(error)) from error


def run_uv(arguments: Sequence[str], cwd: Path, *, builds: bool = True, keeps: Sequence[int] = ()) -> Said:
    """Run uv and return what it said; the caller judges the exit status. Ends when velodrome does.

    `cwd` is a folder of velodrome's own, so that no project file near the user's decides what uv does;
    the user's own configuration of uv (mirrors, certificates) counts. `builds`: whether packages may be built.
    `keeps` are file descriptors that stay open as long as anything of it lives. Raises BadOptionError.
    """
    longest_s = limit_s()
    program, account = find_uv(), acting()
    if account is not None and (closed := account.closed(program)):
        cure = "install velodrome where that user can read it, or name another user with --user"
        raise AccountError(
            account.name, f"{program}, which installs servers, lies in {closed}, closed to them", cure
        )
    argv = (program, "--no-progress", "--color=never", *arguments)
    order = Order(argv, installer_environment(builds) | {"RUST_LOG": LOG}, str(cwd), user=account)
    with TemporaryFile() as said, Ward(order, said.fileno(), keeps) as ward:
        ended = ward.wait(longest_s)
        ward.stop(0.0 if ended is None else 10.0)
        said.seek(0)
        out = said.read().decode(errors="replace")
        return Said(ended.code if ended else None, out, "\n".join(ward.tail.lines(LAST_LINES)))
