"""Methods of HTTP."""

SAFE = ("GET", "HEAD", "OPTIONS")
"""They change nothing and have no body (RFC 9110, section 9.2.1): what is taken from logs and documents unless more are
wanted.
"""
ALL = (*SAFE, "POST", "PUT", "PATCH", "DELETE")
