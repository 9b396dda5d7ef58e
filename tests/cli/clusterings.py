"""Clusterings: made, and as they are stored."""

import json

import h5py

from conftest import run_clpipe


def cluster(*args, cwd, code=0):
    """The report of `clpipe cluster`; what the program left where it ends with another code."""
    result = run_clpipe("cluster", *args, "--json", "-", cwd=cwd)
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout) if code == 0 else result


def stored(path, name="kmeans"):
    """Arrays and attributes of a clustering."""
    with h5py.File(path, "r") as file:
        group = file["clusters"][name]
        return ({key: group[key][:] for key in group},
                {key: value.decode() if isinstance(value, bytes) else value
                 for key, value in group.attrs.items()})
