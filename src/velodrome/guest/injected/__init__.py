"""What `velodrome doctor` puts into the processes of a server: treatments, and the heartbeat that watches its loop.

`site/` is on the import path of such a process alone, so that Python imports `sitecustomize` from there before anything
of the app: workers that are spawned or forked have it as well. Nothing is written into the app's folder or packages,
and nothing is left when the process has ended.
"""
