"""Profiles: a sampling profiler beside a server under load, in a heat of its own that nothing is ranked by."""
