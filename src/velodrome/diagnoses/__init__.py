"""The catalogue of `velodrome doctor`: one file, one fault; each says what makes it likely and what proves it."""
