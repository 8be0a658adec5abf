"""Redis, or Valkey, which continues it under its old licence."""

from velodrome.run.services.database import Kind, Plan, Site, program


def plan(site: Site) -> Plan:
    """Return how to start it: nothing is saved."""
    settings = {
        "bind": site.host,
        "port": site.port,
        "requirepass": site.password,
        "dir": site.folder,
        "save": '""',
        "appendonly": "no",
        "maxclients": 10_000,
        "tcp-backlog": 1000,
        "loglevel": "warning",
    }
    return Plan(
        then=(program("redis-server", "valkey-server"), str(site.folder / "redis.conf")),
        files={"redis.conf": "".join(f"{key} {value}\n" for key, value in settings.items())},
        url=f"redis://:{site.password}@{site.host}:{site.port}/0",
    )


service = Kind("redis", "Redis", "redis://host:6379/0", plan, "redis-server", ("redis",)).service()
