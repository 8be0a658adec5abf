"""Takes an upload of 1 MB. Right: status 200 and 84 bytes of `FILLER` once all 1,000,000 bytes were read.

A body of any other length is answered with status 400, after it has been read as well.
"""

from velodrome.guest.recipe import Body, ReadBody, Recipe

recipe = Recipe(
    "upload-1mb", "takes an upload of 1 MB", (ReadBody(), Body(84)), method="POST", upload_bytes=1_000_000
)
