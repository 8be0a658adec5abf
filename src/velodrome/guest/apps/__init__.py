"""A user's own app, in its own interpreter: found, told what it is, and made where a server cannot make it itself."""
