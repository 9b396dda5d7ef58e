"""Reads and extends the files of clpipe.

    with clpipe.open("photos.h5") as f:
        f.images(); f.labels("kmeans"); f.feature("rgb_8x8x8")
    clpipe.write_feature("photos.h5", "clip", vectors)
"""

from clpipe._errors import Error
from clpipe._reader import File, open
from clpipe._writer import remove, rename, write_feature

__all__ = ["Error", "File", "open", "remove", "rename", "write_feature"]
__version__ = "0.3.0"
