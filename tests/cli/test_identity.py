"""The identity of a result: the same whatever the threads, slots, memory and device."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import CLPIPE, ROOT, run_clpipe

PHOTOS = ROOT / ".." / "shared" / "data" / "photos"

FEATURES = ["--feature", "rgb:bins=256", "--feature", "gray:bins=100,normalize=none",
            "--feature", "hsv", "--feature", "rgb:bins=12,grid=3x3"]


def digest(output):
    result = run_clpipe("info", output, "--digest")
    assert result.returncode == 0, result.stderr
    text = result.stdout.strip()
    assert len(text) == 64
    return text


def ingest(output, *arguments, expect=0):
    result = run_clpipe("ingest", *arguments, "-o", output, "--device", "cpu")
    assert result.returncode == expect, result.stderr
    return digest(output)


@pytest.fixture(scope="module")
def varied(tmp_path_factory, program, mixed):
    """Real photographs of many sizes and orientations where they are present; else drawn ones with
    a picture of several megapixels. Broken files among them."""
    directory = tmp_path_factory.mktemp("varied")
    shutil.copytree(mixed / "bad", directory / "bad")
    if PHOTOS.is_dir():
        shutil.copytree(PHOTOS / "oriented", directory / "oriented")
        for path in sorted((PHOTOS / "labelled").glob("*/*.jpg"))[::20]:
            shutil.copy(path, directory)
        for name in ("dog-phone-orientation6.jpg", "flower-grey.jpg", "coffee-palette.png"):
            shutil.copy(PHOTOS / "large" / name, directory)
    else:
        import numpy
        from PIL import Image
        shutil.copytree(mixed, directory / "mixed")
        ramp = numpy.arange(3000 * 2000 * 3, dtype=numpy.uint32) * 2654435761 >> 20
        Image.fromarray(ramp.astype("uint8").reshape(2000, 3000, 3)).save(directory / "large.png")
    return directory


@pytest.fixture(scope="module")
def expected(varied, tmp_path_factory):
    return ingest(tmp_path_factory.mktemp("expected") / "o.h5", varied, *FEATURES, "--threads", 1,
                  expect=1)


@pytest.mark.parametrize("options", [
    ["--threads", 2],
    ["--threads", 7],
    ["--threads", 3, "--memory", "16M"],
    ["--threads", 2, "--slot-size", "1M", "--slots", 2],
    ["--threads", 7, "--slot-size", "1M", "--slots", 9],
    ["--threads", 2, "--slot-size", "3M", "--slots", 3],
    ["--threads", 4, "--slot-size", "64M", "--memory", "1G"],
    ["--threads", 2, "--device-memory", "8M"],
], ids=lambda options: " ".join(map(str, options)))
def test_machine_options_change_nothing(varied, expected, tmp_path, options):
    assert ingest(tmp_path / "o.h5", varied, *FEATURES, *options, expect=1) == expected


def test_content_options_change_it(varied, expected, tmp_path):
    other = ingest(tmp_path / "o.h5", varied, *FEATURES, "--alpha", "black", expect=1)
    assert other != expected


def small_subset(directory):
    """At most 2 megapixels in all: Oclgrind takes 6 seconds a megapixel."""
    from PIL import Image
    if PHOTOS.is_dir():
        candidates = (sorted((PHOTOS / "oriented").iterdir()) +
                      sorted((PHOTOS / "labelled").glob("*/*.jpg"))[::97])
    else:
        candidates = []
    pixels = 0
    for path in candidates:
        with Image.open(path) as image:
            pixels += image.width * image.height
        if pixels > 1_000_000:
            break
        shutil.copy(path, directory)
    return len(list(directory.iterdir()))


def test_oclgrind_gives_the_same(mixed, tmp_path):
    """Another OpenCL implementation, another compiler, a simulated device. (No joint histogram of
    power-of-two bins: Oclgrind 21.10 lacks the instruction that its compiler makes of it.)"""
    oclgrind = shutil.which("oclgrind")
    if not oclgrind:
        pytest.skip("oclgrind is not installed")
    directory = tmp_path / "small"
    directory.mkdir()
    if small_subset(directory) == 0:
        shutil.copytree(mixed, directory, dirs_exist_ok=True)
    arguments = ["ingest", str(directory), "--feature", "rgb:bins=256", "--feature",
                 "gray:bins=100,normalize=none", "--feature", "rgb:bins=12,grid=3x3",
                 "--threads", "2"]
    here = run_clpipe(*arguments, "-o", tmp_path / "here.h5", "--device", "cpu")
    there = subprocess.run([oclgrind, str(CLPIPE), *arguments, "-o", str(tmp_path / "there.h5"),
                            "--device", "Oclgrind", "--json", "-", "--slot-size", "1M"],
                           capture_output=True, text=True, timeout=280,
                           env=dict(os.environ, CLPIPE_NO_CACHE="1"))
    assert there.returncode == here.returncode, there.stderr
    assert '"device": "Oclgrind' in there.stdout, there.stdout
    assert digest(tmp_path / "there.h5") == digest(tmp_path / "here.h5")


def test_lists_and_directories(photos, tmp_path):
    """The same files in the same order from a list: the same images and features."""
    import h5py
    files = sorted((path for path in Path(photos).rglob("*") if path.is_file()),
                   key=lambda path: os.fsencode(path.relative_to(photos)))
    (tmp_path / "list").write_bytes(b"".join(os.fsencode(path) + b"\0" for path in files))
    ingest(tmp_path / "a.h5", photos)
    ingest(tmp_path / "b.h5", f"@{tmp_path / 'list'}")
    with h5py.File(tmp_path / "a.h5") as a, h5py.File(tmp_path / "b.h5") as b:
        assert len(a["images/path"]) == len(files)
        for name in ("features/rgb_256", "images/digest", "images/width", "images/format"):
            assert (a[name][:] == b[name][:]).all()
