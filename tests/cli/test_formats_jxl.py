"""JPEG XL: pixels equal those that were written or those of libjxl's own tool; hostile files are refused."""

import json
import shutil
import subprocess

import cv2
import numpy
import pytest
from PIL import Image

from conftest import run_clpipe
from pictures import check, decoded, failures, over, scaled

HEIGHT, WIDTH = 13, 19
RANDOM = numpy.random.default_rng(23)
RGB = RANDOM.integers(0, 256, (HEIGHT, WIDTH, 3), dtype="uint8")
ALPHA = RANDOM.integers(0, 256, (HEIGHT, WIDTH), dtype="uint8")


@pytest.fixture
def encode(tmp_path, program):
    """A function that writes a picture as JPEG XL."""
    rows = json.loads(run_clpipe("formats", "--json", "-").stdout)
    if not next(row["readable"] for row in rows if row["name"] == "jxl"):
        pytest.skip("this build does not read jxl")
    if not shutil.which("cjxl") or not shutil.which("djxl"):
        pytest.skip("libjxl's tools are not installed (libjxl-tools)")

    def write(name, pixels, *options, suffix="png", **saving):
        source = tmp_path.parent / f"{tmp_path.name}.{suffix}"
        if isinstance(pixels, numpy.ndarray) and pixels.dtype == "uint16":
            cv2.imwrite(str(source), pixels[..., ::-1] if pixels.ndim == 3 else pixels)
        else:
            Image.fromarray(pixels).save(source, **saving)
        target = tmp_path / f"{name}.jxl"
        done = subprocess.run(["cjxl", source, target, *map(str, options)], capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0, done.stderr
        return target

    return write


def converted(path, mode="RGB"):
    """The pixels that libjxl's own tool decodes from a file."""
    png = path.parent.parent / f"{path.parent.name}-{path.name}.png"
    subprocess.run(["djxl", path, png], check=True, capture_output=True)
    return numpy.asarray(Image.open(png).convert(mode))


@pytest.mark.deep
def test_lossless(encode, tmp_path):
    deep = RANDOM.integers(0, 65536, (HEIGHT, WIDTH, 3), dtype="uint16")
    rgba = numpy.dstack([RGB, ALPHA])
    wanted = {}
    for name, pixels, shown in (
            ("rgb", RGB, RGB), ("grey", RGB[..., 0], RGB[..., 0]),
            ("alpha", rgba, over(RGB, ALPHA)), ("deep", deep, scaled(deep, 65535)),
            ("deep grey", deep[..., 1], scaled(deep[..., 1], 65535))):
        for effort in (1, 5):
            path = encode(f"{name} {effort}", pixels, "-d", 0, "-e", effort)
            wanted[path.name] = shown
            if name == "alpha" and effort == 1:  # cjxl 0.11 writes one pixel wrong
                made = converted(path, "RGBA")
                wanted[path.name] = over(made[..., :3], made[..., 3])
    wanted[encode("boxes", RGB, "-d", 0, "--container=1").name] = RGB
    check(decoded(tmp_path), wanted)
    # With little memory, the pictures are cut into strips, which does not change them.
    check(decoded(tmp_path, "--memory", "16M"), wanted)


def test_alpha_dropped(encode, tmp_path):
    rgba = numpy.dstack([RGB, numpy.maximum(ALPHA, 1)])
    path = encode("alpha", rgba, "-d", 0)
    check(decoded(tmp_path, "--alpha", "drop"), {path.name: RGB})


def test_lossy(encode, tmp_path):
    smooth = numpy.dstack([numpy.add.outer(numpy.arange(HEIGHT) * 9, numpy.arange(WIDTH) * k)
                           for k in (1, 4, 7)]).astype("uint8")
    wanted = {}
    for name, options in (("lossy", ("-d", 1)), ("progressive", ("-d", 2, "-p")),
                          ("modular", ("-d", 1, "-m", 1))):
        path = encode(name, smooth, *options)
        wanted[path.name] = converted(path)
    found = decoded(tmp_path)
    assert set(found) == set(wanted)
    for name, pixels in wanted.items():
        assert abs(found[name].astype(int) - pixels).max() <= 1, name


def test_first_frame(encode, tmp_path):
    path = encode("frames", RGB, "-d", 0, save_all=True, duration=100,
                  append_images=[Image.fromarray(255 - RGB)])
    check(decoded(tmp_path), {path.name: RGB})


@pytest.mark.variations
@pytest.mark.parametrize("orientation", range(2, 9))
def test_orientation(encode, tmp_path, orientation):
    exif = Image.Exif()
    exif[0x112] = orientation
    path = encode("turned", RGB, suffix="jpg", quality=95, exif=exif)
    wanted = converted(path)
    found = decoded(tmp_path)[path.name]
    turned = (WIDTH, HEIGHT) if orientation > 4 else (HEIGHT, WIDTH)
    assert found.shape[:2] == wanted.shape[:2] == turned
    assert abs(found.astype(int) - wanted).max() <= 1


def test_truncated_and_invalid(encode, tmp_path):
    path = encode("whole", RANDOM.integers(0, 256, (99, 99, 3), dtype="uint8"), "-d", 0)
    boxed = encode("boxed", RGB, "-d", 0, "--container=1")
    for source in (path, boxed):
        data = source.read_bytes()
        for share in (10, 50, 95):
            (tmp_path / f"{source.stem} {share}").write_bytes(data[:len(data) * share // 100])
    # A header with sides of 30 bits.
    (tmp_path / "too large").write_bytes(b"\xff\x0a" + b"\xfe\xff\xff\xff\xff\xff\xff\xff" + bytes(20))
    (tmp_path / "nothing").write_bytes(b"\xff\x0a" + bytes(40))
    failed, images = failures(tmp_path)
    assert sorted(images) == ["boxed.jxl", "whole.jxl"]
    reasons = {name: reason for name, (reason, _) in failed.items()}
    assert reasons.pop("nothing") in ("corrupt", "truncated")
    assert reasons == {"too large": "too-large",
                       **{f"{stem} {share}": "truncated" for stem in ("whole", "boxed")
                          for share in (10, 50, 95)}}
