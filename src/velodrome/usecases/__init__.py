"""What a user asks of the track, one file a question: plan, run and judge in one call, from plain data to plain data.

The command line and the Python API are thin faces of what is here; nothing here prints.
"""
