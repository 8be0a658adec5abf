"""The recipes that ship: one file, one behaviour, with what a right answer is (`recipe = Recipe(...)`)."""
