"""What a server, its sockets and the machine use while a load runs: read at moments, then made facts of a span."""
