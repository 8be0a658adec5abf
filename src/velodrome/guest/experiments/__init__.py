"""Programs of bounded experiments: each runs in an environment under test and prints one line of JSON."""
