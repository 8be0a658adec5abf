"""grpcio's asyncio server on uvloop."""

from functools import partial

from velodrome.guest.grpc import processes
from velodrome.guest.grpc.processes import command
from velodrome.guest.interface import GRPCIO
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks.grpc_aio import PROGRAM


def _command(launch: Launch) -> Process:
    return command(PROGRAM, launch, "--loop=uvloop")


stack = Stack(
    name="grpc-aio-uvloop",
    title="grpc.aio · uvloop",
    about="grpcio's C core under an event loop in C, a task for each call; while one awaits others run.",
    interface="grpc_aio",
    concurrency="tasks",
    command=_command,
    requires=(*GRPCIO, "uvloop==0.23.0"),
    knobs={"workers": 1},
    python=(3, 10),
    script=partial(processes.on_loop, "uvloop"),
)
