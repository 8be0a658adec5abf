"""Profiles: a sampling profiler beside a server under load, in a server session of its own, which nothing ranks."""
