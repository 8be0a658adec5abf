"""What `import velodrome` offers (docs/python.md): each file one question, a thin face of `track` and `judge`."""
