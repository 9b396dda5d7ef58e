"""Files that would need gigabytes or hours: each gets a row with a reason, quickly and in little memory."""

import json
import os
import re
import struct
import zlib

import h5py
import pytest

from conftest import CLPIPE, ROOT, run_clpipe
from pictures import tiff, tiff_tags

RELEASE = CLPIPE.parent.name == "release"
MOST_SECONDS = 5 if RELEASE else 60
MOST_MEMORY = (64 if RELEASE else 300) << 20


# --- files ----------------------------------------------------------------------------------------

def png_chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_head(width, height, depth=8, kind=2, interlaced=0):
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth,
                                                                kind, 0, 0, interlaced))


PNG_DATA = png_chunk(b"IDAT", zlib.compress(bytes(4 * 13))) + png_chunk(b"IEND", b"")


def segment(marker, data):
    return bytes([0xff, marker]) + struct.pack(">H", 2 + len(data)) + data


def packed(bits):
    """Packs a string of 0 and 1 into entropy-coded bytes."""
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")


def jpeg(width, height, scans, progressive=True, data=True):
    """A grey JPEG with every coefficient 0. Its progression is legal: DC, then each bit of each coefficient."""
    head = b"\xff\xd8" + segment(0xdb, b"\0" + b"\1" * 64)
    head += segment(0xc2 if progressive else 0xc0, struct.pack(">BHHB", 8, height, width, 1) +
                    b"\1\x11\0")
    # Each table has one code of 1 bit: for DC, a difference of 0; for AC, a run of at least 16,384 empty blocks.
    head += segment(0xc4, b"\0\1" + bytes(15) + b"\0") + segment(0xc4, b"\x10\1" + bytes(15) +
                                                                 b"\xe0")
    blocks = -(-width // 8) * -(-height // 8)
    first = packed("0" * (blocks if progressive else 2 * blocks)) if data else b"\0"
    more = packed(("0" + 14 * "1") * -(-blocks // 32767)) if data else b""
    steps = [(k, k, high, low) for k in range(1, 64)
             for high, low in [(0, 13), *((i + 1, i) for i in reversed(range(13)))]]
    out = head + segment(0xda, b"\1\1\0" + (b"\0\0\0" if progressive else b"\0\x3f\0")) + first
    for start, end, high, low in steps[:scans - 1]:
        out += segment(0xda, bytes([1, 1, 0, start, end, high << 4 | low])) + more
    return out + b"\xff\xd9"


def bmp(width, height, rest, bits=24, compression=0, size=None):
    head = struct.pack("<2sIHHI", b"BM", size or 54 + len(rest), 0, 0, 54)
    return head + struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, 0, 0, 0, 0,
                              0) + rest


def gif(width, height):
    return (b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6) + b"\x2c" +
            struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\2\0;")


def tiff_with(entries):
    """A TIFF of 4 x 4 pixels with additional tags: {number: (type, count, offset)}."""
    data = bytearray(tiff(tiff_tags(4, 4, 8, 3, 2) | {number: (7, bytes(8)) for number in entries},
                          [bytes(48)]))
    at = struct.unpack("<I", data[4:8])[0]
    for entry in range(at + 2, at + 2 + 12 * struct.unpack("<H", data[at:at + 2])[0], 12):
        number = struct.unpack("<H", data[entry:entry + 2])[0]
        if number in entries:
            data[entry + 2:entry + 12] = struct.pack("<HII", *entries[number])
    return bytes(data)


BIG = 128 << 20
# {name: ([(offset, bytes), ...], reason of the failure or size of the picture)}
FILES = {
    # A declared length is not trusted, and a chunk that is really that long is not kept in memory.
    **{f"trap {name}.png": ([(0, png_head(4, 4) + struct.pack(">I", 10**9) + name.encode() +
                              bytes(16))], "truncated")
       for name in ("tEXt", "zTXt", "iTXt", "iCCP", "sPLT", "eXIf", "tRNS", "PLTE", "IDAT", "abCd")},
    **{f"long {name}.png": ([(0, png_head(4, 4) + struct.pack(">I", BIG) + name.encode()),
                             (41 + BIG, bytes(4) + PNG_DATA)], (4, 4))
       for name in ("tEXt", "iCCP")},
    "behind.png": ([(0, png_head(64, 64) + png_chunk(b"IDAT", zlib.compress(bytes(BIG), 1)) +
                     png_chunk(b"IEND", b""))], "corrupt"),
    # libpng skips chunks that it does not read, even before the header.
    "late header.png": ([(0, png_head(1, 1)[:8] + png_chunk(b"eXIf", bytes(10)) +
                          png_head(26000, 26000)[8:] + PNG_DATA)], "corrupt"),
    "interlaced.png": ([(0, png_head(26000, 26000, interlaced=1) + PNG_DATA)], "too-large"),
    "wide.jpg": ([(0, jpeg(65500, 65500, 1, progressive=False, data=False))], "too-large"),
    "wide progressive.jpg": ([(0, jpeg(65500, 65500, 1, data=False))], "too-large"),
    "legal.jpg": ([(0, jpeg(64, 64, 100))], (64, 64)),
    "scans.jpg": ([(0, jpeg(64, 64, 101))], "too-many-scans"),
    "large.jpg": ([(0, jpeg(4000, 3000, 20))], (4000, 3000)),
    "large scans.jpg": ([(0, jpeg(4000, 3000, 883))], "too-many-scans"),
    "again.jpg": ([(0, jpeg(64, 64, 2)[:-2] + 5000 * jpeg(64, 64, 2)[-15:-2] + b"\xff\xd9")],
                  "corrupt"),
    "119.bmp": ([(0, bmp(26000, 26000, bytes(65)))], "too-large"),
    "legal.bmp": ([(0, bmp(16000, 16000, bytes(65)))], "truncated"),
    "30.gif": ([(0, gif(65535, 65535))], "too-large"),
    "legal.gif": ([(0, gif(16000, 16000))], "corrupt"),
    "declared.tif": ([(0, tiff(tiff_tags(60000, 60000, 8, 3, 2), [bytes(48)]))], "too-large"),
    "strip.tif": ([(0, tiff(tiff_tags(16000, 16000, 8, 3, 2), [bytes(48)]))], "truncated"),
    "profile.tif": ([(0, tiff_with({34675: (7, BIG, 1000)})), (BIG + 1000, b"x")], (4, 4)),
    "sources.tif": ([(0, tiff_with({37724: (7, BIG, 1000)})), (BIG + 1000, b"x")], (4, 4)),
    "one place.tif": ([(0, tiff_with({number: (7, 1 << 20, 100) for number in range(50000, 52000)})),
                       (2 << 20, b"x")], (4, 4)),
}


def ingest(directory, *options):
    """Returns the report, {name: reason or size}, {name: seconds of decoding} and {name: message}."""
    trace, output = directory.parent / "trace.json", directory.parent / "out.h5"
    result = run_clpipe("ingest", directory, "-o", output, "-q", "--json", "-", "--fresh",
                        "--threads", 1, "--profile", trace, *options)
    assert result.returncode in (0, 1), result.stderr
    with h5py.File(output) as file:
        found = dict(zip(file["images/path"].asstr()[:], zip(file["images/width"][:].tolist(),
                                                             file["images/height"][:].tolist())))
        found |= dict(zip(file["failures/path"].asstr()[:],
                          [reason.decode() for reason in file["failures/reason"][:]]))
        messages = dict(zip(file["failures/path"].asstr()[:], file["failures/message"].asstr()[:]))
    seconds = {event["args"]["detail"]: event["dur"] * 1e-6
               for event in json.loads(trace.read_text())["traceEvents"] if event["name"] == "decode"}
    return json.loads(result.stdout), found, seconds, messages


@pytest.fixture(scope="module")
def base(tmp_path_factory, program):
    """The peak memory of a run over one small picture."""
    directory = tmp_path_factory.mktemp("base") / "in"
    directory.mkdir()
    (directory / "good.png").write_bytes(png_head(4, 4) + PNG_DATA)
    ingest(directory)
    return ingest(directory)[0]["peak_rss_bytes"]


def write(directory, files):
    directory.mkdir()
    (directory / "good.png").write_bytes(png_head(4, 4) + PNG_DATA)
    for name, (pieces, _) in files.items():
        with open(directory / name, "wb") as file:
            for place, data in pieces:
                file.seek(place)
                file.write(data)


@pytest.mark.slow
def test_caps(tmp_path, base):
    write(tmp_path / "in", FILES)
    readable = {row["name"] for row in json.loads(run_clpipe("formats", "--json", "-").stdout)
                if row["readable"]}
    wanted = {name: outcome if {"tif": "tiff", "gif": "gif"}.get(name[-3:], "png") in readable
              else "unsupported" for name, (_, outcome) in FILES.items()}
    report, found, seconds, messages = ingest(tmp_path / "in")
    assert found == wanted | {"good.png": (4, 4)}
    assert report["peak_rss_bytes"] < base + MOST_MEMORY
    assert max(seconds.values()) < MOST_SECONDS, seconds
    assert "more than 83 scans of 4000 x 3000" in messages["large scans.jpg"]
    assert len(FILES["119.bmp"][0][0][1]) == 119


def test_raised_limits(tmp_path, base):
    """Decoding stops at the first sign that the data has ended; missing rows are not decoded."""
    files = {name: FILES[name] for name in ("wide.jpg", "119.bmp", "30.gif")}
    write(tmp_path / "in", files)
    report, found, seconds, _ = ingest(tmp_path / "in", "--max-pixels", 10**10)
    assert all(found[name] in ("truncated", "corrupt", "unsupported") for name in files), found
    assert report["peak_rss_bytes"] < base + MOST_MEMORY
    assert max(seconds.values()) < MOST_SECONDS, seconds


def test_scans(tmp_path, program):
    """--max-scans changes both limits: the one for all pictures and the lower one for large pictures."""
    write(tmp_path / "in", {name: FILES[name] for name in ("large scans.jpg", "scans.jpg")})
    found = ingest(tmp_path / "in", "--max-scans", 10)[3]
    assert [int(re.search(r"more than (\d+) scans", found[name])[1])
            for name in ("large scans.jpg", "scans.jpg")] == [10, 10]
    found = ingest(tmp_path / "in", "--max-scans", 110)
    assert found[1]["scans.jpg"] == (64, 64)
    assert "more than 91 scans" in found[3]["large scans.jpg"]


def test_regressions_are_quick(tmp_path, base):
    """Inputs found by fuzzing, including files whose pictures refer to each other in a cycle."""
    inputs = ROOT / "tests" / "fuzz" / "regression"
    source = tmp_path / "in"
    source.mkdir()
    (source / "good.png").write_bytes(png_head(4, 4) + PNG_DATA)
    for path in inputs.rglob("*"):
        if path.is_file():
            (source / f"{path.parent.name}-{path.name}").write_bytes(path.read_bytes())
    report, _, seconds, _ = ingest(source)
    assert max(seconds.values()) < MOST_SECONDS, seconds
    assert report["peak_rss_bytes"] < base + MOST_MEMORY


@pytest.mark.deep
@pytest.mark.parametrize("options", [(), ("--isolate",)])
def test_holes(tmp_path, base, options):
    """Holes of 2 TiB after or inside a picture: no more is read than a picture can need."""
    hole = 2 << 40
    files = {"behind.png": png_head(4, 4) + PNG_DATA, "behind.jpg": jpeg(64, 64, 1, progressive=False),
             "behind.bmp": bmp(4, 4, bytes(48)), "behind.ppm": b"P6 4 4 255 " + bytes(48),
             "before.jpg": b"\xff\xd8\xff\xe0"}
    write(tmp_path / "in", {name: ([(0, data)], None) for name, data in files.items()})
    for name in files:
        os.truncate(tmp_path / "in" / name, hole)
    (tmp_path / "in" / "disk.img").touch()
    os.truncate(tmp_path / "in" / "disk.img", hole)
    report, found, _, messages = ingest(tmp_path / "in", *options)
    assert found == {name: "too-large" for name in files} | {"good.png": (4, 4),
                                                             "disk.img": "not-an-image"}
    assert report["bytes_read"] < 1 << 20
    assert "far too many for a picture of 4 x 4 pixels" in messages["behind.png"]
    # A smaller hole is accepted; programs append far less than this to pictures.
    os.truncate(tmp_path / "in" / "behind.png", 100 << 20)
    assert ingest(tmp_path / "in", *options)[1]["behind.png"] == (4, 4)
