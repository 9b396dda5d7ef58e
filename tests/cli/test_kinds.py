"""Features of scaled pictures and pyramids: every stored bit equals the result of numpy."""
import os
import shutil
from pathlib import Path

import h5py
import numpy
import pytest
from PIL import Image

from conftest import ROOT, check_one_error, digest
from numpy_features import feature, upright

LABELLED = Path(ROOT) / ".." / "shared" / "data" / "photos" / "labelled"

# Stored sizes (height, width): single pixels, rows and columns, the sides of a scaled picture, one pixel more, many
# times that size, some pictures larger than a slot of 1 MiB, and one with very long rows.
SIZES = [(1, 1), (1, 64), (1, 65), (300, 1), (2, 2), (3, 3), (64, 64), (65, 65), (17, 31), (61, 257),
         (193, 129), (400, 901), (640, 500), (5, 70001)]


def text_of(attributes):
    return {key: value.decode() if isinstance(value, bytes) else value
            for key, value in attributes.items()}


def check_file(path, directory):
    """Compares every value of every feature with numpy; returns the number of pictures."""
    with h5py.File(path, "r") as file:
        names = [name.decode() for name in file["images/path"][:]]
        rows = {name: (text_of(data.attrs), data[:]) for name, data in file["features"].items()}
    for i, name in enumerate(names):
        p = upright(directory / name)
        for attributes, row in rows.values():
            wanted = feature(p, attributes["spec"])
            assert wanted.dtype == row.dtype, attributes["spec"]
            assert (wanted == row[i]).all(), (name, attributes["spec"])
    return len(names)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Pictures of noise and steps with many sizes and all orientations, as PNG, some of them also as JPEG."""
    directory = tmp_path_factory.mktemp("pictures")
    random = numpy.random.default_rng(3)
    for number, (height, width) in enumerate(SIZES):
        exif = Image.Exif()
        exif[0x0112] = number % 8 + 1
        noise = random.integers(0, 256, (height, width, 3), dtype=numpy.uint8)
        noise[height // 2:] //= 64
        noise[:, width // 2:] |= 192
        image = Image.fromarray(noise)
        image.save(directory / f"{height}x{width}.png", exif=exif, compress_level=1)
        if 60 < min(height, width):
            image.save(directory / f"{height}x{width}.jpg", exif=exif)
    Image.new("RGB", (100, 70), (9, 9, 9)).save(directory / "flat.png")
    return directory


SCALED = [option for spec in [
    "rgb:bins=7", "rgb:bins=16,scale=64,levels=1+2+3", "gray:bins=9,scale=129,grid=3x2",
    "a=gray:levels=2+4,bins=5", "b=gray:bins=31,scale=64,normalize=none,levels=8+5+6+7",
    "c=rgb:bins=3,scale=129,levels=3,normalize=hellinger"] for option in ["--feature", spec]]


@pytest.mark.deep
def test_scaled_and_unscaled_features_in_one_run(clpipe, pictures, tmp_path):
    """Small slots, with images in strips that the host scales, give the same values as large ones;
    so do separate processes and JPEG pixels computed on the device."""
    assert clpipe("ingest", pictures, "-o", "f.h5", *SCALED).returncode == 0
    assert check_file(tmp_path / "f.h5", pictures) == len(os.listdir(pictures))
    assert clpipe("verify", "f.h5").returncode == 0
    for options in [["--slot-size", "1M", "--slots", "2"], ["--isolate", "--threads", "1"],
                    ["--jpeg-pixels", "device", "--slot-size", "2M"]]:
        assert clpipe("ingest", pictures, "-o", "g.h5", *options, *SCALED).returncode == 0
        assert digest(tmp_path / "g.h5") == digest(tmp_path / "f.h5"), options
        (tmp_path / "g.h5").unlink()


TEXTURES = [option for spec in [
    "oplbp", "coledge", "hog:grid=4x4", "gradient:levels=1+2+3", "lbp:levels=1+2+3,scale=64",
    "h=hog:scale=64,levels=1+2+3,normalize=none", "g=gradient:normalize=none",
    "lab", "l=lab:bins=5x16x7,scale=64,grid=2x2,normalize=none", "c=coledge:grid=2x3,normalize=hellinger,scale=64"] for option in ["--feature", spec]]


@pytest.mark.deep
def test_textures(clpipe, pictures, tmp_path):
    assert clpipe("ingest", pictures, "-o", "f.h5", *TEXTURES).returncode == 0
    assert check_file(tmp_path / "f.h5", pictures) == len(os.listdir(pictures))
    assert clpipe("verify", "f.h5").returncode == 0
    assert clpipe("ingest", pictures, "-o", "g.h5", "--slot-size", "1M", "--slots", "2",
                  "--jpeg-pixels", "device", *TEXTURES).returncode == 0
    assert digest(tmp_path / "g.h5") == digest(tmp_path / "f.h5")


def test_names_and_specs(clpipe, pictures, tmp_path):
    one = pictures / "17x31.png"
    assert clpipe("ingest", one, "-o", "f.h5", "--feature", "rgb:bins=4,levels=1+2,scale=100",
                  "--feature", "gray:bins=4,scale=100").returncode == 0
    with h5py.File(tmp_path / "f.h5", "r") as file:
        assert sorted(file["features"]) == ["gray_4_at100", "rgb_4_1-2_at100"]
        attributes = text_of(file["features/rgb_4_1-2_at100"].attrs)
    assert attributes["grid"] == "1+2"
    assert attributes["spec"] == "rgb:bins=4,levels=1+2,normalize=l1,scale=100"
    for spec, *why in [("rgb:scale=15", "scale=15", "from 16 to 1024"),
                       ("rgb:scale=1025", "from 16 to 1024"), ("rgb:levels=9", "1 to 8"),
                       ("rgb:levels=1+2+3+4+5", "at most 4"), ("rgb:levels=1x2", "levels=1x2"),
                       ("gray:bins=1,scale=64,grid=65x1", "at most 64x64")]:
        check_one_error(clpipe("ingest", one, "-o", "g.h5", "--feature", spec), 2, *why)


@pytest.mark.deep
@pytest.mark.skipif(not LABELLED.is_dir(), reason="the photographs are not available")
def test_photographs(clpipe, tmp_path):
    chosen = tmp_path / "photos"
    chosen.mkdir()
    for path in sorted(LABELLED.rglob("*.jpg"))[::80]:
        shutil.copy(path, chosen)
    assert clpipe("ingest", chosen, "-o", "f.h5", *TEXTURES).returncode == 0
    assert check_file(tmp_path / "f.h5", chosen) >= 10
