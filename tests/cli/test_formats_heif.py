"""HEIF and AVIF: pixels equal those of libheif's own tool, the orientation is applied once, and hostile files are
refused."""

import json
import re
import shutil
import struct
import subprocess

import numpy
import pytest
from PIL import Image

from conftest import run_clpipe
from pictures import check, decoded, failures, over, scaled

HEIGHT, WIDTH = 22, 33
RANDOM = numpy.random.default_rng(19)
RGB = RANDOM.integers(0, 256, (HEIGHT, WIDTH, 3), dtype="uint8")
ALPHA = RANDOM.integers(0, 256, (HEIGHT, WIDTH), dtype="uint8")
SMOOTH = numpy.dstack([numpy.add.outer(numpy.arange(HEIGHT) * 3, numpy.arange(WIDTH) * k)
                       for k in (1, 2, 3)]).astype("uint8")
LOSSLESS = ("-L", "-p", "chroma=444", "--matrix_coefficients=0")
KINDS = {"heif": ("heic", ()), "avif": ("avif", ("-A",))}


@pytest.fixture(params=KINDS)
def encode(request, tmp_path, program):
    """A function that writes a picture in one of the two formats; its attribute `suffix` is the extension."""
    rows = json.loads(run_clpipe("formats", "--json", "-").stdout)
    row = next(row for row in rows if row["name"] == request.param)
    if not row["readable"]:
        pytest.skip(f"this build does not read {request.param}")
    if not shutil.which("heif-enc") or not shutil.which("heif-convert"):
        pytest.skip("libheif's tools are not installed (libheif-examples)")
    suffix, options = KINDS[request.param]

    def write(name, pixels, *more):
        png = tmp_path.parent / f"{tmp_path.name}.png"
        pixels.save(png) if isinstance(pixels, Image.Image) else Image.fromarray(pixels).save(png)
        target = tmp_path / f"{name}.{suffix}"
        done = subprocess.run(["heif-enc", *options, *more, png, "-o", target],
                              capture_output=True, text=True, check=False)
        if done.returncode or not target.exists():
            pytest.skip(f"heif-enc cannot write it here: {done.stderr.strip()}")
        return target

    write.suffix = suffix
    return write


def converted(path):
    """The pixels that libheif's own tool decodes from a file."""
    png = path.parent.parent / f"{path.parent.name}-{path.name}.png"
    subprocess.run(["heif-convert", path, png], check=True, stdout=subprocess.DEVNULL)
    return numpy.asarray(Image.open(png))


@pytest.mark.deep
def test_pixels(encode, tmp_path):
    wanted = {}
    for name, pixels, options in (("lossless", RGB, LOSSLESS), ("lossy", SMOOTH, ("-q", "80"))):
        path = encode(name, pixels, *options)
        wanted[path.name] = converted(path)
    path = encode("alpha", numpy.dstack([RGB, ALPHA]), *LOSSLESS)
    rgba = converted(path)
    wanted[path.name] = over(rgba[..., :3], rgba[..., 3])
    found = decoded(tmp_path)
    check(found, wanted)
    near = {"lossless": RGB, "alpha": over(RGB, ALPHA)}
    for name, pixels in near.items():
        away = found[f"{name}.{encode.suffix}"].astype(int) - pixels
        assert abs(away).max() <= 1, name


def test_ten_bits(encode, tmp_path):
    """Samples of ten bits are scaled from their full range."""
    import cv2
    deep = RANDOM.integers(0, 1024, (HEIGHT, WIDTH, 3), dtype="uint16")
    png = tmp_path.parent / "deep.png"
    cv2.imwrite(str(png), deep[..., ::-1] << 6)
    target = tmp_path / f"deep.{encode.suffix}"
    kind = ("-A",) if encode.suffix == "avif" else ()
    done = subprocess.run(["heif-enc", *kind, *LOSSLESS, "-b", "10", png, "-o", target],
                          capture_output=True, check=False)
    if done.returncode:
        pytest.skip("heif-enc cannot write ten bits here")
    found = decoded(tmp_path)[target.name].astype(int)
    assert abs(found - scaled(deep, 1023)).max() <= 1


def boxes(data, start, end):
    """Yields (name, begin, end) of each box in a part of a file."""
    while start < end:
        size = struct.unpack_from(">I", data, start)[0]
        yield data[start + 4:start + 8], start, start + size
        start += size


def box(name, body):
    return struct.pack(">I4s", 8 + len(body), name) + body


def with_property(data, added, before=False):
    """The file with a property added to its primary item, at the end or at the beginning of the list. The new
    `meta` box is at the end of the file."""
    _, start, end = next(b for b in boxes(data, 0, len(data)) if b[0] == b"meta")
    parts = {name: data[first + 8:last] for name, first, last in boxes(data, start + 12, end)}
    inner = {name: parts[b"iprp"][first + 8:last]
             for name, first, last in boxes(parts[b"iprp"], 0, len(parts[b"iprp"]))}
    index = 1 + len(list(boxes(inner[b"ipco"], 0, len(inner[b"ipco"]))))
    primary = parts[b"pitm"][4:6]
    # Version 0 has, for each item, its number, its count of properties, and a byte for each property.
    links, left = inner[b"ipma"][:8], inner[b"ipma"][8:]
    assert parts[b"pitm"][:4] == links[:4] == bytes(4)
    while left:
        count = left[2]
        if left[:2] == primary:
            lists = [left[3:3 + count], bytes([0x80 | index])]
            links += left[:2] + bytes([count + 1]) + b"".join(reversed(lists) if before else lists)
        else:
            links += left[:3 + count]
        left = left[3 + count:]
    parts[b"iprp"] = box(b"ipco", inner[b"ipco"] + added) + box(b"ipma", links)
    meta = data[start + 8:start + 12] + b"".join(box(*part) for part in parts.items())
    return data[:start + 4] + b"free" + data[start + 8:] + box(b"meta", meta)


def with_size(data, old, new):
    before, after = (b"ispe" + bytes(4) + struct.pack(">II", *size) for size in (old, new))
    assert before in data
    return data.replace(before, after)


@pytest.mark.deep
@pytest.mark.parametrize("turns", [1, 2, 3])
def test_rotation(encode, tmp_path, turns):
    """The rotation in the container is applied once, wherever the size is in the list of properties, even if it is
    the size after the rotation."""
    # The picture is made of whole coded blocks, so that their shape tells which size is stored.
    pixels = RANDOM.integers(0, 256, (64, 80, 3), dtype="uint8")
    data = encode("plain", pixels, *LOSSLESS).read_bytes()
    irot = box(b"irot", bytes([turns]))
    (tmp_path / "turned").write_bytes(with_property(data, irot))
    (tmp_path / "first").write_bytes(with_property(data, irot, before=True))
    if turns != 2:
        swapped = with_size(data, (80, 64), (64, 80))
        (tmp_path / "after").write_bytes(with_property(swapped, irot))
        (tmp_path / "after first").write_bytes(with_property(swapped, irot, before=True))
    plain = converted(tmp_path / f"plain.{encode.suffix}")
    (tmp_path / f"plain.{encode.suffix}").unlink()
    found = decoded(tmp_path)
    assert len(found) == (2 if turns == 2 else 4)
    check(found, dict.fromkeys(found, numpy.rot90(plain, turns)))


@pytest.mark.deep
def test_crop_before_the_size(encode, tmp_path):
    pixels = RGB[:, :32]
    data = encode("plain", pixels, *LOSSLESS).read_bytes()
    clap = box(b"clap", struct.pack(">8i", 10, 1, 6, 1, -3, 1, 2, 1))
    for name, before in (("last", False), ("first", True)):
        (tmp_path / name).write_bytes(with_property(data, clap, before))
    (tmp_path / f"plain.{encode.suffix}").unlink()
    found = decoded(tmp_path)
    assert found["first"].shape == (6, 10, 3) and (found["first"] == found["last"]).all()


@pytest.mark.deep
@pytest.mark.parametrize("turns", [0, 1])
@pytest.mark.parametrize("bits", ["8", "10"])
@pytest.mark.parametrize("axis", [0, 1])
def test_mirror(encode, tmp_path, bits, axis, turns):
    """Pictures are mirrored after the rotation, with samples of any depth; libheif does not mirror them."""
    data = encode("plain", RGB[:, :32], *LOSSLESS, "-b", bits).read_bytes()
    plain = numpy.rot90(decoded(tmp_path)["plain." + encode.suffix], turns)
    for path in tmp_path.iterdir():
        path.unlink()
    for turn in range(turns):
        data = with_property(data, box(b"irot", bytes([1])))
    for before in (False, True) if turns == 0 else (False,):
        (tmp_path / f"mirrored {before}").write_bytes(with_property(data, box(b"imir", bytes([axis])), before))
    found = decoded(tmp_path)
    check(found, dict.fromkeys(found, plain[::-1] if axis == 0 else plain[:, ::-1]))


@pytest.mark.variations
@pytest.mark.parametrize("bits", [8, 10])
@pytest.mark.parametrize("full", [0, 1])
def test_grey_of_limited_range(encode, tmp_path, full, bits):
    """In the limited range, black is 16 and white is 235. The range stated in the container takes precedence."""
    grey = numpy.arange(HEIGHT * 32, dtype="uint8").reshape(HEIGHT, 32)
    path = encode("grey", grey, "-L", "-b", str(bits))
    data = path.read_bytes()
    path.write_bytes(with_property(data, box(b"colr", b"nclx\0\1\0\1\0\1" + bytes([0x80 * full]))))
    found = decoded(tmp_path)[path.name].astype(int)
    deep = grey.astype(int) if bits == 8 else grey.astype(int) * 4 + (grey >> 6)
    low, high = (16 << bits - 8, 235 << bits - 8) if not full else (0, (1 << bits) - 1)
    wanted = ((deep - low) / (high - low) * 255).clip(0, 255)
    assert abs(found - wanted[..., None]).max() <= (1 if bits == 8 else 1.5)  # ten bits are less exact


def test_truncated_and_invalid(encode, tmp_path):
    path = encode("whole", RGB, *LOSSLESS)
    data = path.read_bytes()
    for share in (3, 20, 60, 99):
        (tmp_path / f"cut {share}").write_bytes(data[:len(data) * share // 100])
    large = re.sub(b"ispe....\0\0......", b"ispe\0\0\0\0" + b"\0\1\0\0" * 2, data,
                   flags=re.DOTALL)
    assert large != data
    (tmp_path / "too large").write_bytes(large)
    (tmp_path / "no primary").write_bytes(data.replace(b"pitm", b"pitn"))
    (tmp_path / "other brand").write_bytes(data.replace(b"ftyp" + data[8:12], b"ftypmif1", 1))
    if encode.suffix == "heic":  # AV1 cannot detect this damage
        at = len(data) * 2 // 3
        (tmp_path / "overwritten").write_bytes(data[:at] + bytes(40) + data[at + 40:])
    failed, images = failures(tmp_path)
    if encode.suffix == "heic":
        assert failed.pop("overwritten")[0] == "corrupt"
    assert sorted(images) == ["other brand", path.name]
    assert {name: reason for name, (reason, _) in failed.items()} == {
        "cut 3": "truncated", "cut 20": "truncated", "cut 60": "truncated", "cut 99": "truncated",
        "too large": "too-large", "no primary": "corrupt"}
