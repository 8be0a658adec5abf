"""A user's own app from outside: looked at in its interpreter, and the commands its user runs around a race."""
