"""The simulated third party that recipes call: an engine in a process of its own, on its own CPU."""
