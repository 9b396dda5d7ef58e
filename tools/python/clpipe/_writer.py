"""Changes of a file, which the program makes: it writes a new file and renames it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterable, Optional, Sequence, Union

import numpy

from clpipe._errors import Error

PathLike = Union[str, "os.PathLike[str]"]


def _run(arguments: Sequence[str], words: Dict[str, str]) -> None:
    """words: what options that messages advise are called here."""
    program = os.environ.get("CLPIPE") or shutil.which("clpipe")
    if not program:
        raise Error("the program clpipe is not on the PATH; the environment variable CLPIPE can name it")
    try:
        result = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except OSError as error:
        raise Error(f"cannot run {program}: {error.strerror}") from error
    if result.returncode != 0:
        lines = os.fsdecode(result.stderr).splitlines() or [f"exit status {result.returncode}"]
        line = lines[-1][len("clpipe: "):] if lines[-1].startswith("clpipe: ") else lines[-1]
        for option, word in words.items():
            line = line.replace(option, word)
        raise Error(line, result.returncode)


def _operand(file: PathLike) -> str:
    """A file name that is no option."""
    name = os.fspath(file)
    return f"./{name}" if name.startswith("-") else name


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
        arguments = ["import", _operand(file), f"{name}={matrix}", "-q"]
        if paths is not None:
            names = Path(scratch) / "paths"
            names.write_bytes(b"".join(os.fsencode(path) + b"\0" for path in paths))
            arguments += ["--paths", str(names)]
        if allow_missing:
            arguments.append("--allow-missing")
        if replace:
            arguments.append("--force")
        _run(arguments, {"--force": "replace=True", "--allow-missing": "allow_missing=True",
                         "--paths": "paths"})


def remove(file: PathLike, *names: str, dependents: bool = False) -> None:
    """Removes clusterings, imported features or neighbours: "clusters/NAME", "features/NAME",
    "neighbours/NAME" (clpipe remove). dependents: also what was made from a removed feature."""
    if names:
        _run(["remove", _operand(file), *names, "-q", *(["--force"] if dependents else [])],
             {"--force": "dependents=True"})


def rename(file: PathLike, old: str, new: str) -> None:
    """Gives a clustering another name (clpipe rename)."""
    _run(["rename", _operand(file), old, new, "-q"], {})
