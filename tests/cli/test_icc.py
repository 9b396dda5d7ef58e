"""--icc apply: the pixels of every format equal those of Pillow's ImageCms, which also uses lcms2. Tests profiles that
are broken, hostile or for another kind of pixels, and that the option is one of the parameters of a file."""

import io
import json
import re
import shutil
import struct
import subprocess
import time
import zlib

import numpy
import pytest
from PIL import Image, ImageCms

from conftest import check_one_error, run_clpipe
from pictures import check, over, tiff, tiff_tags
from pictures import decoded as decoded_into

HEIGHT, WIDTH = 9, 14
RANDOM = numpy.random.default_rng(29)
RGB = RANDOM.integers(0, 256, (HEIGHT, WIDTH, 3), dtype="uint8")
ALPHA = RANDOM.integers(0, 256, (HEIGHT, WIDTH), dtype="uint8")
CMYK = RANDOM.integers(0, 256, (HEIGHT, WIDTH, 4), dtype="uint8")
SRGB = ImageCms.createProfile("sRGB")


# --- profiles -------------------------------------------------------------------------------------

def profile(space, tags, pcs="XYZ ", kind="mntr", version=0x02400000):
    """An ICC profile; `tags` is {name: content}."""
    at, table, data = 132 + 12 * len(tags), b"", b""
    for name, content in tags.items():
        table += name.encode() + struct.pack(">II", at + len(data), len(content))
        data += content + b"\0" * (-len(content) % 4)
    head = struct.pack(">I4sI4s4s4s", at + len(data), b"test", version, kind.encode(),
                       space.encode(), pcs.encode())
    head += struct.pack(">6H", 2024, 1, 1, 0, 0, 0) + b"acsp" + bytes(28)
    head += struct.pack(">III", 0xf6d6, 0x10000, 0xd32d)
    return head.ljust(128, b"\0") + struct.pack(">I", len(tags)) + table + data


def xyz(*values):
    return b"XYZ \0\0\0\0" + struct.pack(">3i", *(round(v * 65536) for v in values))


def gamma(value):
    return b"curv\0\0\0\0" + struct.pack(">IHxx", 1, round(value * 256))


def lut(channels, points):
    """An 8-bit table from `channels` channels to L*a*b*, with colours like those of inks (4 channels) or lights."""
    grid = numpy.stack(numpy.meshgrid(*[numpy.linspace(0, 1, points)] * channels, indexing="ij"), -1)
    light = (1 - grid[..., :3]) * (1 - grid[..., 3:]) if channels == 4 else grid
    lab = [light.mean(-1) ** 1.2 * 255, 128 + 70 * (light[..., 0] - light[..., 1]),
           128 + 70 * (light[..., 1] - light[..., 2])]
    straight = bytes(range(256))
    return (b"mft1\0\0\0\0" + bytes([channels, 3, points, 0]) +
            struct.pack(">9i", *(65536 * (i % 4 == 0) for i in range(9))) + straight * channels +
            numpy.stack(lab, -1).round().astype("uint8").tobytes() + straight * 3)


WIDE = {"rXYZ": xyz(.51512, .24120, -.00105), "gXYZ": xyz(.29198, .69225, .04189),
        "bXYZ": xyz(.15710, .06657, .78407), "wtpt": xyz(.9642, 1, .8249),
        "rTRC": gamma(2.2), "gTRC": gamma(1.8), "bTRC": gamma(2.6)}
MATRIX = profile("RGB ", WIDE)
TABLE = profile("RGB ", {"A2B0": lut(3, 5), "wtpt": xyz(.9642, 1, .8249)}, "Lab ", "scnr")
GREY = profile("GRAY", {"kTRC": gamma(1.3), "wtpt": xyz(.9642, 1, .8249)})
INKS = profile("CMYK", {"A2B0": lut(4, 4), "wtpt": xyz(.9642, 1, .8249)}, "Lab ", "prtr")
LONG = profile("RGB ", WIDE | {"long": bytes(RANDOM.integers(0, 256, 150000, dtype="uint8"))})


def shown(pixels, icc, mode="RGB"):
    """The pixels (an array or an image) after Pillow has applied the profile."""
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels, mode)
    transform = ImageCms.buildTransform(io.BytesIO(icc), SRGB, image.mode, "RGB",
                                        renderingIntent=ImageCms.Intent.PERCEPTUAL)
    return numpy.asarray(ImageCms.applyTransform(image, transform))


@pytest.fixture(autouse=True)
def needs(program):
    if "lcms2" not in run_clpipe("--version").stdout:
        pytest.skip("this build has no lcms2")


def need(name):
    rows = json.loads(run_clpipe("formats", "--json", "-").stdout)
    if not next(row["readable"] for row in rows if row["name"] == name):
        pytest.skip(f"this build does not read {name}")


def decoded(directory, *options):
    return decoded_into(directory, "--fresh", *options)


def check_applied(directory, wanted):
    """Checks pictures decoded in one piece, in strips, and in an isolated process."""
    for options in ([], ["--memory", "16M", "--threads", 3], ["--isolate"]):
        check(decoded(directory, "--icc", "apply", *options), wanted)


def saved(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


# --- formats --------------------------------------------------------------------------------------

def test_profiles_are_applied(tmp_path):
    """Only formats that every build reads are tested here."""
    image = Image.fromarray(RGB)
    wanted = {}
    for form, options in ("JPEG", {"quality": 90, "subsampling": 2}), ("PNG", {}):
        data = saved(image, form, icc_profile=MATRIX, **options)
        (tmp_path / form).write_bytes(data)
        wanted[form] = shown(Image.open(io.BytesIO(data)), MATRIX)
    check(decoded(tmp_path, "--icc", "apply"), wanted)


@pytest.mark.deep
def test_jpeg(tmp_path):
    rgb, grey, inks = Image.fromarray(RGB), Image.fromarray(RGB[..., 0]), Image.fromarray(CMYK, "CMYK")
    wanted = {}
    for name, image, icc in (("matrix", rgb, MATRIX), ("table", rgb, TABLE), ("long", rgb, LONG),
                             ("grey", grey, GREY), ("inks", inks, INKS)):
        data = saved(image, "JPEG", quality=90, icc_profile=icc, subsampling=0)
        (tmp_path / name).write_bytes(data)
        wanted[name] = shown(Image.open(io.BytesIO(data)), icc)
    # Without Adobe's marker the samples are not inverted; Pillow inverts them in any case.
    plain = re.sub(rb"\xff\xee\0\x0eAdobe.{7}", b"", saved(inks, "JPEG", icc_profile=INKS),
                   flags=re.DOTALL)
    (tmp_path / "plain").write_bytes(plain)
    wanted["plain"] = shown(255 - numpy.asarray(Image.open(io.BytesIO(plain))), INKS, "CMYK")
    assert len((tmp_path / "long").read_bytes().split(b"ICC_PROFILE\0")) == 4
    check_applied(tmp_path, wanted)
    ignored = decoded(tmp_path)
    assert all((ignored[name] != wanted[name]).mean() > .1 for name in wanted)


def png_chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(samples, kind, depth, icc, *chunks):
    height, width = samples.shape[:2]
    rows = samples.astype(">u2" if depth == 16 else "u1")
    iccp = png_chunk(b"iCCP", b"x\0\0" + zlib.compress(icc))
    return (b"\x89PNG\r\n\x1a\n" +
            png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)) + iccp +
            b"".join(png_chunk(*chunk) for chunk in chunks) +
            png_chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))) +
            png_chunk(b"IEND", b""))


@pytest.mark.deep
def test_png(tmp_path):
    deep = RANDOM.integers(0, 65536, (HEIGHT, WIDTH, 3), dtype="uint16")
    colours = RANDOM.integers(0, 256, (256, 3), dtype="uint8")
    index = RGB[..., 1]
    keyed = numpy.where((RGB == RGB[3, 4]).all(-1), 0, 255).astype("uint8")
    colour, grey = shown(RGB, MATRIX), shown(RGB[..., 0], GREY, "L")
    files = {
        "rgb": (png(RGB, 2, 8, MATRIX), colour),
        "table": (png(RGB, 2, 8, TABLE), shown(RGB, TABLE)),
        "rgba": (png(numpy.dstack([RGB, ALPHA]), 6, 8, MATRIX), over(colour, ALPHA)),
        "grey": (png(RGB[..., 0], 0, 8, GREY), grey),
        "grey alpha": (png(numpy.dstack([RGB[..., 0], ALPHA]), 4, 8, GREY), over(grey, ALPHA)),
        "deep": (png(deep, 2, 16, MATRIX),
                 shown(((deep.astype("u4") * 255 + 32767) // 65535).astype("u1"), MATRIX)),
        "palette": (png(index, 3, 8, MATRIX, (b"PLTE", colours.tobytes())),
                    shown(colours[index], MATRIX)),
        "palette alpha": (png(index, 3, 8, MATRIX, (b"PLTE", colours.tobytes()),
                              (b"tRNS", bytes(range(256)))),
                          over(shown(colours[index], MATRIX), index)),
        "key": (png(RGB, 2, 8, MATRIX, (b"tRNS", RGB[3, 4].astype(">u2").tobytes())),
                over(colour, keyed)),
    }
    for name, (data, _) in files.items():
        (tmp_path / name).write_bytes(data)
    check_applied(tmp_path, {name: pixels for name, (_, pixels) in files.items()})
    assert numpy.array_equal(decoded(tmp_path, "--icc", "apply", "--alpha", "drop")["rgba"], colour)
    assert numpy.array_equal(decoded(tmp_path, "--icc", "apply", "--alpha", "black")["rgba"],
                             over(colour, ALPHA, 0))


@pytest.mark.deep
def test_webp(tmp_path):
    need("webp")
    rgba = numpy.dstack([RGB, ALPHA])
    options = {"lossless": True, "exact": True, "icc_profile": MATRIX}
    for name, pixels in (("rgb", RGB), ("rgba", rgba)):
        (tmp_path / name).write_bytes(saved(Image.fromarray(pixels), "WEBP", **options))
    (tmp_path / "moving").write_bytes(saved(Image.fromarray(rgba), "WEBP", save_all=True,
                                            append_images=[Image.fromarray(rgba[::-1])], **options))
    colour = shown(RGB, MATRIX)
    check_applied(tmp_path, {"rgb": colour, "rgba": over(colour, ALPHA),
                             "moving": over(colour, ALPHA)})


@pytest.mark.deep
def test_tiff(tmp_path):
    need("tiff")
    colours = RANDOM.integers(0, 256, (256, 3), dtype="uint8")
    alpha = numpy.maximum(ALPHA, 1)
    multiplied = (RGB.astype("u4") * alpha[..., None] // 255).astype("uint8")
    divided = numpy.minimum((multiplied.astype("u4") * 255 + alpha[..., None] // 2) //
                            alpha[..., None], 255).astype("uint8")

    def page(samples, photometric, icc, blocks=None, bits=8, **more):
        count = samples.shape[2] if samples.ndim == 3 else 1
        tags = tiff_tags(WIDTH, HEIGHT, bits, count, photometric, **more)
        tags[34675] = (7, icc)
        if photometric == 3:
            tags[320] = (3, (colours.T.astype("u2") * 257).ravel().tolist())
        return tiff(tags, blocks or [samples.tobytes()], tiled="tile" in more)

    tile = numpy.zeros((16, 16, 3), dtype="uint8")
    tile[:HEIGHT, :WIDTH] = RGB
    files = {
        "rgb": (page(RGB, 2, MATRIX), shown(RGB, MATRIX)),
        "tiles": (page(RGB, 2, MATRIX, [tile.tobytes()], tile=(16, 16)), shown(RGB, MATRIX)),
        "planes": (page(RGB, 2, MATRIX, [RGB[..., i].tobytes() for i in range(3)], planar=2),
                   shown(RGB, MATRIX)),
        "deep": (page(RGB.astype("<u2") * 257, 2, MATRIX, bits=16), shown(RGB, MATRIX)),
        "grey": (page(RGB[..., 0], 1, GREY), shown(RGB[..., 0], GREY, "L")),
        "white": (page(RGB[..., 0], 0, GREY), shown(255 - RGB[..., 0], GREY, "L")),
        "palette": (page(RGB[..., 1], 3, MATRIX), shown(colours[RGB[..., 1]], MATRIX)),
        "inks": (page(CMYK, 5, INKS), shown(CMYK, INKS, "CMYK")),
        "inks alpha": (page(numpy.dstack([CMYK, ALPHA]), 5, INKS, extra=2),
                       over(shown(CMYK, INKS, "CMYK"), ALPHA)),
        "alpha": (page(numpy.dstack([RGB, ALPHA]), 2, MATRIX, extra=2),
                  over(shown(RGB, MATRIX), ALPHA)),
        "multiplied": (page(numpy.dstack([multiplied, alpha]), 2, MATRIX, extra=1),
                       over(shown(divided, MATRIX), alpha)),
    }
    for name, (data, _) in files.items():
        (tmp_path / name).write_bytes(data)
    check_applied(tmp_path, {name: pixels for name, (_, pixels) in files.items()})


@pytest.mark.deep
@pytest.mark.parametrize("form", ["heif", "avif", "jxl"])
def test_encoded(tmp_path, form):
    """The library's tool converts PNG files with profiles. The pixels must equal those that lcms2 computes from
    the pixels decoded without the profile."""
    need(form)
    tool = {"heif": ["heif-enc", "-L", "-p", "chroma=444", "--matrix_coefficients=0"],
            "avif": ["heif-enc", "-A", "-L", "-p", "chroma=444", "--matrix_coefficients=0"],
            "jxl": ["cjxl", "-d", "0"]}[form]
    if not shutil.which(tool[0]):
        pytest.skip(f"{tool[0]} is not installed")
    source = tmp_path.parent / f"{tmp_path.name}.png"
    for name, pixels, kind, icc in (("rgb", RGB, 2, MATRIX), ("table", RGB, 2, TABLE),
                                    ("alpha", numpy.dstack([RGB, ALPHA]), 6, MATRIX),
                                    ("grey", RGB[..., 0], 0, GREY)):
        if name == "grey" and form != "jxl":
            continue
        source.write_bytes(png(pixels, kind, 8, icc))
        target = tmp_path / f"{name}.{form}"
        command = ([*tool, source, "-o", target] if form != "jxl" else [*tool, source, target])
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not target.exists():
            pytest.skip(f"{tool[0]} cannot write it here: {done.stderr.strip()}")
    plain = decoded(tmp_path, "--alpha", "drop")
    wanted = {name: shown(plain[name], TABLE if name.startswith("table") else MATRIX)
              for name in plain if not name.startswith("grey")}
    alpha = f"alpha.{form}"
    wanted[alpha] = over(wanted[alpha], ALPHA)
    if form == "jxl":
        wanted["grey.jxl"] = shown(RGB[..., 0], GREY, "L")
        assert numpy.array_equal(plain["rgb.jxl"], RGB)
    check_applied(tmp_path, wanted)


# --- profiles that are not applied ----------------------------------------------------------------

def jpeg_with(chunks):
    """A JPEG with a profile in chunks, which are given as (number, count, data)."""
    data = saved(Image.fromarray(RGB), "JPEG", quality=90, subsampling=0)
    segments = b"".join(b"\xff\xe2" + struct.pack(">H", 16 + len(content)) + b"ICC_PROFILE\0" +
                        bytes([number, count]) + content for number, count, content in chunks)
    return data[:2] + segments + data[2:]


def stages(count):
    """A profile with many floating-point stages that share one offset."""
    matrix = b"matf\0\0\0\0" + struct.pack(">HH", 3, 3) + struct.pack(
        ">12f", *[1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])
    tag = b"mpet\0\0\0\0" + struct.pack(">HHI", 3, 3, count)
    at = len(tag) + 8 * count
    tag += struct.pack(">II", at, len(matrix)) * count + matrix
    return profile("RGB ", WIDE | {"D2B0": tag}, version=0x04400000)


def tables(count, points=32):
    """The same with tables: each stage takes a further points ** 3 * 3 * 4 bytes."""
    table = (b"clut\0\0\0\0" + struct.pack(">HH", 3, 3) + bytes([points] * 3).ljust(16, b"\0") +
             bytes(points ** 3 * 12))
    tag = b"mpet\0\0\0\0" + struct.pack(">HHI", 3, 3, count)
    at = len(tag) + 8 * count
    tag += struct.pack(">II", at, len(table)) * count + table
    return profile("RGB ", WIDE | {"D2B0": tag}, version=0x04400000)


@pytest.mark.deep
def test_not_applied(tmp_path):
    """A profile that is broken, hostile, too large or for another kind of pixels leaves the picture unchanged."""
    half = len(MATRIX) // 2
    files = {
        "good.jpg": jpeg_with([(1, 1, MATRIX)]),
        "good order.jpg": jpeg_with([(2, 2, MATRIX[half:]), (1, 2, MATRIX[:half])]),
        "none.jpg": jpeg_with([]),
        "missing.jpg": jpeg_with([(1, 2, MATRIX)]),
        "twice.jpg": jpeg_with([(1, 1, MATRIX), (1, 1, MATRIX)]),
        "zero.jpg": jpeg_with([(0, 0, MATRIX)]),
        "counts.jpg": jpeg_with([(1, 2, MATRIX[:half]), (2, 3, MATRIX[half:])]),
        "cut.jpg": jpeg_with([(1, 1, MATRIX[:200])]),
        "empty.jpg": jpeg_with([(1, 1, b"")]),
        "inks.jpg": jpeg_with([(1, 1, INKS)]),
        "grey.jpg": jpeg_with([(1, 1, GREY)]),
        "link.jpg": jpeg_with([(1, 1, profile("RGB ", WIDE, kind="link"))]),
        "crc.png": png(RGB, 2, 8, MATRIX).replace(b"iCCPx", b"iCCPy"),
        "cut.png": png(RGB, 2, 8, MATRIX[:300]),
        "grey.png": png(RGB, 2, 8, GREY),
        "large.png": png(RGB, 2, 8, MATRIX[:4] + bytes(5 << 20)),
        "bomb.png": png(RGB, 2, 8, struct.pack(">I", 5 << 20) + MATRIX[4:] + bytes(50 << 20)),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    applied, ignored = decoded(tmp_path, "--icc", "apply"), decoded(tmp_path)
    good = shown(ignored["none.jpg"], MATRIX)
    for name, pixels in ignored.items():
        wanted = good if name.startswith("good") else pixels
        assert numpy.array_equal(applied[name], wanted), name
    assert not numpy.array_equal(good, ignored["none.jpg"])


def test_hostile(tmp_path):
    """Profiles that would need hours or gigabytes are rejected quickly and with little memory."""
    (tmp_path / "stages.png").write_bytes(png(RGB, 2, 8, stages(100000)))
    (tmp_path / "tables.png").write_bytes(png(RGB, 2, 8, tables(20000)))
    result = run_clpipe("ingest", tmp_path, "-o", tmp_path / "plain.h5", "-q", "--json", "-")
    before = json.loads(result.stdout)["peak_rss_bytes"]
    start = time.monotonic()
    result = run_clpipe("ingest", tmp_path, "-o", tmp_path / "out.h5", "-q", "--json", "-", "--icc",
                        "apply", "--threads", 1, "--exclude", "*.h5")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["peak_rss_bytes"] < before + (60 << 20)
    assert time.monotonic() - start < 20


@pytest.mark.deep
def test_segments_do_not_fill_memory(tmp_path):
    """A file may have any number of Exif and profile segments."""
    data = saved(Image.fromarray(RGB), "JPEG")
    peaks = []
    for count in (1, 3000):
        source = tmp_path / str(count)
        source.mkdir()
        for name, marker, head in (("exif", b"\xe1", b"Exif\0\0"),
                                   ("icc", b"\xe2", b"ICC_PROFILE\0\1\1")):
            segment = b"\xff" + marker + b"\xff\xff" + head.ljust(65533, b"\0")
            with open(source / f"{name}.jpg", "wb") as file:
                file.write(data[:2])
                for _ in range(count):
                    file.write(segment)
                file.write(data[2:])
        result = run_clpipe("ingest", source, "-o", tmp_path / f"{count}.h5", "-q", "--json", "-",
                            "--icc", "apply", "--threads", 1)
        report = json.loads(result.stdout)
        assert report["images_ok"] == 2
        peaks.append(report["peak_rss_bytes"])
    assert report["bytes_read"] > 390 * 10**6
    assert peaks[1] < peaks[0] + (32 << 20)


# --- the option -----------------------------------------------------------------------------------

@pytest.mark.deep
def test_identity(clpipe, tmp_path):
    """The option is one of the parameters, so a mix is refused. Threads and isolation change nothing."""
    source = tmp_path / "in"
    source.mkdir()
    profiles = [MATRIX, TABLE, GREY, LONG, profile("RGB ", WIDE | {"rTRC": gamma(1.5)}),
                profile("RGB ", WIDE | {"gTRC": gamma(1.5)})]  # more than a thread caches
    for i in range(30):
        icc = profiles[i * i % 11 % 6]
        pixels = RGB[..., 0] if icc is GREY else RGB
        Image.fromarray(pixels).rotate(i).save(source / f"{i}.jpg", icc_profile=icc)
    digests = set()
    for name, options in (("a", ["--threads", 1]), ("b", ["--threads", 4, "--memory", "16M"]),
                          ("c", ["--isolate", "--threads", 2])):
        assert clpipe("ingest", source, "-o", f"{name}.h5", "--icc", "apply", "-q",
                      *options).returncode == 0
        digests.add(clpipe("info", f"{name}.h5", "--digest").stdout)
    assert len(digests) == 1
    assert clpipe("ingest", source, "-o", "plain.h5", "-q").returncode == 0
    assert clpipe("info", "plain.h5", "--digest").stdout not in digests
    check_one_error(clpipe("ingest", source, "-o", "plain.h5", "--icc", "apply"), 2,
                    "--icc is ignore there and apply here")
    # Without the option, the file keeps its setting.
    assert clpipe("ingest", source, "-o", "a.h5").returncode == 0
    assert clpipe("info", "a.h5", "--digest").stdout in digests
    assert clpipe("ingest", source, "-o", "plain.h5", "--icc", "ignore", "-q").returncode == 0
