"""What is asked of an app, in each form its users have it in: a line, a file, an access log, an OpenAPI document.

One file a form; each returns plain `Request`s.
"""
