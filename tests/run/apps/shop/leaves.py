import sys

print("usage: leaves [options]")
sys.exit(3)
