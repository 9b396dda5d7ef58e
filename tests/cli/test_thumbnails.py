"""Thumbnails resemble the upright picture, for all formats, ways of decoding and interruptions, and updates
keep them."""

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

# How much worse, in dB, a thumbnail may be than Pillow's box filter with the same JPEG quality.
WORSE = 2


def draw(width, height, seed=0):
    """A smooth picture with edges that differs in each corner."""
    random = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:height, 0:width].astype("float64")
    planes = [(120 + 80 * numpy.sin(x / width * random.uniform(2, 5) + c) +
               50 * numpy.cos(y / height * random.uniform(2, 5))) for c in range(3)]
    pixels = numpy.dstack(planes)
    pixels[: height // 4, : width // 3] = (230, 30, 40)
    pixels[-(height // 5):, -(width // 4):] = (20, 60, 200)
    return Image.fromarray(pixels.clip(0, 255).astype("uint8"))


def thumbnails(path):
    """Returns the size and {path: JPEG bytes}."""
    with h5py.File(path) as file:
        ends = file["thumbnails/end"][:].astype("int64")
        data = file["thumbnails/data"][:].tobytes()
        names = file["images/path"].asstr()[:]
        assert len(ends) == len(names) and ends[-1] == len(data)
        begins = numpy.concatenate([[0], ends[:-1]])
        return (int(file["thumbnails"].attrs["size"]),
                {n: data[a:b] for n, a, b in zip(names, begins, ends)})


def upright(path):
    """The picture as Pillow shows it: alpha over grey, 16 bits reduced to 8."""
    image = Image.open(path)
    if image.mode.startswith("I"):
        image = Image.fromarray(((numpy.asarray(image).astype("uint32") * 255 + 32767) // 65535)
                                .astype("uint8"))
    image = ImageOps.exif_transpose(image)
    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, (128, 128, 128)), image)
    return image.convert("RGB")


def ratio(a, b):
    """Peak signal-to-noise ratio in dB."""
    error = ((numpy.asarray(a).astype("float64") - numpy.asarray(b)) ** 2).mean()
    return 99 if error == 0 else 10 * numpy.log10(255 ** 2 / error)


def as_jpeg(image):
    """The picture after JPEG compression with the quality of thumbnails."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=80, subsampling="4:2:0")
    return Image.open(file)


def check_like(made, directory, size, worse=WORSE):
    """Checks that each thumbnail is the picture reduced by a box filter."""
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


@pytest.mark.deep
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


@pytest.mark.variations
@pytest.mark.parametrize("size", [64, 160, 1024])
def test_upright(tmp_path, pictures, size, program):
    out = tmp_path / "x.h5"
    result = run_clpipe("ingest", pictures, "--thumbnails", size, "-o", out, "-q")
    assert result.returncode == 0, result.stderr
    stored, made = thumbnails(out)
    assert stored == size and len(made) == 12
    check_like(made, pictures, size)
    assert run_clpipe("verify", out).returncode == 0


@pytest.mark.deep
def test_ways_of_decoding(tmp_path, pictures, program):
    """With threads, strips or processes the bytes are the same; from coefficients the pictures are nearly the same."""
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


@pytest.mark.deep
def test_feature_options_do_not_change_thumbnails(tmp_path, program):
    """Thumbnails are sRGB on grey and as large as possible, whatever options the features use, whether ingest or report
    makes them, and however pictures are decoded."""
    import test_icc
    image, p = draw(500, 360), tmp_path / "p"
    p.mkdir()
    white = Image.new("RGBA", (300, 200), (255, 0, 255, 0))
    white.paste((255, 255, 255, 255), (60, 50, 240, 150))
    readable = {row["name"] for row in json.loads(run_clpipe("formats", "--json", "-").stdout)
                if row["readable"]}
    srgb = test_icc.ImageCms.ImageCmsProfile(test_icc.SRGB).tobytes()
    image.save(p / "wide.jpg", quality=95, icc_profile=test_icc.MATRIX)
    image.save(p / "wide.png", icc_profile=test_icc.MATRIX)
    image.save(p / "srgb.jpg", quality=95, icc_profile=srgb)
    image.save(p / "plain.jpg", quality=95)
    image.convert("CMYK").save(p / "inks.jpg", quality=95, icc_profile=test_icc.INKS)
    white.save(p / "white.png")
    wanted = {"wide.jpg": test_icc.shown(image, test_icc.MATRIX), "wide.png": test_icc.shown(image, test_icc.MATRIX),
              "srgb.jpg": image, "plain.jpg": image,
              "inks.jpg": test_icc.shown(image.convert("CMYK"), test_icc.INKS)}
    if "webp" in readable:
        image.save(p / "wide.webp", quality=95, icc_profile=test_icc.MATRIX)
        white.save(p / "white.webp", lossless=True)
        wanted["wide.webp"] = wanted["wide.jpg"]
    if "tiff" in readable:
        image.save(p / "wide.tiff", icc_profile=test_icc.MATRIX)
        wanted["wide.tiff"] = wanted["wide.jpg"]
    if "lcms2" not in run_clpipe("--version").stdout:
        pytest.skip("this build applies no profiles")

    def check(made):
        for name, jpeg in made.items():
            found = numpy.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB")).astype(int)
            if name.startswith("white"):
                assert max(found.shape) == 160
                assert abs(found[4:20, 4:20] - 128).max() <= 4 and found[45:60, 60:100].min() > 245, name
                continue
            assert found.shape == (115, 160, 3), name
            box = Image.fromarray(numpy.asarray(wanted[name])).resize((160, 115), Image.BOX)
            assert ratio(found, box) >= 29, name
        if "wide.jpg" in made:
            assert ratio(numpy.asarray(Image.fromarray(numpy.asarray(wanted["wide.jpg"])).resize((160, 115))),
                         image.resize((160, 115))) < 25, "the profile makes no difference"

    found = {}
    for i, options in enumerate([["--alpha", "black"], ["--alpha", "black", "--isolate"], ["--jpeg-pixels", "device"],
                                 ["--alpha", "drop", "--decode-scale", 8, "--icc", "apply", "--slot-size", "100K"]]):
        found[i] = tmp_path / f"{i}.h5"
        result = run_clpipe("ingest", p, "-o", found[i], "--thumbnails", "-q", *options)
        assert result.returncode == 0, (options, result.stderr)
        check(thumbnails(found[i])[1])
    assert thumbnails(found[0]) == thumbnails(found[1]) and digest(found[0]) == digest(found[1])
    # A report makes the thumbnails that a file lacks; its first page shows a strip of each cluster.
    assert run_clpipe("ingest", p, "-o", tmp_path / "b.h5", "-q", "--alpha", "black").returncode == 0
    assert digest(tmp_path / "b.h5") == digest(found[0]), "thumbnails changed the features"
    assert run_clpipe("report", tmp_path / "b.h5", "-o", tmp_path / "r", "-q").returncode == 0
    check(in_sheets(tmp_path / "r"))


def in_sheets(report):
    """{name: picture as PNG}, from a report's sheets and data files."""
    def data(name):
        text = (report / "data" / f"{name}.js").read_text()
        return json.loads(text[text.index(",", text.index(",") + 1) + 1:text.rindex(")")])
    sheets, images, found = data("summary")["sheets"], data("images-0"), {}
    each = sheets["columns"] * sheets["rows"]
    for p, name in enumerate(images["name"]):
        at, i = divmod(sheets["strips"] * each + p, each)
        left, top = (side * sheets["cell"] for side in (i % sheets["columns"], i // sheets["columns"]))
        cell = Image.open(report / "sheets" / f"{at:05}.jpg").crop((left, top, left + images["w"][p], top + images["h"][p]))
        file = io.BytesIO()
        cell.save(file, "PNG")
        found[name] = file.getvalue()
    return found


@pytest.mark.deep
def test_small_thumbnails_keep_their_colours(tmp_path, program):
    """Thumbnails of a few pixels keep their colours, alone in their cells and next to large ones: stored,
    made for a report, or stored with subsampling by earlier versions."""
    colours = {"red": (220, 30, 30), "green": (20, 160, 40), "blue": (30, 40, 210), "yellow": (230, 220, 20)}
    (tmp_path / "p").mkdir()
    draw(400, 300).save(tmp_path / "p" / "large.png")
    for side in (1, 2, 3, 5, 8, 9, 15, 16, 17, 31, 32):
        for name, colour in colours.items():
            Image.new("RGB", (side, max(1, side * 2 // 3)), colour).save(tmp_path / "p" / f"{name} {side}.png")
    Image.new("RGB", (200, 2), colours["blue"]).save(tmp_path / "p" / "blue line.png")
    stripes = Image.new("RGB", (6, 6), colours["red"])
    stripes.paste(colours["blue"], (3, 0, 6, 6))
    stripes.save(tmp_path / "p" / "stripes.png")

    def check(made):
        assert len(made) == 47
        for name, data in made.items():
            found = numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
            if name == "stripes.png":
                assert abs(found[:, :3] - colours["red"]).max() < 40 and abs(found[:, 3:] - colours["blue"]).max() < 40
            elif name != "large.png":
                assert abs(found - colours[name.split()[0]]).max() <= 6, name

    for name, options in (("stored", ["--thumbnails"]), ("made", [])):
        out = tmp_path / f"{name}.h5"
        assert run_clpipe("ingest", tmp_path / "p", "-o", out, "-q", *options).returncode == 0
        assert run_clpipe("report", out, "-o", tmp_path / name, "-q").returncode == 0
        check(in_sheets(tmp_path / name))
    size, made = thumbnails(tmp_path / "stored.h5")
    check(made)
    # As stored by earlier versions.
    with h5py.File(tmp_path / "stored.h5", "r+") as file:
        old = []
        for name in file["images/path"].asstr()[:]:
            buffer = io.BytesIO()
            Image.open(io.BytesIO(made[name])).save(buffer, "JPEG", quality=80, subsampling="4:2:0")
            old.append(buffer.getvalue())
        del file["thumbnails/data"], file["checksums"]
        file["thumbnails/data"] = numpy.frombuffer(b"".join(old), "u1")
        file["thumbnails/end"][...] = numpy.cumsum([len(one) for one in old])
    assert run_clpipe("report", tmp_path / "stored.h5", "-o", tmp_path / "old", "-q").returncode == 0
    check({name: data for name, data in in_sheets(tmp_path / "old").items() if name != "stripes.png"} | {"stripes.png": made["stripes.png"]})


@pytest.mark.deep
def test_run_makes_thumbnails_and_ingest_on_request(tmp_path, pictures, program):
    plain, asked, run = tmp_path / "a.h5", tmp_path / "b.h5", tmp_path / "c.h5"
    assert run_clpipe("ingest", pictures, "-o", plain, "-q").returncode == 0
    assert run_clpipe("ingest", "--thumbnails", pictures, "-o", asked, "-q").returncode == 0
    assert run_clpipe("run", pictures, "-o", run, "-q", "-k", "2").returncode == 0
    with h5py.File(plain) as file:
        assert "thumbnails" not in file
    assert thumbnails(asked) == thumbnails(run)
    # Thumbnails are not part of the identity, and a run does not decode pictures again only to make them.
    assert digest(plain) == digest(asked)
    assert run_clpipe("run", pictures, "-o", plain, "-q", "-k", "2").returncode == 0
    with h5py.File(plain) as file:
        assert "thumbnails" not in file
    # If requested, they are made.
    result = run_clpipe("ingest", pictures, "--thumbnails", "-o", plain, "-q")
    assert result.returncode == 0, result.stderr
    assert thumbnails(plain) == thumbnails(asked)


@pytest.mark.deep
def test_updates(tmp_path, pictures, program):
    out = tmp_path / "x.h5"
    command = ["ingest", pictures, "-o", out, "-q"]
    assert run_clpipe(*command, "--thumbnails", "96").returncode == 0
    before = thumbnails(out)[1]
    status = os.stat(out)
    for options in ([], ["--thumbnails"], ["--thumbnails", "96"]):
        assert run_clpipe(*command, *options).returncode == 0
        assert os.stat(out).st_mtime_ns == status.st_mtime_ns, "the file was written although nothing was new"
    draw(500, 400, 77).save(pictures / "new.jpg", quality=95)
    (pictures / "o1.jpg").unlink()
    assert run_clpipe(*command).returncode == 0
    size, after = thumbnails(out)
    assert size == 96 and set(after) == set(before) - {"o1.jpg"} | {"new.jpg"}
    assert all(after[name] == before[name] for name in after if name != "new.jpg")
    check_like({"new.jpg": after["new.jpg"]}, pictures, 96)
    # With another size, all are made again.
    assert run_clpipe(*command, "--thumbnails", "64").returncode == 0
    size, small = thumbnails(out)
    assert size == 64
    check_like(small, pictures, 64)
    # A failed picture has no thumbnail, not even that of another picture.
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
