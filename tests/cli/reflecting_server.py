"""Run in an environment with grpcio-reflection: serves a recipe over gRPC, and describes it to whoever asks.

python -P reflecting_server.py CERTIFICATE KEY    prints two ports: in the clear, and over TLS
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from grpc_reflection.v1alpha import reflection

from velodrome.guest.grpc.greeter import SERVICE
from velodrome.guest.interfaces.grpc import app

certificate, key = (Path(path).read_bytes() for path in sys.argv[1:])
server = grpc.server(ThreadPoolExecutor(4), options=(("grpc.so_reuseport", 0),))
app(server)
reflection.enable_server_reflection((SERVICE, reflection.SERVICE_NAME), server)
port = server.add_insecure_port("127.0.0.1:0")
secure = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, certificate)]))
server.start()
print(port, secure, flush=True)
sys.stdin.read()
server.stop(None)
