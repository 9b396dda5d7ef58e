"""Decoding JPEG entropy code on the device gives the same file as on the host, including failures and messages."""

import io
import json
import os
import subprocess

import h5py
import numpy
import pytest
from PIL import Image

from conftest import ALL, CLPIPE, ROOT, SEED, digest, run_clpipe

PHOTOS = ROOT.parent / "shared" / "data" / "photos"
FEATURES = ["--feature", "rgb:bins=256", "--feature", "gray:bins=64,grid=3x2"]
SIDES = (1, 2, 5, 7, 8, 9, 15, 16, 17, 33, 64, 95, 130, 261)


def scene(random, height, width):
    """Smooth shapes, edges and some noise, as in a photograph."""
    y, x = numpy.mgrid[0:height, 0:width]
    planes = []
    for _ in range(3):
        a, b, c, d = random.uniform(0.01, 0.15, 4)
        planes.append(128 + 60 * numpy.sin(a * x + b * y) + 50 * numpy.sign(numpy.sin(c * x - d * y)))
    pixels = numpy.stack(planes, axis=2) + random.normal(0, random.uniform(0, 9), (height, width, 3))
    return Image.fromarray(numpy.clip(pixels, 0, 255).astype("uint8"))


def encode(image, **options):
    out = io.BytesIO()
    image.save(out, "JPEG", **options)
    return out.getvalue()


def with_restarts(image, interval, **options):
    """OpenCV writes restart markers; without it, only the unit tests of decode cover them."""
    cv2 = pytest.importorskip("cv2")
    pixels = numpy.asarray(image)[:, :, ::-1] if image.mode == "RGB" else numpy.asarray(image)
    ok, data = cv2.imencode(".jpg", numpy.ascontiguousarray(pixels),
                            [cv2.IMWRITE_JPEG_RST_INTERVAL, interval,
                             cv2.IMWRITE_JPEG_OPTIMIZE, options.get("optimize", 0)])
    assert ok
    return data.tobytes()


def mutate(random, data):
    """Flips bits, truncates with and without an end marker, or removes bytes."""
    data = bytearray(data)
    kind = random.integers(0, 5)
    size = len(data)
    if kind == 0:
        data[random.integers(size)] ^= 1 << random.integers(8)
    elif kind == 1:
        for _ in range(5):
            data[random.integers(size // 4, size)] ^= 1 << random.integers(8)
    elif kind == 2:
        del data[random.integers(size // 8, size):]
    elif kind == 3:
        del data[random.integers(size // 2, size):]
        data += b"\xff\xd9"
    else:
        at = random.integers(size // 4, 3 * size // 4)
        del data[at:at + random.integers(1, 200)]
    return bytes(data)


def fill_slots(directory):
    """Adds files that fill the small slots first, so that later files arrive after the kernels are proven."""
    random = numpy.random.default_rng(SEED)
    for number in range(3):
        data = encode(scene(random, 900, 1100), progressive=True)
        (directory / f"000-large-{number}.jpg").write_bytes(data)


SLOTS = ("--slot-size", "1M", "--slots", "2")


def compare(source, directory, *options):
    """Checks that device and host give the same file; returns the report of JPEG files on the device."""
    reports = {}
    for where in ("host", "coefficients", "device"):
        name = directory / f"{where}.h5"
        result = run_clpipe("ingest", source, "-o", name, "-q", "--json", directory / "report.json",
                            "--jpeg-pixels", where, *FEATURES, *options)
        assert result.returncode in (0, 1), result.stderr
        reports[where] = json.loads((directory / "report.json").read_text())["jpeg"]
        assert digest(name) == digest(directory / "host.h5"), where
    total = {where: sum(report[way] for way in ("streams", "coefficients", "host"))
             for where, report in reports.items()}
    assert total["host"] == total["coefficients"] == total["device"] == reports["host"]["host"]
    assert reports["coefficients"]["streams"] == 0
    return reports["device"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Files with all samplings, tables, sizes and restart intervals."""
    directory = tmp_path_factory.mktemp("made")
    fill_slots(directory)
    random = numpy.random.default_rng(SEED)
    for number in range(160 if ALL else 80):
        image = scene(random, int(random.choice(SIDES)), int(random.choice(SIDES)))
        if number % 9 == 0:
            image = image.convert("L")
        if number % 4 == 3:
            data = with_restarts(image, int(random.integers(1, 12)), optimize=number // 4 % 2)
        else:
            data = encode(image, quality=int(random.choice((5, 30, 75, 90, 100))),
                          subsampling=number % 3 if image.mode == "RGB" else -1,
                          optimize=number % 5 < 2)
        (directory / f"{number:03}.jpg").write_bytes(data)
    return directory


@pytest.mark.parametrize("options", [["--threads", "1"],
                                     pytest.param(["--threads", "5"], marks=pytest.mark.slow),
                                     pytest.param(["--blur", "3"], marks=pytest.mark.slow),
                                     pytest.param(["--memory", "16M"], marks=pytest.mark.slow),
                                     pytest.param(["--device-memory", "9M"], marks=pytest.mark.slow)])
def test_made_files(program, made, tmp_path, options):
    jpeg = compare(made, tmp_path, *SLOTS, *options)
    assert jpeg["progressive"] == 3
    assert jpeg["handed_back"] <= (6 if ALL else 3)  # streams that 12 rounds did not repair
    if options[0] in ("--memory", "--device-memory"):
        assert jpeg["streams"] == 0  # there is no room for their coefficients
    if options == ["--threads", "1"]:
        assert jpeg["streams"] > 50  # except narrow 4:2:0 files, and files that threads decode while slots are full


@pytest.mark.deep
def test_damaged_files(program, made, tmp_path):
    source = tmp_path / "damaged"
    source.mkdir()
    random = numpy.random.default_rng(SEED + 1)
    files = [path.read_bytes() for path in sorted(made.glob("[0-9][0-9][0-9].jpg"))]
    fill_slots(source)
    for number in range(600 if ALL else 200):
        data = mutate(random, files[random.integers(len(files))])
        (source / f"{number:03}.jpg").write_bytes(data)
    jpeg = compare(source, tmp_path, *SLOTS, "--threads", "1")
    assert jpeg["handed_back"] > 10


@pytest.mark.slow
@pytest.mark.skipif(not PHOTOS.exists(), reason="no photographs")
def test_photographs(program, tmp_path):
    jpeg = compare(PHOTOS, tmp_path)
    assert jpeg["streams"] > 600 and jpeg["handed_back"] <= 5


@pytest.mark.slow
@pytest.mark.skipif(not PHOTOS.exists(), reason="no photographs")
def test_damaged_photographs(program, tmp_path):
    source = tmp_path / "damaged"
    source.mkdir()
    random = numpy.random.default_rng(SEED + 2)
    files = sorted(PHOTOS.glob("labelled/*/*.jpg"))
    for number in range(1500 if ALL else 300):
        data = files[random.integers(len(files))].read_bytes()
        (source / f"{number:04}.jpg").write_bytes(mutate(random, data))
    assert compare(source, tmp_path)["handed_back"] > 50


def read_thumbnails(path):
    with h5py.File(path) as file:
        ends = [0, *file["thumbnails/end"][:].tolist()]
        data = file["thumbnails/data"][:].tobytes()
        return [data[a:b] for a, b in zip(ends, ends[1:])]


@pytest.mark.parametrize("size", [32, pytest.param(130, marks=pytest.mark.slow)])
def test_thumbnails_from_devices(program, made, tmp_path, size):
    """Thumbnails made from streams equal those made from coefficients. The host makes thumbnails from pixels before the
    kernels are proven and while slots are full."""
    jpeg = compare(made, tmp_path, *SLOTS, "--threads", "1", "--thumbnails", str(size))
    assert jpeg["streams"] > 50
    host, coefficients, device = (read_thumbnails(tmp_path / f"{where}.h5")
                                  for where in ("host", "coefficients", "device"))
    assert all(device) and len(device) == len(host)
    # A file with "coefficients" may have one made from pixels, too.
    assert all(d in (h, c) or h == c for h, c, d in zip(host, coefficients, device))
    assert sum(d == c != h for h, c, d in zip(host, coefficients, device)) > 20


def test_large_thumbnails_are_made_on_the_host(program, made, tmp_path):
    jpeg = compare(made, tmp_path, *SLOTS, "--thumbnails", "300")
    assert jpeg["streams"] == 0


@pytest.mark.variations
@pytest.mark.skipif(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 5 << 30,
                    reason="a sixteenth of the memory is less")
@pytest.mark.parametrize("name, options, expected", [
    ("clpipe", ["--jpeg-pixels", "device"], 320 << 20),
    ("clpipe", ["--jpeg-pixels", "device", "--memory", "96M"], 96 << 20),
    ("clpipe", ["--jpeg-pixels", "coefficients"], 256 << 20),
    ("clpipe", ["--jpeg-pixels", "device", "--isolate"], 256 << 20),
    ("clpipe", [], 256 << 20),
    ("clpipe_null", [], 320 << 20),  # all devices accept streams
    ("clpipe_null", ["--jpeg-pixels", "host"], 256 << 20),
    ("clpipe_null", ["--memory", "256M"], 256 << 20),
])
def test_default_memory(program, made, tmp_path, name, options, expected):
    """The default is 64 MiB per thread if a device decodes entropy code."""
    path = CLPIPE.parent / name
    if not path.exists():
        pytest.skip(f"{path} is not built")
    done = subprocess.run([path, "ingest", made, "-o", tmp_path / "a.h5", "-q", "--json", "-", "--device",
                           "cpu", "--threads", "5", "--feature", "gray:bins=4", *options],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["memory_bytes"] == expected
