"""What also runs inside the interpreter under test: Python 3.7 syntax, standard library only at import."""
