"""Settings of gunicorn, of which there are none: what a race sets stands on the command line."""
