"""A user's own gRPC servicer stands on the servers that are there for it, called as its `.proto` describes."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.run.apps.theirs import SHOP, python_with
from tests.usecases.served import standing

from velodrome.judge.deploying import deploy_app
from velodrome.model.app import Content, Request
from velodrome.model.errors import AppAnswersWrongError, BadOptionError
from velodrome.model.trial import Contestant
from velodrome.run.servers import fresh_port
from velodrome.usecases.apps import AppSpec, lab_for, look, stacks_for

PROTO = "shop.proto"
CALL = Request(
    "cart", "/shop.Shop/Cart", "POST", body=Content('{"id": 7}'), expect_body=Content('{"text": "cart 7"}')
)


@pytest.fixture(scope="module")
def python() -> str:
    return python_with("grpcio==1.76.0", "grpcio-tools==1.76.0")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, python: str) -> Path:
    folder = tmp_path_factory.mktemp("rpc")
    for name in (PROTO, "rpc.py"):
        shutil.copy(SHOP / name, folder)
    compiled = ["-m", "grpc_tools.protoc", "-I.", "--python_out=.", "--grpc_python_out=.", PROTO]
    subprocess.run([python, *compiled], cwd=folder, check=True)
    return folder


def app_spec(app: str, python: str, shop: Path, *requests: Request) -> AppSpec:
    return AppSpec(app, python, str(shop), requests=requests or (CALL,), proto=str(shop / PROTO))


@pytest.mark.parametrize(
    ("app", "stack"),
    [("rpc:Shop", "grpc-threads"), ("rpc:AwaitingShop", "grpc-aio"), ("rpc:add_to_server", "grpc-threads")],
)
def test_a_servicer_stands(app: str, stack: str, python: str, shop: Path) -> None:
    spec = app_spec(app, python, shop)
    found = look(spec)
    assert found.form == "servicer"
    lab = lab_for(spec)
    assert stack in stacks_for(found, lab)
    with standing(found, Contestant(stack), lab) as booted:
        assert booted.environment.packages["grpcio"] == "1.76.0"
    port = fresh_port()
    pasted = deploy_app(found, Contestant(stack), lab.stacks[stack], found.packages, port=port)
    source = pasted.partition("<<'END'\n")[2].partition("\nEND")[0]
    (shop / "serve.py").write_text(source)
    assert answer_as_pasted(python, shop, port) == "cart 7"


CLIENT = """
import sys, grpc, shop_pb2, shop_pb2_grpc
channel = grpc.insecure_channel("127.0.0.1:" + sys.argv[1])
grpc.channel_ready_future(channel).result(20)
print(shop_pb2_grpc.ShopStub(channel).Cart(shop_pb2.CartRequest(id=7), timeout=10).text)
"""


def answer_as_pasted(python: str, shop: Path, port: int) -> str:
    """Run the pasted program and return what it answers to the call."""
    with subprocess.Popen([python, "serve.py"], cwd=shop) as server:
        try:
            client = [python, "-c", CLIENT, str(port)]
            return subprocess.run(client, cwd=shop, capture_output=True, text=True, check=True).stdout.strip()
        finally:
            server.kill()


def test_another_answer_than_the_right_one_is_reported(python: str, shop: Path) -> None:
    other = Request("cart", CALL.path, "POST", body=CALL.body, expect_body=Content('{"text": "cart 8"}'))
    spec = app_spec("rpc:Shop", python, shop, other)
    with (
        pytest.raises(AppAnswersWrongError, match="answers wrongly"),
        standing(look(spec), Contestant("grpc-threads"), lab_for(spec)),
    ):
        pass


def test_a_servicer_without_its_description_is_refused(python: str, shop: Path) -> None:
    with pytest.raises(BadOptionError, match=r"--proto : a gRPC servicer needs its \.proto file"):
        look(AppSpec("rpc:Shop", python, str(shop), requests=(CALL,)))
    with pytest.raises(
        BadOptionError, match="needs exactly one call, and these are 2: --request 'POST /package"
    ):
        look(app_spec("rpc:Shop", python, shop, CALL, CALL))
    with pytest.raises(BadOptionError, match="called by its method"):
        look(app_spec("rpc:Shop", python, shop, Request("cart", "/cart")))
    with pytest.raises(BadOptionError, match="a status and a part of the answer cannot be checked"):
        look(app_spec("rpc:Shop", python, shop, replace(CALL, expect_status=201)))
