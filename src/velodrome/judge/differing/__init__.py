"""Two sets of blocks of the same cells, before and after a change: what became worse, better, or stayed as it was.

`worlds` and `estimating` are the statistics of one figure, `family` those of all figures of a diff together,
`deciding` turns them into answers, `diffing` is the whole. The method is told in `docs/diff.md`.
"""
