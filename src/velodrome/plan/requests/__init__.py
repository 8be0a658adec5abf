"""The requests of a load, from each form in which users have them: lines, a file, an access log, an OpenAPI document.

Each file here reads one form and returns plain `Request`s; `sources` chooses between them.
"""
