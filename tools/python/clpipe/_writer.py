"""Changes of a file, which the program makes: it writes a new file and renames it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Iterable, Optional, Union

import numpy

from clpipe._errors import Error
from clpipe._reader import PathLike
from clpipe._run import call


def write_feature(file: PathLike, name: str, values: Union[PathLike, Any], *,
                  paths: Optional[Iterable[Union[str, bytes, "os.PathLike[str]"]]] = None,
                  allow_missing: bool = False, replace: bool = False) -> None:
    """Stores rows as the feature `name` (clpipe import).

    values: a two-dimensional array, float32 or what float32 can hold, without masked values; or FILE.npy
    or FILE.h5:/dataset.
    paths: of each row (relative to the source, with the source, or absolute); None: row i is image i.
    allow_missing: images without a row get NaN. replace: an imported feature of that name.
    Raises Error; the file is then as it was.
    """
    with tempfile.TemporaryDirectory(prefix="clpipe-") as scratch:
        if isinstance(values, (str, os.PathLike)):
            matrix = os.fspath(values)
        else:
            matrix = str(Path(scratch) / "array.npy")
            masks: Any = numpy.ma
            array = masks.asarray(values)  # of a list of masked arrays, too
            if masks.is_masked(array):
                raise Error("values are masked, and what lies under a mask is no value: fill them, or give "
                            "the other rows with paths and allow_missing=True", 2)
            array = numpy.asarray(array)
            if array.dtype == object:
                raise Error("the values are objects, not numbers", 2)
            numpy.save(matrix, array)
        options = {"allow_missing": allow_missing, "force": replace, "common": {"quiet": True}}
        if paths is not None:
            names = Path(scratch) / "paths"
            names.write_bytes(b"".join(os.fsencode(path) + b"\0" for path in paths))
            options["paths"] = names
        call("import", (file, f"{name}={matrix}"), options,
             {"--force": "replace=True", "--allow-missing": "allow_missing=True", "--paths": "paths"})


def remove(file: PathLike, *names: str, dependents: bool = False) -> None:
    """Removes clusterings, imported features or neighbours: "clusters/NAME", "features/NAME",
    "neighbours/NAME" (clpipe remove). dependents: also what was made from a removed feature."""
    if names:
        call("remove", (file, *names), {"force": dependents, "common": {"quiet": True}},
             {"--force": "dependents=True"})


def rename(file: PathLike, old: str, new: str) -> None:
    """Gives a clustering another name (clpipe rename)."""
    call("rename", (file, old, new), {"common": {"quiet": True}})
