"""Additions by other programs are kept, including dimension scales. An object that cannot be kept is named in an
error or, on request, dropped."""

import os
import shutil

import h5py
import numpy
import pytest

from conftest import check_one_error, draw_photos, run_clpipe


@pytest.fixture(scope="module")
def made(program, tmp_path_factory):
    place = tmp_path_factory.mktemp("carried")
    draw_photos(place / "photos")
    for command in (["ingest", "photos", "-o", "x.h5"], ["cluster", "x.h5", "-k", "3"]):
        assert run_clpipe(*command, cwd=place).returncode == 0
    os.rename(place / "x.h5", place / "made.h5")
    os.rename(place / "photos", place / "all")
    return place


@pytest.fixture
def place(made, monkeypatch):
    """A directory with an unchanged copy of x.h5 and of its photos."""
    monkeypatch.chdir(made)
    shutil.copy("made.h5", "x.h5")
    shutil.rmtree("photos", ignore_errors=True)
    shutil.copytree("all", "photos")
    return made


def references(file, name):
    return numpy.array([file["images"].ref, file["features"].ref], h5py.ref_dtype)


def in_attribute_of_own(file):
    file["images"].attrs["see"] = file["images/path"].ref
    return "/images, see"


def in_root_attribute(file):
    file.attrs.create("see", file["images/width"].regionref[2:4], dtype=h5py.regionref_dtype)
    return "/, see"


def in_attribute(file):
    file.create_group("theirs/deep").attrs["see"] = file["features"].ref
    return "/theirs/deep, see"


def in_dataset(file):
    file.create_group("theirs/deep")["refs"] = numpy.array([file["images"].ref] * 2, h5py.ref_dtype)
    return "/theirs/deep/refs"


def in_regions(file):
    dataset = file.create_dataset("regions", 1, h5py.regionref_dtype)
    dataset[0] = file["images/width"].regionref[1:3]
    return "/regions"


def in_compound(file):
    kind = numpy.dtype([("n", "i4"), ("see", h5py.ref_dtype)])
    dataset = file.create_dataset("images/pairs", 2, kind)
    dataset[0] = (1, file["images"].ref)
    return "/images/pairs"


def in_vlen(file):
    dataset = file.create_dataset("lists", 2, h5py.vlen_dtype(h5py.ref_dtype))
    dataset[0] = numpy.array([file["images"].ref], h5py.ref_dtype)
    return "/lists"


def in_virtual(file):
    layout = h5py.VirtualLayout(13, "u4")
    layout[:] = h5py.VirtualSource("other.h5", "width", 13)
    file.create_group("theirs").create_virtual_dataset("seen", layout)
    return "/theirs/seen"


COMMANDS = [["ingest", "photos", "-o", "x.h5"], ["ingest", "photos", "-o", "x.h5", "--fresh"],
            ["cluster", "x.h5", "-k", "2", "--force"], ["cluster", "x.h5", "-k", "2", "--name", "more"],
            ["import", "x.h5", "v=v.npy"], ["similar", "x.h5", "--all", "-n", "2"],
            ["remove", "x.h5", "kmeans"], ["rename", "x.h5", "kmeans", "other"], ["repair", "x.h5"],
            ["assign", "y.h5", "x.h5", "--name", "kmeans", "--force"]]


@pytest.mark.variations
@pytest.mark.parametrize("add", [in_attribute_of_own, in_root_attribute, in_attribute, in_dataset, in_regions,
                                 in_compound, in_vlen, in_virtual])
def test_objects_that_cannot_be_carried(place, add):
    with h5py.File("x.h5", "r+") as file:
        name = add(file)
        file.create_group("kept")["values"] = numpy.arange(4)
        file["kept"].attrs["note"] = "a note"
    shutil.copy("x.h5", "before.h5")
    assert "no problems found" in run_clpipe("verify", "x.h5").stdout
    result = run_clpipe("ingest", "photos", "-o", "x.h5")
    check_one_error(result, 2, f"x.h5: {name}", "cannot be carried", "--drop-references")
    assert open("x.h5", "rb").read() == open("before.h5", "rb").read()
    os.remove("photos/red/00.png")
    result = run_clpipe("ingest", "photos", "-o", "x.h5", "--drop-references")
    assert result.returncode == 0, result.stderr
    assert "could not be kept" in result.stderr
    assert "no problems found" in run_clpipe("verify", "x.h5").stdout
    with h5py.File("x.h5") as file:
        assert file["kept/values"][:].tolist() == [0, 1, 2, 3] and file["kept"].attrs["note"] == "a note"
        where, _, attribute = name.partition(", ")
        assert attribute not in file[where].attrs if attribute else where not in file
        assert ("theirs" in file) == name.startswith("/theirs")


@pytest.mark.variations
@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: "-".join(c[:1] + c[-1:]))
def test_each_command_refuses(place, command):
    """Each command refuses such a file before any work; with --drop-references it succeeds."""
    numpy.save("v.npy", numpy.ones((13, 2), "f4"))
    shutil.copy("x.h5", "y.h5")
    with h5py.File("x.h5", "r+") as file:
        name = in_dataset(file)
    before = open("x.h5", "rb").read()
    check_one_error(run_clpipe(*command), 2, f"x.h5: {name}", "holds references to other objects")
    assert open("x.h5", "rb").read() == before and not os.path.exists("x.h5.partial")
    result = run_clpipe(*command, "--drop-references")
    assert result.returncode == 0, result.stderr
    if open("x.h5", "rb").read() != before:
        with h5py.File("x.h5") as file:
            assert list(file["theirs/deep"]) == []
    # Commands that write nothing accept the file.
    for reader in ["info", "x.h5"], ["verify", "x.h5"], ["similar", "x.h5", "row:1", "--feature", "rgb_8x8x8"]:
        assert run_clpipe(*reader).returncode == 0


def scales_of(file, name):
    return [[scale.name for scale in axis.values()] for axis in file[name].dims]


def test_scales_are_carried(place):
    """Dimension scales are kept, whether they or their datasets belong to clpipe or to another program. If rows are
    removed, clpipe's scale is detached from the other program's dataset."""
    with h5py.File("x.h5", "r+") as file:
        theirs = file.create_group("theirs")
        theirs["score"] = numpy.random.default_rng(1).random((13, 5), "f4")
        theirs["class"] = numpy.arange(5)
        theirs["class"].make_scale("class")
        theirs["score"].dims[0].attach_scale(file["image"])
        theirs["score"].dims[1].attach_scale(theirs["class"])
        theirs["bin"] = numpy.arange(512)
        theirs["bin"].make_scale("bin")
        file["features/rgb_8x8x8"].dims[1].attach_scale(theirs["bin"])
        expected = {name: scales_of(file, name) for name in ("theirs/score", "features/rgb_8x8x8")}
    assert expected["theirs/score"] == [["/image"], ["/theirs/class"]]
    for command in (["cluster", "x.h5", "-k", "2", "--force"], ["remove", "x.h5", "kmeans"], ["repair", "x.h5"]):
        result = run_clpipe(*command)
        assert result.returncode == 0, result.stderr
        with h5py.File("x.h5") as file:
            assert {name: scales_of(file, name) for name in expected} == expected
            assert file["theirs/class"].attrs["CLASS"] == b"DIMENSION_SCALE"
        assert "no problems found" in run_clpipe("verify", "x.h5").stdout
    os.remove("photos/red/00.png")
    assert run_clpipe("ingest", "photos", "-o", "x.h5").returncode == 0
    with h5py.File("x.h5") as file:
        assert scales_of(file, "theirs/score") == [[], ["/theirs/class"]]
        assert scales_of(file, "features/rgb_8x8x8") == expected["features/rgb_8x8x8"]
