"""The gRPC service that a recipe is served as: `helloworld.proto`, its messages, and its third party.

`greeter.py` says by which of its methods a recipe is called; the interfaces `grpc`, `grpc_aio` and `grpclib`
serve it. Nothing here needs protoc: messages are made when a server starts, as generated code makes them.
"""
