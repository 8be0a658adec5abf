"""The messages are those of `helloworld.proto`: compiled by a real protoc, and alike on the wire in both libraries."""

import os
import subprocess
from pathlib import Path

import pytest

from velodrome.guest import catalog
from velodrome.guest.grpc.greeter import PROTO
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.model.errors import EnvironmentFailedError
from velodrome.run.environments import environment, guest_tree

TOOLS = ("grpcio-tools==1.85.1",)

COMPILE = """
import sys
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools.protoc import main
from velodrome.guest.grpc.greeter import file_descriptor, protobuf_messages

proto, target = sys.argv[1:]
assert main(["", "-I" + proto.rpartition("/")[0], "--descriptor_set_out=" + target, proto]) == 0
[compiled] = FileDescriptorSet.FromString(open(target, "rb").read()).file
compiled.ClearField("source_code_info")
for message in compiled.message_type:
    for field in message.field:
        field.ClearField("json_name")  # of use to nobody here, and generated code leaves it out as well
assert compiled == file_descriptor(), "%s\\n\\n%s" % (compiled, file_descriptor())
assert compiled.SerializeToString() == file_descriptor().SerializeToString()
"""

PROTOBUF = """
from velodrome.guest.grpc.greeter import protobuf_messages
made = protobuf_messages()
again = protobuf_messages()
assert again.request is made.request, "the second time it makes others"
write = lambda message: message.SerializeToString()
read = lambda cls, data: cls.FromString(data)
"""
BETTERPROTO = """
from velodrome.guest.grpc.greeter import betterproto_messages
made = betterproto_messages()
write = bytes
read = lambda cls, data: cls().parse(data)
"""
WRITE = """
for cls, fields in (
    (made.request, {"name": "Zoë", "sleep_millisecond": 300, "body": b"abc"}),
    (made.request, {"name": "", "sleep_millisecond": -1, "body": b""}),
    (made.reply, {"message": "Hello, world!", "body": b"x" * 200}),
    (made.reply, {}),
):
    message = cls(**fields)
    data = write(message)
    print(data.hex())
    back = read(cls, data)
    assert {name: getattr(back, name) for name in fields} == fields
"""
"""What protobuf's encoding says of these: https://protobuf.dev/programming-guides/encoding/"""
WRITTEN = [
    "0a045a6fc3ab10ac021a03616263",
    "10ffffffffffffffffff01",
    "0a0d48656c6c6f2c20776f726c642112c801" + "78" * 200,
    "",
]


def run(python: Path, program: str, *arguments: str) -> str:
    env = {"PYTHONPATH": str(guest_tree.export()), "PATH": os.environ["PATH"], "PYTHONNOUSERSITE": "1"}
    command = [str(python), "-W", "error", "-c", program, *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_descriptor_is_what_protoc_makes_of_the_proto(tmp_path: Path) -> None:
    def nothing(launch: Launch) -> Process:
        return Process(())

    with_protoc = Stack("protoc", "", "", "grpc", "sync", nothing, requires=TOOLS, python=(3, 10))
    try:
        python = environment.environment_for(with_protoc).python
    except EnvironmentFailedError as error:
        pytest.skip(f"there is no protoc to be had here: {error}")
    run(python, COMPILE, str(PROTO), str(tmp_path / "compiled"))


@pytest.mark.parametrize(("stack", "library"), [("grpc-threads", PROTOBUF), ("grpclib", BETTERPROTO)])
def test_both_libraries_write_the_same_bytes(stack: str, library: str) -> None:
    python = environment.environment_for(catalog.stack(stack)).python
    assert run(python, library + WRITE).splitlines() == WRITTEN
