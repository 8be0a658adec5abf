"""grpclib's server on uvloop."""

from velodrome.guest.grpc.processes import command
from velodrome.guest.interface import GRPCLIB
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks.grpclib import PROGRAM


def _command(launch: Launch) -> Process:
    return command(PROGRAM, launch, "--loop=uvloop")


stack = Stack(
    name="grpclib-uvloop",
    title="grpclib · uvloop",
    about="gRPC in pure Python on an event loop in C, a task for each call, at most 100 on a connection; "
    "while one awaits the others run.",
    interface="grpclib",
    concurrency="tasks",
    command=_command,
    requires=(*GRPCLIB, "uvloop==0.23.0"),
    knobs={"workers": 1, "backlog": 2048},
    python=(3, 10),
)
