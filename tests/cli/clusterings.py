"""Helpers that create clusterings and read them from files."""

import json

import h5py

from conftest import run_clpipe


def cluster(*args, cwd, code=0):
    """Runs `clpipe cluster` and returns its JSON report, or the completed process if `code` is not 0."""
    result = run_clpipe("cluster", *args, "--json", "-", cwd=cwd)
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout) if code == 0 else result


def stored(path, name="kmeans"):
    """The datasets and the attributes of a stored clustering."""
    with h5py.File(path, "r") as file:
        group = file["clusters"][name]
        return ({key: group[key][:] for key in group},
                {key: value.decode() if isinstance(value, bytes) else value
                 for key, value in group.attrs.items()})
