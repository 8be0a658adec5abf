"""`--database mariadb=mysql://…`: databases that the user brings, instead of having them started."""

from collections.abc import Iterable

from velodrome.guest import client
from velodrome.guest.recipe import EMBEDDED
from velodrome.model import secrets
from velodrome.model.errors import BadOptionError


def databases_of(options: Iterable[str]) -> dict[str, str]:
    """Return URLs by the name of the database. Raises BadOptionError."""
    known = [name for name in client.databases() if name != EMBEDDED]
    found = {}
    for option in options:
        name, _, url = option.partition("=")
        if name not in known:
            reason = f"no database is called '{name}'; write one of these as name=URL: {', '.join(known)}"
            raise BadOptionError("--database", name, reason)
        if "://" not in url:
            raise BadOptionError("--database", name, f"needs a URL, such as {name}=scheme://host/database")
        secrets.of_text(url)
        found[name] = url
    return found
