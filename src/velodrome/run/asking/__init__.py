"""One question to a server before any load, and what came back: right, wrong and how, or not yet.

Over gRPC and WebSockets by the engine, over HTTP/1.1 also by hand, to see the head as the server wrote it.
"""
