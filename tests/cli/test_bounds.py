"""Memory does not grow with the number or the size of the pictures, and decoding starts at once."""

import json
import os

import numpy
import pytest
from PIL import Image

from conftest import ROOT, run_clpipe

LARGE = ROOT.parent / "shared" / "data" / "photos" / "large"
LONG = pytest.mark.skipif(not os.environ.get("CLPIPE_LONG"), reason="only in tools/check --long")
MIB = 1 << 20


def peak(source, output, *options, status=0):
    """The peak memory of a run in bytes. The kernels should be cached, since building them takes another 200 MB."""
    result = run_clpipe("ingest", source, "-o", output, "--fresh", "--json", "-", "-q", *options,
                        timeout=280)
    assert result.returncode == status, result.stderr
    return json.loads(result.stdout)["peak_rss_bytes"]


def draw_small(directory, count):
    """`count` links to 100 small JPEGs, in folders of 1,000 each."""
    random = numpy.random.default_rng(3)
    directory.mkdir()
    for i in range(count):
        path = directory / f"{i // 1000:03}" / f"{i:06}.jpg"
        if i < 100:
            path.parent.mkdir(exist_ok=True)
            pixels = random.integers(0, 256, (9 + i % 7, 16, 3), dtype=numpy.uint8)
            Image.fromarray(pixels).save(path)
        else:
            path.parent.mkdir(exist_ok=True)
            os.link(directory / "000" / f"{i % 100:06}.jpg", path)
    return directory


def draw_progressive(directory, count):
    """`count` links to a progressive JPEG of 10 megapixels, which has 30 MB of coefficients."""
    ramp = numpy.add.outer(numpy.arange(2560), numpy.arange(3840)) // 16 % 256
    pixels = numpy.stack([ramp, ramp[::-1], ramp[:, ::-1]], 2).astype(numpy.uint8)
    directory.mkdir()
    Image.fromarray(pixels).save(directory / "00.jpg", progressive=True, quality=60)
    for i in range(1, count):
        os.link(directory / "00.jpg", directory / f"{i:02}.jpg")
    return directory


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_pictures(program, tmp_path):
    """Each picture has 32 KiB of counters. If they were kept, 2,000 more pictures would need 64 MiB."""
    options = ["--feature", "rgb:bins=8x8x8,grid=4x4", "--memory", "16M"]
    few = draw_small(tmp_path / "few", 1000)
    many = draw_small(tmp_path / "many", 3000)
    peak(few, tmp_path / "few.h5", *options)
    small = min(peak(few, tmp_path / "few.h5", *options) for _ in range(2))
    large = min(peak(many, tmp_path / "many.h5", *options) for _ in range(2))
    assert large - small < 16 * MIB


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_threads(program, tmp_path):
    """The memory limit admits one of these pictures at a time. A thread returns freed memory to the system before
    the next thread decodes a picture."""
    source = draw_progressive(tmp_path / "progressive", 10)
    options = ["--memory", "64M", "--decode-scale", "8"]
    one = peak(source, tmp_path / "out.h5", "--threads", 1, *options)
    one = min(one, peak(source, tmp_path / "out.h5", "--threads", 1, *options))
    eight = peak(source, tmp_path / "out.h5", "--threads", 8, *options)
    assert eight - one < 48 * MIB


@LONG
@pytest.mark.parametrize("threads", [1, 8])
def test_fifty_thousand(program, tmp_path, threads):
    source = draw_small(tmp_path / "small", 50000)
    assert peak(source, tmp_path / "out.h5", "--threads", threads) < 512 * MIB


@LONG
@pytest.mark.parametrize("threads", [1, 8])
def test_large_photographs(program, tmp_path, threads):
    source = LARGE if LARGE.exists() else draw_progressive(tmp_path / "progressive", 64)
    links = tmp_path / "links"
    links.mkdir()
    for path in sorted(source.iterdir()):
        for i in range(4 if LARGE.exists() else 1):
            (links / f"{i}-{path.name}").symlink_to(path)
    features = ["--feature", "rgb:bins=256", "--feature", "hsv,grid=3x3", "--feature", "gray"]
    assert peak(links, tmp_path / "out.h5", "--threads", threads, *features) < 512 * MIB


@pytest.mark.deep
def test_decoding_does_not_wait_for_kernels(clpipe, photos, tmp_path):
    """With an empty cache, kernels are built while pictures are being decoded."""
    cache = {"CLPIPE_CACHE_DIR": tmp_path / "cache", "POCL_CACHE_DIR": tmp_path / "pocl"}
    result = clpipe("ingest", photos, "-o", "out.h5", "-q", "--profile", "trace.json", env=cache)
    assert result.returncode == 0, result.stderr
    first = {}
    for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]:
        if event["ph"] == "X":
            first[event["name"]] = min(event["ts"], first.get(event["name"], event["ts"]))
    kernels = [at for name, at in first.items() if name.startswith("histogram_")]
    assert first["decode"] < min(kernels)


@pytest.mark.deep
def test_kernels_of_other_programs_are_not_read(clpipe, photos, tmp_path):
    """The cache may hold thousands of kernels, and each start would copy them. A damaged kernel is removed when it
    is read, so if it is still there, it was not read."""
    kernels = tmp_path / "cache" / "kernels"
    kernels.mkdir(parents=True)
    version = clpipe("--version").stdout.split()[1]
    other = kernels / f"{version},ZZ,ABCDEF,k,1-1-1,k.so"
    other.write_bytes(b"damaged")
    for path in (kernels, kernels.parent):
        path.chmod(0o700)
    for output in ("first.h5", "second.h5"):
        result = clpipe("ingest", photos, "-o", output, "-q", "--feature", "rgb:bins=256",
                        env={"CLPIPE_CACHE_DIR": tmp_path / "cache"})
        assert result.returncode == 0, result.stderr
        assert other.read_bytes() == b"damaged" and len(list(kernels.iterdir())) > 1
