"""From a recipe to a handler: one file, one way in which Python code is called by a server."""
