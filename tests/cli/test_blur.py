"""ingest --blur 3: the features of the blurred picture equal those computed with Pillow and numpy, and are
bit-identical with exact and with rounded-up NDRanges. A file can hold blurred and plain features, but --blur must not
change when a run continues with a file."""
import json
import os
import shutil
import subprocess
from pathlib import Path

import h5py
import numpy
import pytest
from PIL import Image, ImageOps

from conftest import CLPIPE, ROOT, check_one_error

PHOTOS = Path(ROOT) / ".." / "shared" / "data" / "photos"
SPECS = ["--feature", "rgb:bins=256", "--feature", "gray:bins=64,grid=3x2", "--feature", "hsv",
         "--normalize", "none"]
# Stored sizes (height, width): no interior, one interior pixel, odd sizes, one taller than a strip.
SIZES = [(1, 1), (2, 2), (1, 300), (300, 1), (2, 40), (3, 3), (3, 40), (40, 3), (17, 31), (64, 64),
         (45, 67), (90, 211)]


def blurred(picture):
    """The 3x3 box blur of the upright picture's interior, rounded down."""
    p = numpy.asarray(ImageOps.exif_transpose(picture).convert("RGB")).astype(numpy.uint16)
    h, w = max(0, p.shape[0] - 2), max(0, p.shape[1] - 2)
    return sum(p[y:y + h, x:x + w] for y in range(3) for x in range(3)) // 9


def cells(p, rows, columns):
    y = numpy.arange(p.shape[0]) * rows // max(1, p.shape[0])
    x = numpy.arange(p.shape[1]) * columns // max(1, p.shape[1])
    for r in range(rows):
        for c in range(columns):
            yield p[y == r][:, x == c].reshape(-1, 3)


def rgb_256(p):
    return numpy.concatenate([numpy.bincount(p[..., c].ravel(), minlength=256) for c in range(3)])


def gray_64(p):
    gray = [(77 * q[:, 0] + 150 * q[:, 1] + 29 * q[:, 2] + 128) >> 8 for q in cells(p, 3, 2)]
    return numpy.concatenate([numpy.bincount(g * 64 >> 8, minlength=64) for g in gray])


def check_file(path, directory):
    with h5py.File(path, "r") as file:
        names = [name.decode() for name in file["images/path"][:]]
        rgb, gray = file["features/rgb_256"][:], file["features/gray_64_3x2"][:]
        hsv = file["features/hsv_8x4x4"][:]
    for i, name in enumerate(names):
        p = blurred(Image.open(directory / name)).astype(int)
        assert (rgb[i] == rgb_256(p)).all(), name
        assert (gray[i] == gray_64(p)).all(), name
        assert hsv[i].sum() == p.shape[0] * p.shape[1], name
    return names


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Pictures of noise with many sizes and orientations."""
    directory = tmp_path_factory.mktemp("noise")
    random = numpy.random.default_rng(3)
    for number, (height, width) in enumerate(SIZES):
        exif = Image.Exif()
        exif[0x0112] = number % 8 + 1
        noise = random.integers(0, 256, (height, width, 3), dtype=numpy.uint8)
        Image.fromarray(noise).save(directory / f"{height}x{width}.png", exif=exif)
    for number in range(40):
        noise = random.integers(0, 256, (5 + number % 4, 9 - number % 3, 3), dtype=numpy.uint8)
        Image.fromarray(noise).save(directory / f"small {number:02}.png")
    return directory


@pytest.fixture
def large(tmp_path):
    """Pictures that pass through slots of 1 MiB in strips. Three rows of one of them exceed half a slot."""
    directory = tmp_path / "large"
    directory.mkdir()
    random = numpy.random.default_rng(4)
    for height, width in [(700, 901), (5, 70001)]:
        noise = random.integers(0, 256, (height, width, 3), dtype=numpy.uint8)
        Image.fromarray(noise).save(directory / f"{height}.png", compress_level=1)
    Image.fromarray(noise[:2]).save(directory / "no interior.png", compress_level=1)
    return directory


def digest(clpipe, path):
    return clpipe("info", path, "--digest").stdout.split()[0]


def test_noise_of_many_sizes(clpipe, pictures, tmp_path):
    assert clpipe("ingest", pictures, "-o", "f.h5", "--blur", "3", *SPECS).returncode == 0
    assert len(check_file(tmp_path / "f.h5", pictures)) == len(SIZES) + 40
    assert clpipe("verify", "f.h5").returncode == 0
    with h5py.File(tmp_path / "f.h5", "r") as file:
        assert file["features/rgb_256"].attrs["spec"].endswith("normalize=none,blur=3")
        parameters = json.loads(file.attrs["parameters"])
        assert all(feature.endswith(",blur=3") for feature in parameters["features"])
        sizes = file["images/width"][:].astype(int) * file["images/height"][:]
        assert (file["features/hsv_8x4x4"][:].sum(1) < sizes).all()  # the stored sizes are those before the blur
    # The option --blur 3 and blur=3 in a specification are equivalent.
    specs = [text + ",blur=3" if ":" in text else "hsv:blur=3" if text == "hsv" else text
             for text in SPECS]
    clpipe("ingest", pictures, "-o", "g.h5", *specs)
    assert digest(clpipe, "f.h5") == digest(clpipe, "g.h5")


def test_in_strips_and_in_pieces_of_rows(clpipe, large, tmp_path):
    assert clpipe("ingest", large, "-o", "f.h5", "--blur", "3", "--slot-size", "1M", "--slots", "2",
                  *SPECS).returncode == 0
    check_file(tmp_path / "f.h5", large)
    assert clpipe("verify", "f.h5").returncode == 0
    assert clpipe("ingest", large, "-o", "g.h5", "--blur", "3", "--isolate", *SPECS).returncode == 0
    assert digest(clpipe, "f.h5") == digest(clpipe, "g.h5")


@pytest.mark.slow
def test_exact_ranges_in_a_simulator(clpipe, pictures, tmp_path):
    if not shutil.which("oclgrind"):
        pytest.skip("oclgrind is not installed")
    command = ["ingest", str(pictures), "-q", "--blur", "3", *SPECS, "--slot-size", "1M"]
    simulated = subprocess.run(["oclgrind", str(CLPIPE), *command, "-o", "simulated.h5"],
                               cwd=tmp_path, capture_output=True, text=True, timeout=120)
    # The simulator reports problems on standard error.
    assert (simulated.returncode, simulated.stderr) == (0, "")
    with h5py.File(tmp_path / "simulated.h5", "r") as file:
        assert "Oclgrind" in file["runs/0"].attrs["device"]
    assert clpipe(*command, "-o", "here.h5").returncode == 0
    assert digest(clpipe, "simulated.h5") == digest(clpipe, "here.h5")


@pytest.mark.deep
@pytest.mark.skipif(not PHOTOS.is_dir(), reason="the photographs are not available")
def test_photographs(clpipe, tmp_path):
    small = sorted((PHOTOS / "labelled").rglob("*.jpg"))
    turned = sorted((PHOTOS / "oriented").iterdir())  # one photograph in all orientations
    chosen = tmp_path / "photos"
    chosen.mkdir()
    for p in small[::25] + turned[2:8:3]:
        os.symlink(p, chosen / p.name)
    assert {Image.open(p).getexif().get(0x0112, 1) for p in chosen.iterdir()} >= {1, 3, 6}
    (tmp_path / "list").write_text("".join(f"photos/{name}\n" for name in sorted(os.listdir(chosen))))
    assert clpipe("ingest", "@list", "-o", "f.h5", "--blur", "3", *SPECS).returncode == 0
    assert len(check_file(tmp_path / "f.h5", tmp_path)) >= 20
    assert clpipe("verify", "f.h5").returncode == 0


@pytest.mark.slow
def test_blurred_and_plain_features_in_one_run(clpipe, pictures, large, tmp_path):
    """The counts equal those of two runs: for pictures with few rows and columns, in strips and in pieces of
    rows, with JPEG pixels decoded on the device, and for features added to a file."""
    plain = [option for spec in ["rgb:grid=2x3,normalize=none", "gray:bins=7,normalize=none"]
             for option in ["--feature", spec]]
    smooth = [option for spec in ["a=rgb:grid=2x3,normalize=none,blur=3",
                                  "b=hsv:grid=4x4,normalize=none,blur=3"]
              for option in ["--feature", spec]]
    for number, path in enumerate(sorted(pictures.iterdir())[:12]):
        Image.open(path).resize((300 + number, 200)).save(large / f"{number}.jpg")
        shutil.copy(path, large)
    small = ["--slot-size", "1M", "--slots", "2"]
    for options in [[], small, ["--jpeg-pixels", "device"]]:
        for name, specs in [("p.h5", plain), ("s.h5", smooth), ("m.h5", plain + smooth)]:
            (tmp_path / name).unlink(missing_ok=True)
            assert clpipe("ingest", large, "-o", name, *options, *specs).returncode == 0
        assert clpipe("verify", "m.h5").returncode == 0
        with h5py.File(tmp_path / "m.h5", "r") as mixed:
            for name in ["p.h5", "s.h5"]:
                with h5py.File(tmp_path / name, "r") as alone:
                    for feature, values in alone["features"].items():
                        assert (values[:] == mixed["features"][feature][:]).all(), (options, feature)
            # Thin pictures have pixels, but no blurred ones.
            paths = [path.decode() for path in mixed["images/path"][:]]
            thin = [i for i, path in enumerate(paths) if path.startswith("no interior")]
            assert thin and mixed["features/gray_7"][thin[0]].sum() == 2 * 70001
            assert mixed["features/a"][thin[0]].sum() == 0
    assert clpipe("ingest", large, "-o", "p.h5", "--add", *smooth).returncode == 0
    assert clpipe("verify", "p.h5").returncode == 0


@pytest.mark.deep
def test_blurred_and_plain_features_do_not_mix(clpipe, pictures, tmp_path):
    clpipe("ingest", pictures, "-o", "f.h5", "--limit", "3")
    before = (tmp_path / "f.h5").read_bytes()
    check_one_error(clpipe("ingest", pictures, "-o", "f.h5", "--limit", "3", "--blur", "3"), 2,
                    "--blur differs from the features of f.h5")
    assert (tmp_path / "f.h5").read_bytes() == before
    check_one_error(clpipe("ingest", pictures, "-o", "g.h5", "--feature", "rgb", "--feature",
                           "rgb:blur=3"), 2, "the name rgb_256 is taken")
    check_one_error(clpipe("ingest", pictures, "-o", "g.h5", "--feature", "rgb:blur=5"), 2, "blur=5")
    check_one_error(clpipe("ingest", pictures, "-o", "g.h5", "--blur", "5"), 2, "off|3")
    check_one_error(clpipe("bench", "--feature", "rgb:blur=3"), 2, "cannot be measured")
    # A clustering of plain features cannot label blurred ones.
    clpipe("ingest", pictures, "-o", "b.h5", "--blur", "3")
    clpipe("ingest", pictures, "-o", "c.h5")
    assert clpipe("cluster", "c.h5", "-k", "3").returncode == 0
    check_one_error(clpipe("assign", "c.h5", "b.h5"), 3, "blur=3")
    assert clpipe("ingest", pictures, "-o", "b.h5", "--blur", "3", "--add", "--feature",
                  "gray").returncode == 0
    assert clpipe("run", "--no-report", pictures, "-o", "r.h5", "--blur", "3", "-k", "4").returncode == 0
    assert clpipe("verify", "r.h5").returncode == 0
