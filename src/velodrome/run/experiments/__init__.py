"""Kinds of bounded experiment, one file each: questions that no load answers, such as «does this hang?»."""
