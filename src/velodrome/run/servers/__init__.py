"""One server under test: a free port, its process with nothing but the guest tree, and when it counts as ready."""
