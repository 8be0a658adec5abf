"""The third party of calls over gRPC: a real server, the stack `grpc-aio`, which answers when its request says."""

from types import TracebackType
from typing import Self

from velodrome.guest import catalog
from velodrome.guest.grpc.greeter import PEER
from velodrome.guest.recipe import GRPC_PEER, GRPC_VARIABLE
from velodrome.model.errors import CompanionFailedError
from velodrome.run.environments.environment import environment_for
from velodrome.run.machine.limits import Bounds
from velodrome.run.servers import Server, Serving, fresh_port
from velodrome.run.services.service import Service, Surroundings, run_guest
from velodrome.run.supervision.ward import Exit

STACK = "grpc-aio"
TITLE = "the gRPC server that is called"
START_S = 30.0
STOP_S = 5.0


class Peer:
    """A gRPC server of ours."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        stack = catalog.stack(STACK)
        self._environment = environment_for(stack)
        port = fresh_port(surroundings.host)
        serving = Serving(
            stack, PEER, self._environment.python, surroundings.guest_tree, port, surroundings.host
        )
        self._server = Server(serving, Bounds("nothing"), surroundings.cpus)

    @property
    def url(self) -> str:
        """Its address, as gRPC writes it: `host:port`."""
        return f"{self._server.serving.host}:{self._server.serving.port}"

    @property
    def pid(self) -> int:
        """Its first process."""
        return self._server.pid

    def ready(self) -> str:
        """Wait until it has answered a call; return the version of its library."""
        arguments = ("velodrome.guest.grpc.peers", self.url, str(START_S))
        answered = run_guest(self._environment.python, arguments, {}, self._surroundings, self._server.exit)
        if isinstance(answered, Exit) or answered.trouble:
            trouble = answered.sentence if isinstance(answered, Exit) else answered.trouble
            raise CompanionFailedError(TITLE, f"it has not answered: {trouble}", self._server.last_lines())
        return f"grpcio {self._environment.packages['grpcio']}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop(STOP_S)


def _install(surroundings: Surroundings) -> None:
    environment_for(catalog.stack(STACK))


service = Service(GRPC_PEER, GRPC_VARIABLE, _install, Peer)
