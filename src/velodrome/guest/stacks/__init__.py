"""The stacks that ship: one file, one server under one concurrency model (`stack = Stack(...)`)."""
