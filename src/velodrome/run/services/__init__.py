"""Real servers that run beside the server under test because its recipe asks them: databases, a gRPC peer."""
