"""Agents on other machines cannot be reached, do not agree, or were lost."""

from __future__ import annotations

from velodrome.model.errors import UsageError, VelodromeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class ClusterMissingError(UsageError):
    """Raised where Dask distributed is not installed."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"agents need Dask distributed, which is not installed ({reason}). Install it: "
            "pip install 'velodrome[cluster]'"
        )


class ClusterAddressError(UsageError):
    """Raised for text that is no address of a coordinator, and no number of agents that one machine carries."""

    def __init__(self, text: str, most: int) -> None:
        super().__init__(
            f"'{text}' is no address of a coordinator; write tls://host:8786, or a number of agents on this machine, "
            f"1 to {most}"
        )


class ClusterKeysError(UsageError):
    """Raised for certificates that are missing, expired or unreadable."""

    def __init__(self, file: str, why: str) -> None:
        super().__init__(
            f"the cluster's certificate {file} cannot be used: {why}. Make new ones in a new folder with "
            "velodrome cluster keys --out FOLDER, copy ca.pem, host.pem and host.key to every host, and name their "
            "folder with --keys"
        )


class KeysThereError(UsageError):
    """Raised where new certificates would be written over others."""

    def __init__(self, file: str) -> None:
        super().__init__(f"{file} is there already, and is not written over; name a new folder with --out")


class PlainTcpError(UsageError):
    """Raised for a plain connection that others than this machine could use."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"{address} is plain TCP: whoever reaches it could run any code as this user. Use tls:// (velodrome "
            "cluster keys makes the certificates), or accept this with --plain-tcp"
        )


class CoordinatorError(VelodromeError):
    """Raised where no coordinator answers, or cannot be begun."""

    def __init__(
        self,
        address: str,
        why: str,
        cure: str = "Start one with: velodrome cluster start (docs/cluster.md)",
    ) -> None:
        super().__init__(f"no coordinator at {address}: {why}. {cure}".strip())


class SshError(VelodromeError):
    """Raised for a host that SSH does not reach, or where nothing of velodrome starts."""

    def __init__(self, host: str, why: str, cure: str) -> None:
        super().__init__(f"{host} over SSH: {why}. {cure}")


class AgentLostError(VelodromeError):
    """Raised for an agent that does not answer."""

    def __init__(self, name: str, address: str, why: str, last: bool = False) -> None:
        self.name, self.why = name, why
        left = ", and no other measured anything" if last else ""
        super().__init__(
            f"agent {name} at {address} was lost: {why}{left}. Look at it with: velodrome cluster --coordinator ADDRESS"
        )


class AgentStartError(VelodromeError):
    """Raised where no agent, or no engine of an agent, can be started on this host."""

    def __init__(
        self,
        why: str,
        cure: str = "Of an agent of root, velodrome and its Python have to lie where every user may read; without root "
        "it needs nothing of the kind",
    ) -> None:
        super().__init__(f"the agent cannot be started: {why.removesuffix('.')}. {cure}".strip())


class AgentEndedError(VelodromeError):
    """Raised on the side of an agent, when its coordinator has gone."""

    def __init__(self, address: str) -> None:
        super().__init__(f"the coordinator {address} has gone, and with it this agent; its load was ended")


class AgentRefusedError(UsageError):
    """Raised for a load that an agent may not carry, or cannot."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"agent {name} does not take the load: {why}")


class AgentsDifferError(UsageError):
    """Raised for agents that would not make one load."""

    def __init__(self, what: str, found: Mapping[str, str]) -> None:
        differences = ", ".join(f"{name} has {value}" for name, value in found.items())
        super().__init__(
            f"agents differ in their {what}, so they would not make one load: {differences}. Nothing was started; "
            "install the same on every host, or leave the odd one out"
        )


class TooFewCpusError(UsageError):
    """Raised for a rate that takes more agents than this machine has CPUs for."""

    def __init__(self, rate: float, agents: int, cpu_us: float, cpus: int) -> None:
        super().__init__(
            f"{rate:,.0f} requests/s take {agents} agents with a CPU each, by what a request took in a short look "
            f"({cpu_us:.1f} µs of CPU), and there are {cpus} CPUs here. Start agents on other hosts with velodrome "
            "agent, and give --agents tls://host:8786 (docs/cluster.md)"
        )


class NoAgentsError(UsageError):
    """Raised where a coordinator has no agents with a role."""

    def __init__(self, address: str, role: str = "load", others: Mapping[str, str] | None = None) -> None:
        there = (
            ""
            if not others
            else f" (there is {', '.join(f'{name} with {roles}' for name, roles in others.items())})"
        )
        super().__init__(
            f"the coordinator {address} has no agents with the role {role}{there}. Start one on each host: velodrome "
            f"agent --coordinator {address} --roles {role}"
        )


class AgentsRefuseRaceError(UsageError):
    """Raised before anything is started for a race that an agent's host cannot run as it is."""

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        super().__init__(f"agent {name} cannot run this: {why}")


class PlacingError(UsageError):
    """Raised before anything is started for hosts that cannot serve, load or answer as they are to."""

    def __init__(self, option: str, value: str, why: str) -> None:
        self.option = option
        super().__init__(f"{option} {value}: {why}".replace(" :", ":"))


class SendingError(UsageError):
    """Raised before anything is started for a folder that cannot be sent to the host that serves it."""

    def __init__(self, folder: str, why: str, cure: str) -> None:
        super().__init__(f"{folder} cannot be sent: {why}. {cure}")


class LoadElsewhereError(VelodromeError):
    """Raised where the server is, for a load that agents on other hosts did not carry."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the load from other hosts came to nothing: {why.removesuffix('.')}")


class ExaminationRefusedError(VelodromeError):
    """Raised for an app that an agent's host did not examine or look at; `exit_code` is that of the error there."""

    def __init__(self, name: str, why: str, exit_code: int) -> None:
        self.name, self.exit_code = name, exit_code
        super().__init__(f"on the host of agent {name}: {why}")


class ExaminersGoneError(VelodromeError):
    """Raised where agents that examine apps are lost, and none is left."""

    def __init__(self, done: int, total: int, why: str) -> None:
        self.done, self.total = done, total
        super().__init__(
            f"the agents that examine are gone ({why}): {done} of {total} examinations are done. Start them again: "
            "velodrome agent, or velodrome cluster start"
        )


class AgentsGoneError(VelodromeError):
    """Raised at the end of a race that lost the agents it needs before it was done; what they measured is kept."""

    exit_code = 3

    def __init__(self, path: str, done: int, total: int | None, why: str) -> None:
        """`total` is None where nobody knew how many there would be."""
        self.path, self.done, self.total = path, done, total
        of_all = f"{done} trials" if total is None else f"{done} of {total} trials"
        super().__init__(
            f"the agents that it needs are gone ({why}), so the race ended early: {of_all} are in "
            f"{path}. Start them again and go on with --resume"
        )
