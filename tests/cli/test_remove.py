"""clpipe remove and clpipe rename: only the given clusterings and imported features change."""

import json
import os
import shutil

import h5py
import numpy
import pytest

from conftest import CLPIPE, check_one_error, digest


@pytest.fixture
def file(finished, tmp_path):
    return shutil.copy(finished, tmp_path / "photos.h5")


def add_feature(clpipe, file, tmp_path, columns=8):
    rows = numpy.random.default_rng(2).normal(size=(13, columns)).astype("f4")
    numpy.save(tmp_path / "x.npy", rows)
    result = clpipe("import", file, "x=x.npy")
    assert result.returncode == 0, result.stderr
    return rows


def everything(file):
    """All values and attributes, except HDF5's attributes of dimension scales, and checksums, which clpipe
    verify checks."""
    found = {}

    def visit(name, item):
        if name.startswith(("checksum", "piece_")):
            return
        found[name] = item[...].tobytes() if isinstance(item, h5py.Dataset) and item.dtype.kind != "O" \
            else None
        found[f"{name}@"] = {key: str(value) for key, value in item.attrs.items()
                             if key not in ("DIMENSION_LIST", "REFERENCE_LIST")}
    with h5py.File(file) as f:
        f.visititems(visit)
    return found


def scales(file):
    with h5py.File(file) as f:
        return {f"{item.name}:{i}": item.dims[i][0].name for group in ("clusters", "features")
                for item in all_datasets(f.get(group)) for i in range(item.ndim)}


def all_datasets(group):
    found = []
    if group is not None:
        group.visititems(lambda name, item: found.append(item) if isinstance(item, h5py.Dataset)
                         else None)
    return found


def test_copying_without_kernel_support(clpipe, file, tmp_path):
    """The kernel does not copy between files, as on some network file systems; the matrix has several megabytes."""
    library = CLPIPE.parent / "tests" / "faults.so"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    rows, copy = add_feature(clpipe, file, tmp_path, 60000), shutil.copy(file, tmp_path / "copy.h5")
    assert clpipe("remove", file, "clusters/kmeans").returncode == 0
    note = tmp_path / "note"
    result = clpipe("remove", copy, "clusters/kmeans", env={
        "LD_PRELOAD": library, "CLPIPE_FAULT": "copy * 1+ 95", "CLPIPE_FAULT_NOTE": note})
    assert result.returncode == 0 and note.exists(), result.stderr
    assert digest(copy) == digest(file) and clpipe("verify", copy).returncode == 0
    with h5py.File(copy) as f:
        assert numpy.array_equal(f["features/x"][:], rows)


@pytest.mark.deep
def test_add_and_remove_leaves_the_same_file(clpipe, file, tmp_path):
    """A feature, clusterings (one of them chosen from a range, which has more groups) and their scales."""
    assert clpipe("remove", file, "kmeans").returncode == 0
    with h5py.File(file) as f:
        assert "clusters" not in f and "rank" not in f
    before = digest(file)
    add_feature(clpipe, file, tmp_path)
    for name, feature, k in (("a", "x", "2:4"), ("b", "x+rgb_8x8x8", 2), ("c", "rgb_8x8x8", 3)):
        assert clpipe("cluster", file, "--feature", feature, "-k", k, "--name", name).returncode == 0
    assert digest(file) != before
    result = clpipe("remove", file, "clusters/a", "/clusters/b", "c", "features/x")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0] == f"removed clusters/a from {file}"
    assert digest(file) == before
    assert clpipe("verify", file).returncode == 0


def test_everything_else_is_kept(clpipe, file, tmp_path):
    add_feature(clpipe, file, tmp_path)
    assert clpipe("cluster", file, "--feature", "x", "-k", 2, "--name", "x").returncode == 0
    before = everything(file)
    report = json.loads(clpipe("remove", file, "clusters/x", "--json", "-").stdout)
    assert [entry["name"] for entry in report["removed"]] == ["clusters/x"]
    gone = {name for name in before if "clusters/x" in name or name.rstrip("@") in
            ("cluster_x", "iteration_x")}
    assert everything(file) == {name: value for name, value in before.items() if name not in gone}
    assert clpipe("cluster", file, "--feature", "x", "-k", 2, "--name", "x").returncode == 0
    assert everything(file) == before


def test_dependents(clpipe, file, tmp_path):
    add_feature(clpipe, file, tmp_path)
    for name, feature in (("a", "x"), ("b", "x+rgb_8x8x8")):
        assert clpipe("cluster", file, "--feature", feature, "-k", 2, "--name", name).returncode == 0
    before = file.read_bytes()
    check_one_error(clpipe("remove", file, "features/x"), 2, "clusters/a, clusters/b", "features/x",
                    "--force")
    assert file.read_bytes() == before
    assert clpipe("remove", file, "features/x", "--force").returncode == 0
    with h5py.File(file) as f:
        assert list(f["clusters"]) == ["kmeans"] and "feature_x" not in f
    assert clpipe("verify", file).returncode == 0


def test_space_is_freed(clpipe, file, tmp_path):
    """4 MiB of rows that are not at the end of the file: their blocks are freed, in later copies too."""
    add_feature(clpipe, file, tmp_path, columns=80000)
    assert clpipe("cluster", file, "--feature", "rgb_8x8x8", "-k", 3, "--name", "later").returncode == 0
    large = file.stat().st_blocks
    assert clpipe("remove", file, "x").returncode == 0
    small = file.stat().st_blocks
    if small > large - 7000 and file.stat().st_size > 4 << 20:
        pytest.skip("the file system cannot free parts of files")
    assert small < large - 7000
    assert clpipe("rename", file, "later", "again").returncode == 0
    assert file.stat().st_blocks < large - 7000
    assert clpipe("verify", file).returncode == 0


def test_list(clpipe, file, tmp_path):
    add_feature(clpipe, file, tmp_path)
    result = clpipe("remove", file)
    assert result.returncode == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["clusters/kmeans", "features/x"]
    listed = json.loads(clpipe("remove", file, "--json", "-").stdout)
    assert [(entry["name"], entry["feature"]) for entry in listed] == \
        [("clusters/kmeans", "rgb_8x8x8"), ("features/x", "x")]
    assert listed[1]["bytes"] == 13 * 8 * 4


def test_names(clpipe, file, tmp_path):
    add_feature(clpipe, file, tmp_path)
    assert clpipe("rename", file, "kmeans", "x").returncode == 0
    before = file.read_bytes(), sorted(os.listdir(tmp_path))
    check_one_error(clpipe("remove", file, "x"), 2, "clusters/x or features/x")
    check_one_error(clpipe("remove", file, "none"), 2, "no 'none'", "clusters/x, features/x")
    check_one_error(clpipe("remove", file, "rgb_8x8x8"), 2, "computed from the images")
    check_one_error(clpipe("rename", file, "none", "y"), 2, "/clusters/none", "only x")
    check_one_error(clpipe("rename", file, "x", "a b"), 2, "'a b'")
    check_one_error(clpipe("rename", file, "x", "x"), 2, "already holds clusters 'x'")
    check_one_error(clpipe("rename", file, "x"), 2, "rename --help")
    check_one_error(clpipe("remove", "none.h5", "x"), 2, "there is no file none.h5")
    assert (file.read_bytes(), sorted(os.listdir(tmp_path))) == before


def test_rename(clpipe, file):
    assert clpipe("cluster", file, "--feature", "rgb_8x8x8", "-k", "2:4", "--name", "swept").returncode \
        == 0
    before = everything(file)
    axes = scales(file)
    for old, new in (("kmeans", "by-colour"), ("clusters/swept", "clusters/kmeans")):
        assert clpipe("rename", file, old, new).returncode == 0
    assert clpipe("verify", file).returncode == 0

    def renamed(text):
        for group in ("clusters/", "cluster_", "iteration_", "sweep_"):
            text = text.replace(f"{group}kmeans", f"{group}by-colour").replace(
                f"{group}swept", f"{group}kmeans")
        return text
    assert everything(file) == {renamed(name): value for name, value in before.items()}
    assert scales(file) == {renamed(name): renamed(axis) for name, axis in axes.items()}
    result = clpipe("cluster", file, "--feature", "rgb_8x8x8", "-k", 3, "--name", "by-colour")
    assert "up to date" in result.stdout or "already" in result.stdout or result.returncode == 0


def test_neighbours(clpipe, file):
    """Neighbours, as clpipe similar --all stores them, are a group with its own scales."""
    before = digest(file)
    if clpipe("similar", file, "--all", "-n", 3, "--feature", "rgb_8x8x8").returncode == 2:
        pytest.skip("this build has no clpipe similar")
    assert "neighbours/rgb_8x8x8" in clpipe("remove", file).stdout
    assert clpipe("remove", file, "neighbours/rgb_8x8x8").returncode == 0
    assert digest(file) == before
    assert clpipe("verify", file).returncode == 0
