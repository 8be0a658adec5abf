"""MariaDB."""

import signal

from velodrome.run.services.database import Kind, Plan, Site, program

USER = "velodrome"


def plan(site: Site) -> Plan:
    """Return how to start it: `mariadb-install-db` makes the system tables, a first script the login."""
    server, installer = program("mariadbd", "mysqld"), program("mariadb-install-db")
    data = site.folder / "data"
    storage = (
        f"--datadir={data}",
        # No log of changes is forced to the disk, no page either: see `database.py`.
        "--innodb-flush-method=nosync",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-log-file-size=16M",
        "--innodb-buffer-pool-size=64M",
    )
    return Plan(
        # `--no-defaults` comes first: the system's own configuration is for the system's own server.
        first=(
            (
                installer,
                "--no-defaults",
                *storage,
                "--auth-root-authentication-method=socket",
                "--skip-test-db",
            ),
        ),
        then=(
            server,
            "--no-defaults",
            *storage,
            f"--bind-address={site.host}",
            f"--port={site.port}",
            f"--socket={site.folder / 'socket'}",
            f"--pid-file={site.folder / 'pid'}",
            f"--init-file={site.folder / 'first.sql'}",
            "--skip-name-resolve",
            "--max-connections=2000",
            "--back-log=1000",
            "--log-warnings=0",
        ),
        files={
            "first.sql": (
                f"CREATE DATABASE {USER};\n"
                f"CREATE USER {USER}@'%' IDENTIFIED BY '{site.password}';\n"
                f"GRANT ALL ON {USER}.* TO {USER}@'%';\n"
            )
        },
        url=f"mysql://{USER}:{site.password}@{site.host}:{site.port}/{USER}",
        stop_signal=int(signal.SIGKILL),  # an orderly end takes a second, to save what is thrown away
    )


service = Kind(
    "mariadb", "MariaDB", "mysql://user:password@host/database", plan, "mariadb-server", ("mysql",)
).service()
