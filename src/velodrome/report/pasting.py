"""What of a recommendation is to be pasted: the command line, and the files that say the same."""

from velodrome.model.recommendation import Recommendation
from velodrome.report import deployment
from velodrome.report.deployment import File, Wishes


def command_line(found: Recommendation) -> str:
    """Return the command line to deploy; empty where there is none."""
    return deployment.command_line(found.command, _wishes(found)) if found.command else ""


def files(found: Recommendation) -> tuple[File, ...]:
    """Return the files to paste; none where there is no command line."""
    return deployment.files(found.command, _wishes(found)) if found.command else ()


def _wishes(found: Recommendation) -> Wishes:
    cpus = found.limits.cpus
    return Wishes(
        cpus if isinstance(cpus, int) else None,
        found.limits.memory_bytes,
        found.growth.requests_to_restart if found.growth else None,
        found.python or deployment.PYTHON,
        found.cwd or deployment.FOLDER,
    )
