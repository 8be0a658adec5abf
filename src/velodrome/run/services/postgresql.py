"""PostgreSQL. Debian keeps its programs out of PATH, a folder for each major version."""

import signal
from pathlib import Path

from velodrome.run.services.database import Kind, Plan, Site, program

USER = "velodrome"
VERSIONS = Path("/usr/lib/postgresql")


def folders(versions: Path = VERSIONS) -> list[Path]:
    """Return where its programs may be, beside PATH; the newest version first."""
    found = [folder for folder in versions.glob("*/bin") if folder.parent.name.isdigit()]
    return sorted(found, key=lambda folder: int(folder.parent.name), reverse=True)


def plan(site: Site) -> Plan:
    """Return how to start it: `initdb` makes the cluster and the login."""
    server, initdb = (program(name, folders=folders()) for name in ("postgres", "initdb"))
    data = str(site.folder / "data")
    settings = {
        "listen_addresses": site.host,
        "port": site.port,
        "unix_socket_directories": "",
        "max_connections": 1000,
        "shared_buffers": "64MB",
        "dynamic_shared_memory_type": "mmap",  # a file in its folder: nothing in /dev/shm outlives a SIGKILL
        # Nothing is forced to the disk: see `database.py`.
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
        "autovacuum": "off",  # it would run in the midst of some loads and not of others
        "log_min_messages": "warning",
    }
    options = [f"-c{key}={value}" for key, value in settings.items()]
    return Plan(
        first=(
            (
                initdb,
                f"--pgdata={data}",
                f"--username={USER}",
                f"--pwfile={site.folder / 'password'}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
                "--no-instructions",
            ),
        ),
        then=(server, "-D", data, *options),
        files={"password": site.password},
        url=f"postgresql://{USER}:{site.password}@{site.host}:{site.port}/postgres",
        stop_signal=int(signal.SIGQUIT),  # «immediate»: takes its shared memory down, saves nothing
    )


service = Kind(
    "postgresql", "PostgreSQL", "postgresql://user:password@host/database", plan, "postgresql", ("postgres",)
).service()
