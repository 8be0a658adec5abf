"""What every stack of gunicorn's gevent worker shares."""

from __future__ import annotations

from velodrome.guest.stack import Launch, Process
from velodrome.guest.stacks import _gunicorn

# The worker imports packaging, which is installed only for those who ask for `gunicorn[gevent]`.
REQUIRES = (*_gunicorn.REQUIRES, "gevent==26.9.0", "packaging==26.3")
OLDEST_PYTHON = (3, 10)
SERVER = _gunicorn.SERVER
CONNECTIONS = _gunicorn.CONNECTIONS


def command(launch: Launch) -> Process:
    """Return the command line. The worker itself patches the standard library, before it loads the app."""
    return _gunicorn.serve(launch, "gevent", "--worker-connections=%s" % launch.text("connections"))
