"""Thumbnails: like the picture, upright, whatever the format, the way of decoding and the interruptions,
and kept by updates."""

import io
import json
import os
import shutil
import signal
import subprocess
import time

import h5py
import numpy
import pytest
from PIL import Image, ImageOps

from conftest import CLPIPE, FEATURE, check_one_error, digest, run_clpipe

# How many dB a thumbnail may be noisier than what Pillow's box filter and JPEG of that quality give.
WORSE = 2


def draw(width, height, seed=0):
    """A smooth picture with edges, different in every corner."""
    random = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:height, 0:width].astype("float64")
    planes = [(120 + 80 * numpy.sin(x / width * random.uniform(2, 5) + c) +
               50 * numpy.cos(y / height * random.uniform(2, 5))) for c in range(3)]
    pixels = numpy.dstack(planes)
    pixels[: height // 4, : width // 3] = (230, 30, 40)
    pixels[-(height // 5):, -(width // 4):] = (20, 60, 200)
    return Image.fromarray(pixels.clip(0, 255).astype("uint8"))


def thumbnails(path):
    """The size, and {path: JPEG bytes}."""
    with h5py.File(path) as file:
        ends = file["thumbnails/end"][:].astype("int64")
        data = file["thumbnails/data"][:].tobytes()
        names = file["images/path"].asstr()[:]
        assert len(ends) == len(names) and ends[-1] == len(data)
        begins = numpy.concatenate([[0], ends[:-1]])
        return (int(file["thumbnails"].attrs["size"]),
                {n: data[a:b] for n, a, b in zip(names, begins, ends)})


def upright(path):
    """What Pillow makes of it: alpha over white, 16 bits as 8."""
    image = Image.open(path)
    if image.mode.startswith("I"):
        image = Image.fromarray(((numpy.asarray(image).astype("uint32") * 255 + 32767) // 65535)
                                .astype("uint8"))
    image = ImageOps.exif_transpose(image)
    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("RGB")


def ratio(a, b):
    """Peak signal to noise, dB."""
    error = ((numpy.asarray(a).astype("float64") - numpy.asarray(b)) ** 2).mean()
    return 99 if error == 0 else 10 * numpy.log10(255 ** 2 / error)


def as_jpeg(image):
    """The picture as a JPEG of the thumbnails' quality shows it."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=80, subsampling="4:2:0")
    return Image.open(file)


def check_like(made, directory, size, worse=WORSE):
    """Each thumbnail is the picture made small by a box filter."""
    for name, jpeg in made.items():
        whole = upright(directory / name)
        shown = Image.open(io.BytesIO(jpeg))
        scale = min(1, size / max(whole.size))
        assert all(abs(a - max(1, b * scale)) <= 0.51 for a, b in zip(shown.size, whole.size)), name
        assert shown.mode == "RGB" and shown.format == "JPEG"
        box = whole.resize(shown.size, Image.BOX)
        found, bound = ratio(shown, box), min(ratio(as_jpeg(box), box), 38) - worse
        assert found >= bound, f"{name}: {found:.1f} dB, not {bound:.1f}"


@pytest.fixture
def pictures(tmp_path):
    """JPEG files: all orientations, progressive, grey, larger and smaller than a thumbnail."""
    directory = tmp_path / "pictures"
    directory.mkdir()
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x112] = orientation
        draw(400, 300, orientation).save(directory / f"o{orientation}.jpg", quality=95, exif=exif)
    draw(1500, 1000, 10).save(directory / "progressive.jpg", quality=95, progressive=True)
    draw(333, 501, 11).convert("L").save(directory / "grey.jpg", quality=95)
    draw(60, 50, 12).save(directory / "small.jpg", quality=95)
    draw(3000, 40, 13).save(directory / "wide.jpg", quality=95, subsampling=0)
    return directory


def test_formats(tmp_path, program):
    readable = {row["name"] for row in json.loads(run_clpipe("formats", "--json", "-").stdout)
                if row["readable"]}
    directory = tmp_path / "pictures"
    directory.mkdir()
    image = draw(410, 290)
    clear = image.copy()
    clear.putalpha(Image.fromarray(numpy.tile(numpy.arange(410) * 255 // 409, (290, 1))
                                   .astype("uint8")))
    image.save(directory / "a.jpg", quality=95)
    image.save(directory / "b.png")
    clear.save(directory / "c.png")
    image.quantize(64).save(directory / "d.png")
    Image.fromarray((numpy.asarray(image.convert("L")).astype("uint16") * 257)).save(
        directory / "e.png")
    image.save(directory / "f.bmp")
    image.save(directory / "g.ppm")
    for suffix, options in (("webp", {"quality": 95}), ("tiff", {}), ("gif", {})):
        if suffix in readable:
            image.save(directory / f"h.{suffix}", **options)
    for suffix, tool, name in (("jxl", ["cjxl"], "jxl"), ("heic", ["heif-enc"], "heif"),
                               ("avif", ["heif-enc", "-A"], "avif")):
        if name in readable and shutil.which(tool[0]):
            target = [directory / f"i.{suffix}"]
            subprocess.run([*tool, directory / "b.png", *(target if name == "jxl" else
                                                          ["-q", "95", "-o", *target])],
                           capture_output=True, check=False)
    out = tmp_path / "x.h5"
    result = run_clpipe("ingest", directory, "--thumbnails", "-o", out, "-q")
    assert result.returncode == 0, result.stderr
    size, made = thumbnails(out)
    assert size == 160 and len(made) >= 7
    wanted = image.resize((160, 113), Image.BOX)
    for name, jpeg in made.items():
        shown = Image.open(io.BytesIO(jpeg))
        assert shown.size == (160, 113), name
        if name not in ("c.png", "e.png"):
            assert ratio(shown, wanted) >= 24, name
    check_like({n: made[n] for n in ("a.jpg", "b.png", "c.png", "e.png", "f.bmp", "g.ppm")},
               directory, 160)


@pytest.mark.parametrize("size", [64, 160, 1024])
def test_upright(tmp_path, pictures, size, program):
    out = tmp_path / "x.h5"
    result = run_clpipe("ingest", pictures, "--thumbnails", size, "-o", out, "-q")
    assert result.returncode == 0, result.stderr
    stored, made = thumbnails(out)
    assert stored == size and len(made) == 12
    check_like(made, pictures, size)
    assert run_clpipe("verify", out).returncode == 0


def test_ways_of_decoding(tmp_path, pictures, program):
    """Threads, strips and processes change no byte; coefficients give nearly the same pictures."""
    found = {}
    for name, options in (("plain", []), ("threads", ["--threads", "3"]),
                          ("strips", ["--memory", "16M", "--slot-size", "100K"]),
                          ("isolate", ["--isolate"]),
                          ("blur", ["--blur", "3", "--memory", "16M", "--slot-size", "100K"]),
                          ("device", ["--jpeg-pixels", "device"])):
        out = tmp_path / f"{name}.h5"
        result = run_clpipe("ingest", pictures, "--thumbnails", "-o", out, "-q", *options)
        assert result.returncode == 0, (name, result.stderr)
        found[name] = thumbnails(out)[1]
    for name in ("threads", "strips", "isolate", "blur"):
        assert found[name] == found["plain"], name
    check_like(found["device"], pictures, 160, 2 * WORSE)


def test_run_makes_them_and_ingest_on_request(tmp_path, pictures, program):
    plain, asked, run = tmp_path / "a.h5", tmp_path / "b.h5", tmp_path / "c.h5"
    assert run_clpipe("ingest", pictures, "-o", plain, "-q").returncode == 0
    assert run_clpipe("ingest", "--thumbnails", pictures, "-o", asked, "-q").returncode == 0
    assert run_clpipe("run", pictures, "-o", run, "-q", "-k", "2").returncode == 0
    with h5py.File(plain) as file:
        assert "thumbnails" not in file
    assert thumbnails(asked) == thumbnails(run)
    # They are no part of the identity, and a run does not decode again for them.
    assert digest(plain) == digest(asked)
    assert run_clpipe("run", pictures, "-o", plain, "-q", "-k", "2").returncode == 0
    with h5py.File(plain) as file:
        assert "thumbnails" not in file
    # Asked for, they are made.
    result = run_clpipe("ingest", pictures, "--thumbnails", "-o", plain, "-q")
    assert result.returncode == 0, result.stderr
    assert thumbnails(plain) == thumbnails(asked)


def test_updates(tmp_path, pictures, program):
    out = tmp_path / "x.h5"
    command = ["ingest", pictures, "-o", out, "-q"]
    assert run_clpipe(*command, "--thumbnails", "96").returncode == 0
    before = thumbnails(out)[1]
    status = os.stat(out)
    for options in ([], ["--thumbnails"], ["--thumbnails", "96"]):
        assert run_clpipe(*command, *options).returncode == 0
        assert os.stat(out).st_mtime_ns == status.st_mtime_ns, "nothing was new"
    draw(500, 400, 77).save(pictures / "new.jpg", quality=95)
    (pictures / "o1.jpg").unlink()
    assert run_clpipe(*command).returncode == 0
    size, after = thumbnails(out)
    assert size == 96 and set(after) == set(before) - {"o1.jpg"} | {"new.jpg"}
    assert all(after[name] == before[name] for name in after if name != "new.jpg")
    check_like({"new.jpg": after["new.jpg"]}, pictures, 96)
    # Another size: all are made anew.
    assert run_clpipe(*command, "--thumbnails", "64").returncode == 0
    size, small = thumbnails(out)
    assert size == 64
    check_like(small, pictures, 64)
    # A failure has none, and takes nobody else's.
    (pictures / "a-broken.jpg").write_bytes((pictures / "o2.jpg").read_bytes()[:3000])
    assert run_clpipe(*command).returncode == 1
    assert thumbnails(out)[1] == small


@pytest.mark.deep
def test_killed_and_resumed(tmp_path, program):
    directory = tmp_path / "pictures"
    directory.mkdir()
    files = []
    for i in range(5):
        file = io.BytesIO()
        draw(900, 700, i).save(file, "JPEG", quality=95)
        files.append(file.getvalue())
    for i in range(200):
        (directory / f"{i:03}.jpg").write_bytes(files[i % 5])
    whole, parts = tmp_path / "whole.h5", tmp_path / "parts.h5"
    assert run_clpipe("ingest", directory, "--thumbnails", "-o", whole, "-q").returncode == 0
    command = [str(CLPIPE), "ingest", *FEATURE, directory, "--thumbnails", "-o", parts, "-q", "--threads", "1"]
    ends = []
    for number, after in ((signal.SIGTERM, 0.5), (signal.SIGKILL, 0.7)):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        time.sleep(after)
        process.send_signal(number)
        ends.append(process.wait())
    result = run_clpipe(*command[1:])
    assert result.returncode == 0, (result.stderr, ends)
    assert thumbnails(parts) == thumbnails(whole)
    assert digest(parts) == digest(whole)


@pytest.mark.parametrize("size", ["15", "1025", "0"])
def test_sizes_out_of_range(tmp_path, pictures, size, program):
    result = run_clpipe("ingest", pictures, f"--thumbnails={size}", "-o", tmp_path / "x.h5")
    check_one_error(result, 2, "--thumbnails", "16 to 1024")
