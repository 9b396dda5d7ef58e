"""tools/convert converts files of format 2, which format2.py writes, without loss."""

import os
import shutil
import subprocess
import sys

import h5py
import numpy
import pytest

import format2
from conftest import ROOT, check_one_error, digest, draw_photos, run_clpipe, spoil

FEATURES = ["--feature", "rgb:bins=8x8x8", "--feature", "counts=gray:bins=16,normalize=none", "--thumbnails", "32",
            "--device", "cpu", "-q"]


def convert(*words, cwd):
    return subprocess.run([sys.executable, ROOT / "tools" / "convert", *words], cwd=cwd, text=True, capture_output=True)


def content(path):
    """All values and attributes except those that record when, where and how the file was made."""
    found = {}

    def visit(name, item):
        if name.startswith(("runs", "checksums")) or name.endswith(("inode", "ctime_ns", "directories")) or \
                name.startswith("parts/") and name.endswith(("bytes", "identity")):
            return
        for key, value in item.attrs.items():
            if key not in ("DIMENSION_LIST", "REFERENCE_LIST"):
                found[f"{name}@{key}"] = numpy.asarray(value).tolist()
        if isinstance(item, h5py.Dataset):
            found[name] = (item.dtype.str, item.chunks, item[()].tobytes(),
                           [[scale.name for scale in axis.values()] for axis in item.dims])
    with h5py.File(path) as file:
        file.visititems(visit)
        return {name: value for name, value in found.items() if "/" in name or "@" not in name}


@pytest.fixture(scope="module")
def photos3(tmp_path_factory):
    """a.h5, with unusual names and sidecars, b.h5, and all.h5, which merges both."""
    place = tmp_path_factory.mktemp("three")
    draw_photos(place / "a")
    spoil(place / "a")
    red = (place / "a" / "red" / "03.jpg").read_bytes()
    for name in (b"\xff.jpg", "caf\u00e9.jpg".encode(), b"back\\x41.jpg", b"long" * 50 + b".jpg"):
        with open(os.fsencode(place / "a") + b"/" + name, "wb") as file:
            file.write(red)
    (place / "a" / "red" / "03.json").write_text('{"title": "caf\u00e9"}')
    (place / "a" / "red" / "03.cls").write_text("7")
    draw_photos(place / "b", 7)
    for name in "a", "b":
        result = run_clpipe("ingest", name, "-o", f"{name}.h5", *FEATURES, "--sidecar", cwd=place)
        assert result.returncode in (0, 1), result.stderr
    for name in "a.h5", "all.h5":
        result = run_clpipe("cluster", name, "--feature", "rgb_8x8x8", "-k", 3, "--device", "cpu", cwd=place)
        assert result.returncode == 0, result.stderr
        if name == "a.h5":
            assert run_clpipe("merge", "a.h5", "b.h5", "-o", "all.h5", cwd=place).returncode == 0
    return place


@pytest.fixture
def two(photos3, tmp_path):
    """The same files in format 2, and the photographs."""
    (tmp_path / "two").mkdir()
    for name in "a.h5", "b.h5", "all.h5":
        format2.write(photos3 / name, str(tmp_path / "two" / name))
    for name in "a", "b":
        shutil.copytree(photos3 / name, tmp_path / name)
    return tmp_path


def test_converts_without_loss(clpipe, photos3, two):
    old = two / "two" / "a.h5"
    with h5py.File(old, "r+") as file:
        file["mine/notes"] = ["one", "two"]
        file["images/rating"] = numpy.arange(len(file["images/width"]))
        file["images/rating"].dims[0].attach_scale(file["image"])
        file["link"] = h5py.SoftLink("/mine")
        file["features/rgb_8x8x8"].attrs["remark"] = "checked"
    before = old.read_bytes()
    check_one_error(clpipe("info", "two/a.h5"), 3, "format 2", "tools/convert two/a.h5")
    result = convert("two/a.h5", "-o", "new.h5", cwd=two)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert old.read_bytes() == before
    assert digest(two / "new.h5") == digest(photos3 / "a.h5")
    verified = clpipe("verify", "new.h5")
    assert verified.returncode == 0, verified.stdout
    with h5py.File(two / "new.h5") as file:
        assert file["mine/notes"].asstr()[:].tolist() == ["one", "two"]
        assert file["images/rating"].dims[0][0].name == "/image"
        assert file.get("link", getlink=True).path == "/mine"
        assert file["features/rgb_8x8x8"].attrs["remark"] == "checked"
        assert not file["images/inode"][:].any() and file["images/directories"].asstr()[:].tolist() == [""]
    with h5py.File(two / "new.h5", "r+") as file:
        for name in "mine", "images/rating", "link":
            del file[name]
        del file["features/rgb_8x8x8"].attrs["remark"]
    assert content(two / "new.h5") == content(photos3 / "a.h5")
    # The converted file can be updated.
    again = clpipe("ingest", "a", "-o", "new.h5", "--device", "cpu", "--sidecar")
    assert "nothing new" in again.stdout, again.stderr
    clustered = clpipe("cluster", "new.h5", "--feature", "rgb_8x8x8", "-k", 3, "--device", "cpu")
    assert clustered.returncode == 0 and "up to date" in clustered.stdout
    (two / "a" / "red" / "03.jpg").unlink()
    assert clpipe("ingest", "a", "-o", "new.h5", "--device", "cpu", "--sidecar").returncode == 1
    assert clpipe("verify", "new.h5").returncode == 0


@pytest.mark.deep
def test_merged_with_its_parts(clpipe, photos3, two):
    check_same_directory = convert("two/all.h5", "-o", "two/new.h5", cwd=two)
    assert check_same_directory.returncode == 3 and "another directory" in check_same_directory.stderr
    result = convert("two/all.h5", "-o", "three/all.h5", cwd=two)
    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(os.listdir(two / "three")) == ["a.h5", "all.h5", "b.h5"]
    assert digest(two / "three" / "all.h5") == digest(photos3 / "all.h5")
    assert content(two / "three" / "all.h5") == content(photos3 / "all.h5")
    for name in "a.h5", "b.h5", "all.h5":
        verified = clpipe("verify", f"three/{name}")
        assert verified.returncode == 0, verified.stdout
    assert clpipe("merge", "three/a.h5", "three/b.h5", "-o", "three/again.h5", "--copy").returncode == 0
    assert clpipe("merge", photos3 / "a.h5", photos3 / "b.h5", "-o", "copied.h5", "--copy").returncode == 0
    assert digest(two / "three" / "again.h5") == digest(two / "copied.h5")


@pytest.mark.deep
def test_refused(clpipe, two):
    """A refused conversion leaves no files behind."""
    (two / "notes.txt").write_text("words")
    shutil.copy(two / "two" / "a.h5", two / "bad.h5")
    with h5py.File(two / "bad.h5", "r+") as file:
        file["images/width"][3] += 1
    shutil.copy(two / "two" / "a.h5", two / "odd.h5")
    with h5py.File(two / "odd.h5", "r+") as file:
        file["clusters/kmeans"].attrs["inertia"] = 1e9
    assert convert("two/a.h5", "-o", "three.h5", cwd=two).returncode == 0
    before = sorted(os.listdir(two))
    for words, part in ((["none.h5"], "no file none.h5"), (["notes.txt"], "not an HDF5 file"),
                        (["bad.h5"], "/images/width is not what was written"), (["odd.h5"], "contradicts itself"),
                        (["three.h5"], "has format 3")):
        result = convert(*words, "-o", "new.h5", cwd=two)
        assert result.returncode == 3 and part in result.stderr, result.stderr
        assert len(result.stderr.splitlines()) == 1
    result = convert("two/a.h5", "-o", "three.h5", cwd=two)
    assert result.returncode == 3 and "three.h5 exists" in result.stderr
    assert sorted(os.listdir(two)) == before
