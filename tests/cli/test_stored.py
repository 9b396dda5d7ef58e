"""Features stored as float16 and uint8: values follow docs/features.md, all commands read them, updates keep
them, and the type is part of the identity."""

import shutil
import sys

import h5py
import numpy
import pytest

from conftest import ROOT, check_one_error, digest, draw_photos, run_clpipe

sys.path.insert(0, str(ROOT / "tools" / "python"))
import clpipe as package  # noqa: E402

SPECS = ["rgb:bins=16,grid=2x2", "h=hsv:normalize=hellinger", "counts=gray:bins=9,normalize=none",
         "dct:fisher=2"]


def clpipe(*args, code=0):
    result = run_clpipe(*args)
    assert result.returncode == code, result.stderr
    return result.stdout


@pytest.fixture
def place(tmp_path, monkeypatch, program):
    """p has 13 images, and wide.h5 has their features as float32."""
    draw_photos(tmp_path / "p")
    monkeypatch.chdir(tmp_path)
    ingest("wide.h5")
    return tmp_path


def ingest(output, *args):
    clpipe("ingest", "p", "-o", output, *[f"--feature={spec}" for spec in SPECS], *args)


def stored(path):
    with h5py.File(path, "r") as file:
        return {name: (values[:], dict(values.attrs)) for name, values in file["features"].items()}


def encode(values, kind, attributes):
    """Encodes float32 values; returns the stored and the decoded values."""
    if values.dtype == numpy.uint32 or kind == "float32":
        return values, values
    if kind == "float16":
        return values.astype("f2"), values.astype("f2").astype("f4")
    zero, scale = float(attributes["zero"]), float(attributes["scale"])
    root = numpy.rint(scale * numpy.sqrt(numpy.abs(values.astype("f8"))))
    code = (zero + numpy.copysign(root, values)).astype("u1")
    t = (code - zero) / scale
    return code, (t * numpy.abs(t)).astype("f4")


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["float16", "uint8"])
def test_values_and_readers(place, kind):
    ingest("x.h5", "--store", kind, "--threads", "1")
    ingest("y.h5", "--store", kind, "--threads", "3")
    assert digest("x.h5") == digest("y.h5") != digest("wide.h5")
    assert "no problems found" in clpipe("verify", "x.h5")
    found = stored("x.h5")
    for name, (values, _) in stored("wide.h5").items():
        codes, read = encode(values, kind, found[name][1])
        assert found[name][0].dtype == codes.dtype
        assert numpy.array_equal(found[name][0], codes), name
        assert (f",store={kind}" in found[name][1]["spec"]) == (name != "counts")
        clpipe("export", "x.h5", "--what", "features", "--feature", name, "--format", "npy", "-o",
               f"{name}.npy")
        assert numpy.array_equal(numpy.load(f"{name}.npy"), read)
        with package.open("x.h5") as file:
            assert file.feature(name).dtype == read.dtype
            assert numpy.array_equal(file.feature(name), read)
            assert numpy.array_equal(file.feature(name, slice(3, 5)), read[3:5])
    assert f"values of {kind}" in clpipe("info", "x.h5")
    # Clustering gives the same result as clustering the decoded values.
    name = "dct_fisher2"
    clpipe("cluster", "x.h5", "-k", "3", "--feature", name)
    clpipe("cluster", f"{name}.npy", "-k", "3", "-o", "r.h5")
    with h5py.File("x.h5", "r") as a, h5py.File("r.h5", "r") as b:
        assert numpy.array_equal(a["clusters/kmeans/labels"], b["clusters/kmeans/labels"])
        assert numpy.array_equal(a["clusters/kmeans/distances"], b["clusters/kmeans/distances"])
    for command in (["similar", "x.h5", "row:0", "--feature", name], ["evaluate", "x.h5"]):
        clpipe(*command)
    clpipe("cluster", f"x.h5:/features/{name}", "-k", "3", "-o", "c.h5")
    with h5py.File("c.h5", "r") as a, h5py.File("r.h5", "r") as b:
        assert numpy.array_equal(a["clusters/kmeans/centroids"], b["clusters/kmeans/centroids"])


@pytest.mark.variations
@pytest.mark.parametrize("kind", ["float16", "uint8"])
def test_updates(place, kind):
    moved = place / "p" / "red"
    shutil.move(moved, place / "hold")
    ingest("x.h5", "--store", kind)
    for name in ("h", "dct_fisher2"):
        clpipe("cluster", "x.h5", "-k", "3", "--feature", name, "--name", name)
    shutil.copy("x.h5", "old.h5")
    shutil.move(place / "hold", moved)
    clpipe("ingest", "p", "-o", "x.h5")
    assert "no problems found" in clpipe("verify", "x.h5")
    # Labels of new rows are computed from their stored values.
    shutil.copy("x.h5", "y.h5")
    for name in ("h", "dct_fisher2"):
        clpipe("assign", "old.h5", "y.h5", "--name", name, "--force")
        with h5py.File("x.h5", "r") as a, h5py.File("y.h5", "r") as b:
            for part in ("labels", "distances"):
                assert numpy.array_equal(a[f"clusters/{name}/{part}"], b[f"clusters/{name}/{part}"])
    result = run_clpipe("ingest", "p", "-o", "x.h5", "--store", "float32")
    check_one_error(result, 2, "--store differs from the features of x.h5")
    clpipe("ingest", "p", "-o", "x.h5", "--store", kind)


@pytest.mark.deep
def test_merged(place):
    parts = []
    for part, output in (("red", "a.h5"), ("blue", "b.h5")):
        clpipe("ingest", f"p/{part}", "-o", output, *[f"--feature={spec}" for spec in SPECS[:2]],
               "--store", "uint8")
        parts.append(stored(output))
    for name, options in (("v.h5", []), ("c.h5", ["--copy"])):
        clpipe("merge", "a.h5", "b.h5", "-o", name, *options)
        assert "no problems found" in clpipe("verify", name)
        for feature, (codes, attributes) in stored(name).items():
            assert numpy.array_equal(codes, numpy.concatenate([part[feature][0] for part in parts]))
            assert attributes["zero"] == 0 and attributes["scale"] == 255
        clpipe("cluster", name, "-k", "2", "--feature", "h")
