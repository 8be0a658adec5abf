"""The command line: one file a command, thin. A file here with a `command` attribute is a command."""
