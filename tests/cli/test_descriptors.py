"""Words and Fisher vectors of local descriptors: every stored bit equals the result of numpy with the stored
codebook."""
import os
import shutil
from pathlib import Path

import h5py
import numpy
import pytest
from PIL import Image

from conftest import ROOT, check_one_error, digest
from numpy_descriptors import cells, describe, differences, luma, row
from numpy_features import scale, upright

LABELLED = Path(ROOT) / ".." / "shared" / "data" / "photos" / "labelled"

SPECS = ["dct:fisher=4,scale=128", "sift:fisher=3,scale=128", "opsift:words=5,scale=128",
         "patch:words=7,scale=128,normalize=none", "many=dct:words=300,scale=64,normalize=hellinger",
         "p=patch:fisher=2,scale=64"]


def features(specs):
    return [option for spec in specs for option in ["--feature", spec]]


def check_file(path, directory, every=1):
    """Compares all features of one in `every` pictures with numpy; returns the number of pictures in the file."""
    with h5py.File(path, "r") as file:
        names = [name.decode() for name in file["images/path"][:]]
        for feature, data in file["features"].items():
            codebook = {name: values[:] for name, values in file["codebooks"][feature].items()}
            spec = data.attrs["spec"]
            spec = spec.decode() if isinstance(spec, bytes) else spec
            for name, values in list(zip(names, data[:]))[::every]:
                wanted = row(upright(directory / name), spec, codebook)
                assert wanted.dtype == values.dtype
                assert (wanted == values).all(), (name, spec)
                assert numpy.isfinite(values).all()
    return len(names)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Single pixels, rows and columns, flat and grey pictures, noise, slopes and edges, in all orientations. There
    are enough pictures to learn codebooks."""
    directory = tmp_path_factory.mktemp("pictures")
    random = numpy.random.default_rng(5)
    sizes = [(1, 1), (1, 90), (90, 1), (5, 300), (6, 6), (7, 9), (8, 8), (10, 10), (37, 37), (36, 200),
             (300, 200), (130, 129)] + [(20 + 3 * i % 41, 20 + 7 * i % 53) for i in range(60)]
    for number, (height, width) in enumerate(sizes):
        y, x = numpy.mgrid[:height, :width]
        noise = random.integers(0, 256, (height, width, 3), dtype=numpy.uint8)
        slope = numpy.stack([x * 3 + number, y * 2, x + y], 2).astype(numpy.uint8) + noise // 32
        edges = numpy.where((x // 9 + y // 7 + number) % 2, 220, 30)[..., None] + noise // 16
        kind = [noise, slope, edges, numpy.full_like(noise, number), slope[..., :1].repeat(3, 2)][number % 5]
        exif = Image.Exif()
        exif[0x0112] = number % 8 + 1
        Image.fromarray(kind.astype(numpy.uint8)).save(directory / f"{number:02}.png", exif=exif)
    return directory


@pytest.mark.deep
def test_every_bit(clpipe, pictures, tmp_path):
    """The bits do not change with small slots or isolated decoders."""
    assert clpipe("ingest", pictures, "-o", "f.h5", *features(SPECS)).returncode == 0
    assert check_file(tmp_path / "f.h5", pictures) == len(os.listdir(pictures))
    assert clpipe("verify", "f.h5").returncode == 0
    for options in [["--slot-size", "1M", "--slots", "2", "--threads", "1"], ["--isolate"]]:
        assert clpipe("ingest", pictures, "-o", "g.h5", *options, *features(SPECS)).returncode == 0
        assert digest(tmp_path / "g.h5") == digest(tmp_path / "f.h5"), options
        (tmp_path / "g.h5").unlink()


def test_specs(clpipe, pictures, tmp_path):
    for spec, *why in [("dct", "words=K or fisher=K"), ("dct:bins=8", "words=K or fisher=K"),
                       ("sift:words=1", "2 to 65536"), ("sift:fisher=64,grid=2x2", "no grid="),
                       ("patch:words=8,levels=1+2", "no levels="), ("dct:words=8,blur=3", "no blur="),
                       ("dct:words=8,normalize=unit", "none, l1 or hellinger"),
                       ("sift:fisher=65536", "values per image")]:
        check_one_error(clpipe("ingest", pictures, "-o", "g.h5", "--feature", spec), 2, *why)


@pytest.mark.slow
@pytest.mark.skipif(not LABELLED.is_dir(), reason="the photographs are not available")
def test_photographs(clpipe, tmp_path):
    chosen = tmp_path / "photos"
    chosen.mkdir()
    for path in sorted(LABELLED.rglob("*.jpg"))[::12]:
        shutil.copy(path, chosen)
    specs = ["dct:fisher=16", "sift:fisher=8", "opsift:fisher=8", "patch:words=50"]
    assert clpipe("ingest", chosen, "-o", "f.h5", *features(specs)).returncode == 0
    assert check_file(tmp_path / "f.h5", chosen, every=8) >= 64
    assert clpipe("verify", "f.h5").returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not LABELLED.is_dir(), reason="the photographs are not available")
def test_gradients_are_sift():
    """Compares with the definition in float64: a magnitude is divided between the nearest two of 8 directions in
    proportion to the angle, cells are weighted linearly, and the values are roots of shares."""
    cosines = []
    for path in sorted(LABELLED.rglob("*.jpg"))[::150]:
        p = scale(upright(path), 256)
        dx, dy = differences(luma(p))
        angle = numpy.arctan2(dy, dx)[..., None] / (numpy.pi / 4) - numpy.arange(8)
        angle = numpy.abs((angle + 4) % 8 - 4)
        gradients = numpy.hypot(dx, dy)[..., None] * numpy.maximum(0, 1 - angle)
        wanted = numpy.concatenate([cells(gradients, side, 5) for side in (10, 16, 25, 37)])
        wanted = numpy.sqrt(wanted / numpy.maximum(1e-9, wanted.sum(1, keepdims=True)))
        ours = describe("sift", p).astype(float)
        there = wanted.any(1)
        ours, wanted = ours[there], wanted[there]
        cosines.append((ours * wanted).sum(1) / numpy.linalg.norm(ours, axis=1))
    cosines = numpy.concatenate(cosines)
    assert len(cosines) > 10000
    assert cosines.min() > 0.95 and numpy.quantile(cosines, 0.01) > 0.99
    assert cosines.mean() > 0.995
