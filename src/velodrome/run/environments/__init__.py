"""What a contestant is made of: an interpreter, an environment by uv from locked packages, a copy of the guest tree.

All of it is kept and used again; `locks/` holds what ships. How fast an interpreter computes is measured here too.
"""
