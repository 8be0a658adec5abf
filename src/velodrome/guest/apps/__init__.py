"""A user's own app, in its own interpreter: found, inspected, and made where a server cannot make it itself."""
