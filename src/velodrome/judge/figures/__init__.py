"""The figures a claim may rest on, one file a family: from a cell's measurements to a number block by block."""
