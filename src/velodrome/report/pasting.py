"""What of a recommendation is to be pasted: the command line, and the files that say the same."""

from velodrome.model.tuning import Recommendation
from velodrome.report import deployment
from velodrome.report.deployment import File, Full, Wishes


def command_line(found: Recommendation) -> str:
    """Return the command line to deploy; empty where there is none."""
    return deployment.command_line(found.command, _wishes(found)) if found.command else ""


def files(found: Recommendation) -> tuple[File, ...]:
    """Return the files to paste; none where there is no command line."""
    return deployment.files(found.command, _wishes(found)) if found.command else ()


def server_that_keeps_workers(found: Recommendation) -> str:
    """Return the server that cannot be told to replace a worker, where one would have to be; else nothing."""
    if not found.command or found.growth is None or deployment.replaces_workers(found.command):
        return ""
    return deployment.server_of(found.command)


def _wishes(found: Recommendation) -> Wishes:
    cpus, growth = found.limits.cpus, found.growth
    return Wishes(
        cpus if isinstance(cpus, int) else None,
        found.limits.memory_bytes,
        Full(growth.requests_to_restart, growth.bytes_to_restart) if growth else None,
        found.python or deployment.PYTHON,
        found.cwd or deployment.FOLDER,
        found.variables,
    )
