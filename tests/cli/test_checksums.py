"""Checksums find changes that would otherwise go unnoticed; additions by other programs are kept."""

import json
import os
import random
import shutil

import h5py
import numpy
import pytest

from conftest import SEED, check_one_error, digest, draw_photos, run_clpipe


@pytest.fixture(scope="module")
def rich(program, tmp_path_factory):
    """A file with one of everything that clpipe stores, and the pictures that it was made from."""
    directory = tmp_path_factory.mktemp("rich")
    draw_photos(directory / "photos")
    (directory / "photos" / "cut.jpg").write_bytes(b"\xff\xd8\xff")
    os.rename(directory / "photos" / "red" / "03.jpg", os.fsencode(directory / "photos") + b"/\xff.jpg")
    numpy.save(directory / "x.npy", numpy.random.default_rng(1).random((13, 40), "f4"))
    for command in (["ingest", "photos", "-o", "f.h5", "--thumbnails", "64", "--feature", "rgb:bins=8x8x8",
                     "--feature", "counts=gray:bins=100,normalize=none"],
                    ["import", "f.h5", "x=x.npy"],
                    ["cluster", "f.h5", "--feature", "counts", "-k", "2:4"]):
        result = run_clpipe(*command, cwd=directory)
        assert result.returncode in (0, 1), result.stderr
    return directory / "f.h5"


def datasets(path):
    """(name, offset, size in bytes, whether it holds variable-length text) of every dataset that is stored
    contiguously."""
    found = []

    def look(name, item):
        if isinstance(item, h5py.Dataset) and item.id.get_offset() is not None and item.size:
            text = h5py.check_string_dtype(item.dtype)
            variable = text is not None and text.length is None
            found.append((name, item.id.get_offset(), item.size * (16 if variable else item.dtype.itemsize),
                          variable))

    with h5py.File(path, "r") as file:
        file.visititems(look)
    return found


def flip(path, offset, bit):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))


def lines(result):
    return result.stdout.splitlines() + result.stderr.splitlines()


@pytest.mark.deep
def test_a_flipped_bit_in_any_dataset(clpipe, rich, tmp_path):
    rng = random.Random(SEED)
    copy = tmp_path / "copy.h5"
    all_of_them = datasets(rich)
    names = {name for name, *_ in all_of_them}
    assert {"images/path", "images/code", "failures/message", "features/x",
            "thumbnails/data", "clusters/kmeans/sweep/k", "checksums/features/x"} <= names
    assert len(names) > 80
    some = rng.sample([entry for entry in all_of_them if entry[0].startswith("checksums/")], 6)
    for name, offset, size, _ in [entry for entry in all_of_them if not entry[0].startswith("checksums/")] + some:
        shutil.copy(rich, copy)
        flip(copy, offset + rng.randrange(size), rng.randrange(8))
        result = clpipe("verify", copy)
        # These texts are read when the file is opened, which may fail because of an invalid byte.
        opened = name in ("images/sources", "images/directories")
        assert result.returncode in ((1, 3) if opened else (1,)), (name, result.stdout)
        about = [line for line in lines(result) if f"/{name}:" in line]
        assert about or opened, (name, result.stdout, result.stderr)
        if name.startswith("checksums/"):
            assert any("the values have not" in line for line in about)
        elif not opened:
            assert any("row" in line for line in about), about
    assert clpipe("verify", rich).returncode == 0


@pytest.mark.deep
def test_damage_is_located_within_a_megabyte(clpipe, photos, tmp_path):
    """There are 13 rows of 256 KiB; a checksum covers 4 of them."""
    result = clpipe("ingest", photos, "-o", "f.h5", "--feature", "x=rgb:bins=16x16x16,grid=4x4")
    assert result.returncode == 0, result.stderr
    (offset, size), = [(offset, size) for name, offset, size, _ in datasets(tmp_path / "f.h5")
                       if name == "features/x"]
    assert size == 13 << 18
    flip(tmp_path / "f.h5", offset + (9 << 18) + 77, 3)
    result = clpipe("verify", "f.h5")
    assert result.returncode == 1
    assert any("/features/x: something in rows 8 to 11 has changed" in line
               for line in lines(result)), result.stdout
    result = clpipe("repair", "f.h5", "--json", "-")
    assert result.returncode in (0, 1), result.stderr
    assert json.loads(result.stdout)["images_lost"] in (1, 4)
    assert clpipe("verify", "f.h5").returncode == 0


@pytest.mark.variations
@pytest.mark.parametrize("damaged", ["images/code", "features/clip", "clusters/kmeans/labels",
                                     "neighbours/clip/rows"])
def test_damage_is_not_passed_on_silently(clpipe, tmp_path, damaged):
    """An update reports the damage; other commands leave the checksums unchanged."""
    draw_photos(tmp_path / "photos")
    numpy.save(tmp_path / "clip.npy", numpy.random.default_rng(1).random((13, 4), "f4"))
    for command in (["ingest", "photos", "-o", "f.h5"], ["import", "f.h5", "clip=clip.npy"],
                    ["cluster", "f.h5", "--feature", "clip", "-k", 2],
                    ["similar", "f.h5", "--all", "--feature", "clip", "-n", 3]):
        assert clpipe(*command).returncode == 0
    with h5py.File(tmp_path / "f.h5", "r+") as file:
        at = (3, 2)[:file[damaged].ndim]
        file[damaged][at] = file[damaged][at] ^ 1 if file[damaged].dtype.kind in "iu" else 0.125
    assert clpipe("cluster", "f.h5", "-k", 2, "--feature", "rgb_8x8x8", "--name", "more").returncode == 0
    assert f"/{damaged}: row 3" in clpipe("verify", "f.h5").stdout.replace("something in rows 0 to 12", "row 3")
    shutil.copy(tmp_path / "photos" / "red" / "03.jpg", tmp_path / "photos" / "new.jpg")
    result = clpipe("ingest", "photos", "-o", "f.h5")
    assert result.returncode == 0 and f"has changed since clpipe wrote it (/{damaged}: " in result.stderr, result.stderr
    (tmp_path / "photos" / "new.jpg").unlink()
    assert "since clpipe wrote it" not in clpipe("ingest", "photos", "-o", "f.h5").stderr


@pytest.mark.parametrize("change,expected", [
    (lambda f: f["clusters/kmeans"].attrs.modify("inertia", 1.0), "names or attributes"),
    (lambda f: f.attrs.modify("parameters", '{"alpha":"black"}'), "names or attributes"),
    (lambda f: f["features/counts"].attrs.modify("decode_scale", numpy.uint32(2)), "/features/counts: its attributes"),
    (lambda f: f.__delitem__("clusters/kmeans"), "/clusters/kmeans/sweep/ari: it is missing"),
    (lambda f: f.__delitem__("features/x"), "/features/x: it is missing"),
    (lambda f: f.__delitem__("checksums/images/width"), "/images/width: it has no checksums"),
    (lambda f: f.__delitem__("checksums"), "/checksums is missing"),
])
def test_other_changes(clpipe, rich, tmp_path, change, expected):
    copy = tmp_path / "copy.h5"
    shutil.copy(rich, copy)
    with h5py.File(copy, "r+") as file:
        change(file)
    result = clpipe("verify", copy)
    assert result.returncode == 1
    assert any(expected in line for line in lines(result)), result.stdout


def test_other_storage_of_the_same_values(clpipe, rich, tmp_path):
    """A dataset compressed by another program has other bytes but the same values."""
    copy = tmp_path / "copy.h5"
    shutil.copy(rich, copy)
    with h5py.File(copy, "r+") as file:
        old = file["features/x"]
        values, attributes, axes = old[:], dict(old.attrs), [axis[0] for axis in old.dims]
        del file["features/x"]
        new = file.create_dataset("features/x", data=values, chunks=(3, 40), compression="gzip", dtype=">f4")
        for name, value in attributes.items():
            if name != "DIMENSION_LIST":
                new.attrs[name] = value
        for i, axis in enumerate(axes):
            new.dims[i].attach_scale(axis)
    result = clpipe("verify", copy)
    assert result.returncode == 0, result.stdout
    assert digest(copy) == digest(rich)


def test_content_is_the_root(rich):
    with h5py.File(rich, "r") as file:
        content = file["clusters/kmeans"].attrs["content"]
        assert content.startswith("tree3-") and len(content) == 64
        assert file["checksums/features/counts"].attrs["root"] == content.encode()
        assert file["checksums"].attrs["identity"] == digest(rich).encode()


@pytest.mark.deep
@pytest.mark.parametrize("number", (1, 2))
def test_older_formats_are_refused_by_name(clpipe, tmp_path, number):
    """Every command names the format and the tool that converts the file, which stays unchanged."""
    draw_photos(tmp_path / "photos")
    assert clpipe("ingest", "photos", "-o", "f.h5").returncode == 0
    with h5py.File(tmp_path / "f.h5", "r+") as file:
        file.attrs.modify("clpipe_format", numpy.int32(number))
    before = (tmp_path / "f.h5").read_bytes()
    for command in (["info", "f.h5"], ["verify", "f.h5"], ["cluster", "f.h5", "-k", 3], ["report", "f.h5"],
                    ["ingest", "photos", "-o", "f.h5"], ["merge", "f.h5", "f.h5", "-o", "all.h5"]):
        check_one_error(clpipe(*command), 3, f"f.h5 has format {number}", "tools/convert f.h5")
    assert (tmp_path / "f.h5").read_bytes() == before


# --- additions by other programs ----------------------------------------------------------------------

@pytest.mark.deep
def test_additions_are_not_damage(clpipe, rich, tmp_path):
    copy = tmp_path / "copy.h5"
    shutil.copy(rich, copy)
    with h5py.File(copy, "r+") as file:
        file["features/clip"] = numpy.zeros((2, 3))
        file.create_group("features/more")
        file["images/rating"] = [1, 2]
        file.create_group("clusters/by hand")["labels"] = [0]
        file["clusters/text"] = "words"
        file["elsewhere"] = h5py.ExternalLink("no.h5", "/x")
        file["clusters/kmeans"].attrs["checked"] = "yes"
        file["clusters/kmeans/names"] = ["a", "b"]
        file.attrs["owner"] = ["a", "b"]
    assert clpipe("verify", copy).returncode == 0
    assert digest(copy) == digest(rich)
    assert clpipe("info", copy).returncode == 0
    assert clpipe("cluster", copy, "--feature", "x", "-k", 2, "--name", "x").returncode == 0
    assert clpipe("verify", copy).returncode == 0
    with h5py.File(copy, "r") as file:
        assert file["features/clip"].shape == (2, 3) and "rating" in file["images"]
        assert file["clusters/by hand/labels"][0] == 0 and file["clusters/text"][()] == b"words"
        assert isinstance(file.get("elsewhere", getlink=True), h5py.ExternalLink)
        assert list(file.attrs["owner"]) == ["a", "b"]
        assert file["clusters/kmeans"].attrs["checked"] == "yes"
    # Additions inside a clustering that is replaced are kept too.
    assert clpipe("cluster", copy, "--feature", "x", "-k", 3, "--name", "kmeans", "--force").returncode == 0
    assert clpipe("verify", copy).returncode == 0
    with h5py.File(copy, "r") as file:
        assert len(file["clusters/kmeans/sizes"]) == 3
        assert list(file["clusters/kmeans/names"].asstr()) == ["a", "b"]
        assert file["clusters/kmeans"].attrs["checked"] == "yes"
    result = clpipe("cluster", copy, "--feature", "clip", "-k", 2)
    check_one_error(result, 2, "clip")
