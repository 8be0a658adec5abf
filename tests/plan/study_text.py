"""The beginning of a study file, to which a test adds its claims."""

BASE = """\
contestants = ["uvicorn", {stack = "gunicorn-sync", name = "sync", workers = 2}]
[[questions]]
recipe = "hello"
loads = [
  {connections = 40, duration = 1},
  {connections = 9, requests = 1000},
  {connections = 40, duration = 1, idle = 95},
]
[[experiments]]
kind = "canary"
"""
