"""The table of formats is correct, and the variants of JPEG and PNG are decoded correctly."""

import json
import re
import shutil
import subprocess

import numpy
import pytest
from PIL import Image

from conftest import ROOT, run_clpipe
from pictures import check, decoded, failures

HEIGHT, WIDTH = 7, 11
RANDOM = numpy.random.default_rng(13)
RGB = RANDOM.integers(0, 256, (HEIGHT, WIDTH, 3), dtype="uint8")

# Enough bytes of each format to recognise it.
HEADS = {
    "jpeg": b"\xff\xd8\xff\xe0", "png": b"\x89PNG\r\n\x1a\n", "webp": b"RIFF\x20\0\0\0WEBPVP8 ",
    "tiff": b"II*\0\x08\0\0\0", "bmp": b"BM\x40\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0",
    "gif": b"GIF89a\1\0\1\0", "pnm": b"P5 1 1 255\n", "pfm": b"PF\n1 1\n-1\n",
    "heif": b"\0\0\0\x10ftypheic", "avif": b"\0\0\0\x10ftypavif", "jxl": b"\xff\x0a\0\0",
    "jp2": b"\0\0\0\x0cjP  \r\n\x87\n", "ico": b"\0\0\1\0\1\0", "psd": b"8BPS\0\1",
    "exr": b"\x76\x2f\x31\x01", "hdr": b"#?RADIANCE\n", "qoi": b"qoif\0\0\0\1",
    "svg": b'<?xml version="1.0"?>\n<svg width="1">', "raw": b"IIU\0",
}


@pytest.fixture(scope="module")
def table(program):
    return json.loads(run_clpipe("formats", "--json", "-").stdout)


def test_every_format_is_recognised_by_its_content(table, tmp_path):
    """The file name does not matter. The error for an unsupported format says why and what to do."""
    (tmp_path / "one").write_bytes(b"P5 1 1 255\n1")
    for row in table:
        (tmp_path / (row["name"] + ".txt")).write_bytes(HEADS[row["name"]].ljust(64, b"\0"))
    failed, images = failures(tmp_path)
    for row in table:
        name = row["name"] + ".txt"
        if row["readable"]:
            assert name in images or failed[name][0] in ("corrupt", "truncated", "unsupported")
            assert name in images or failed[name][1] != row["notes"]
        else:
            assert failed[name] == ("unsupported", row["notes"])
            assert re.fullmatch(r"this build cannot read [^;]+; install (lib\S+-dev(, | and ))+build again|"
                                r"clpipe has no decoder for .+", row["notes"])


@pytest.mark.variations
@pytest.mark.parametrize("brands, name", [
    (b"mif1heic", "heif"), (b"mif2mif1heic", "heif"), (b"mif1avif", "avif"), (b"msf1", "heif"),
    (b"avisavif", "avif"), (b"isommp41", None), (b"qt  ", None)])
def test_brands(table, tmp_path, brands, name):
    """Some containers name their codec only in a brand after the first."""
    (tmp_path / "one").write_bytes(b"P5 1 1 255\n1")
    major, others = brands[:4], brands[4:]
    (tmp_path / "a").write_bytes((16 + len(others)).to_bytes(4, "big") + b"ftyp" + major + bytes(4) +
                                 others + bytes(100))
    found = failures(tmp_path)[0]["a"]
    row = next((row for row in table if row["name"] == name), None)
    if row is None:
        assert found[0] == "not-an-image"
    elif not row["readable"]:
        assert found == ("unsupported", row["notes"])
    else:
        assert found[0] in ("corrupt", "truncated", "unsupported")


def test_extensions_denote_images(table, tmp_path):
    """Unknown content is a failure for every extension in the table and for no other."""
    (tmp_path / "one").write_bytes(b"P5 1 1 255\n1")
    extensions = [extension for row in table for extension in row["extensions"]]
    assert len(set(extensions)) == len(extensions)
    for extension in [*extensions, "txt", "gz"]:
        (tmp_path / f"a.{extension}").write_text("nothing that is known")
    failed, _ = failures(tmp_path)
    assert {name for name, (reason, _) in failed.items() if reason == "unknown-format"} == {
        f"a.{extension}" for extension in extensions}


def test_extensions_are_words(table):
    assert {row["name"]: row["extensions"] for row in table if row["name"] in ("jpeg", "png", "webp")} == {
        "jpeg": ["jpg", "jpeg", "jpe", "jfif"], "png": ["png", "apng"], "webp": ["webp"]}


def test_formats_and_version_agree(table):
    """Both list supported formats with their libraries; the guide has a row for each."""
    text = run_clpipe("formats").stdout
    version = run_clpipe("--version").stdout
    guide = (ROOT / "docs" / "guide.md").read_text()
    for row in table:
        line = next(line for line in text.splitlines() if line.split()[:1] == [row["name"]])
        if row["readable"]:
            assert row["library"] in line and row["notes"] in text
            assert re.search(rf"^  {row['name']} +{re.escape(row['library'])}$", version, re.M)
            assert f"\n| `{row['name']}` |" in guide
        else:
            assert row["notes"] in line
            assert re.search(rf"not read .*\b{row['name']}\b", version)


def test_first_pictures(tmp_path, program):
    """The first picture of an MPO file is decoded, and the default image of an APNG file."""
    second = Image.fromarray(255 - RGB)
    first = Image.fromarray(RGB)
    first.save(tmp_path / "plain.jpg", quality=95)
    first.save(tmp_path / "a.mpo", save_all=True, append_images=[second], quality=95)
    first.save(tmp_path / "a.png", save_all=True, append_images=[second], default_image=True)
    first.save(tmp_path / "b.png", save_all=True, append_images=[second])
    assert Image.open(tmp_path / "a.mpo").n_frames == 2
    assert b"acTL" in (tmp_path / "a.png").read_bytes()
    plain = numpy.asarray(Image.open(tmp_path / "plain.jpg"))
    check(decoded(tmp_path), {"plain.jpg": plain, "a.mpo": plain, "a.png": RGB, "b.png": RGB})


@pytest.mark.skipif(not shutil.which("jpegtran"), reason="jpegtran is not installed")
def test_jpeg_processes(tmp_path, program):
    """The same coefficients give the same pixels whether the JPEG is baseline, progressive or arithmetic, and with
    restart markers."""
    grey = Image.fromarray(RGB[..., 0])
    wanted = {}
    for name, picture in (("rgb", Image.fromarray(RGB)), ("grey", grey)):
        source = tmp_path / f"{name}.jpg"
        picture.save(source, quality=90, subsampling=2)
        pixels = numpy.asarray(Image.open(source).convert("RGB"))
        wanted[source.name] = pixels
        for option in ("-progressive", "-arithmetic", "-arithmetic -progressive", "-restart 1"):
            target = tmp_path / f"{name}{option}.jpg"
            subprocess.run(["jpegtran", *option.split(), "-outfile", target, source], check=True)
            wanted[target.name] = pixels
    check(decoded(tmp_path), wanted)


def test_truncated_arithmetic_jpeg(tmp_path, program):
    """The arithmetic decoder would read zeros for missing data."""
    if not shutil.which("jpegtran"):
        pytest.skip("jpegtran is not installed")
    big = RANDOM.integers(0, 256, (64, 64, 3), dtype="uint8")
    Image.fromarray(big).save(tmp_path / "whole.jpg", quality=90)
    subprocess.run(["jpegtran", "-arithmetic", "-outfile", tmp_path / "a.jpg",
                    tmp_path / "whole.jpg"], check=True)
    data = (tmp_path / "a.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(data[:len(data) * 2 // 3])
    failed, images = failures(tmp_path)
    assert images == ["a.jpg", "whole.jpg"]
    assert {name: reason for name, (reason, _) in failed.items()} == {"cut.jpg": "truncated"}
