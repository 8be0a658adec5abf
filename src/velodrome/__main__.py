"""`python -m velodrome` is the command `velodrome`."""

from velodrome.cli.main import main

if __name__ == "__main__":
    main()
