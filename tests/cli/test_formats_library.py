"""GIF and WebP: every pixel against what was written or what Pillow reads, hostile headers."""

import io
import json
import struct

import cv2
import numpy
import pytest
from PIL import Image

from conftest import run_clpipe
from pictures import check, decoded, failures, over

HEIGHT, WIDTH = 7, 11
RANDOM = numpy.random.default_rng(17)
RGB = RANDOM.integers(0, 256, (HEIGHT, WIDTH, 3), dtype="uint8")
ALPHA = RANDOM.integers(0, 256, (HEIGHT, WIDTH), dtype="uint8")


@pytest.fixture(autouse=True)
def needs(request, program):
    """Tests are named after the format that the build has to read."""
    name = request.node.name.split("_")[1]
    rows = json.loads(run_clpipe("formats", "--json", "-").stdout)
    if not next(row["readable"] for row in rows if row["name"] == name):
        pytest.skip(f"this build does not read {name}")


def write(directory, files):
    for name, data in files.items():
        (directory / name).write_bytes(data)


def saved(picture, *args, **options):
    out = io.BytesIO()
    picture.save(out, *args, **options)
    return out.getvalue()


# --- GIF ------------------------------------------------------------------------------------------

PALETTE = RANDOM.integers(0, 256, (256, 3), dtype="uint8")


def gif(indices, canvas=None, at=(0, 0), interlace=False, transparent=None, local=False,
        background=0, more=b""):
    """One frame of uncompressed codes: each pixel is 9 bits, with a clear code every 200."""
    height, width = indices.shape
    canvas = canvas or (width, height)
    table = PALETTE.tobytes()
    data = b"GIF89a" + struct.pack("<HHBBB", *canvas, 0x70 if local else 0xf7, background, 0)
    data += b"" if local else table
    if transparent is not None:
        data += b"\x21\xf9\x04" + struct.pack("<BHB", 1, 0, transparent) + b"\0"
    data += b"\x2c" + struct.pack("<HHHHB", *at, width, height,
                                  (0x40 if interlace else 0) | (0x87 if local else 0))
    data += table if local else b""
    rows = range(height)
    if interlace:
        rows = [*rows[0::8], *rows[4::8], *rows[2::4], *rows[1::2]]
    codes = []
    for i, value in enumerate(v for row in rows for v in indices[row]):
        codes += [256] if i % 200 == 0 else []
        codes.append(int(value))
    bits = sum(code << 9 * i for i, code in enumerate([*codes, 257]))
    packed_codes = bits.to_bytes((9 * (len(codes) + 1) + 7) // 8, "little")
    data += b"\x08"
    for i in range(0, len(packed_codes), 255):
        block = packed_codes[i:i + 255]
        data += bytes([len(block)]) + block
    return data + b"\0" + more + b"\x3b"


def test_gif_frames(tmp_path):
    picture = RANDOM.integers(0, 256, (HEIGHT, WIDTH), dtype="uint8")
    picture[0, :3] = 9
    white = PALETTE[picture].copy()
    white[picture == 9] = 255
    part = picture[:4, :5]
    placed = numpy.full((HEIGHT, WIDTH, 3), 255, dtype="uint8")
    placed[2:6, 3:8] = PALETTE[part]
    second = gif(picture[::-1])
    files = {
        "plain.gif": gif(picture), "local.gif": gif(picture, local=True),
        "interlaced.gif": gif(picture, interlace=True),
        "transparent.gif": gif(picture, transparent=9),
        "placed.gif": gif(part, canvas=(WIDTH, HEIGHT), at=(3, 2), background=5),
        "placed interlaced.gif": gif(part, canvas=(WIDTH, HEIGHT), at=(3, 2), interlace=True),
        "beyond.gif": gif(picture, canvas=(WIDTH, HEIGHT), at=(4, 3)),
        "no canvas.gif": gif(picture, canvas=(0, 0)),
        "comment.gif": gif(picture, more=b"\x21\xfe\x05hello\0"),
        "two frames.gif": gif(picture, more=second[second.index(b"\x2c", 13 + 768):-1]),
        "no trailer.gif": gif(picture)[:-1],
        "no end of data.gif": gif(picture)[:-2],
    }
    beyond = numpy.full((HEIGHT, WIDTH, 3), 255, dtype="uint8")
    beyond[3:, 4:] = PALETTE[picture[:4, :7]]
    wanted = {name: PALETTE[picture] for name in files}
    wanted.update({"transparent.gif": white, "placed.gif": placed, "beyond.gif": beyond,
                   "placed interlaced.gif": placed})
    write(tmp_path, files)
    check(decoded(tmp_path), wanted)
    for name in ("plain.gif", "local.gif", "interlaced.gif", "two frames.gif"):
        assert numpy.array_equal(numpy.asarray(Image.open(tmp_path / name).convert("RGB")),
                                 wanted[name]), name


def test_gif_compressed(tmp_path):
    """Real compression, as Pillow writes it."""
    flat = Image.fromarray((RGB // 64 * 64)).quantize(64)
    write(tmp_path, {"a.gif": saved(flat, "GIF"), "b.gif": saved(flat, "GIF", interlace=0)})
    pixels = numpy.asarray(flat.convert("RGB"))
    check(decoded(tmp_path), {"a.gif": pixels, "b.gif": pixels})


def test_gif_alpha_dropped(tmp_path):
    """The transparent index keeps its colour, the free canvas has the background's."""
    part = RANDOM.integers(0, 256, (4, 5), dtype="uint8")
    write(tmp_path, {"a.gif": gif(part, canvas=(WIDTH, HEIGHT), at=(3, 2), background=5,
                                  transparent=int(part[0, 0]))})
    placed = numpy.empty((HEIGHT, WIDTH, 3), dtype="uint8")
    placed[:] = PALETTE[5]
    placed[2:6, 3:8] = PALETTE[part]
    check(decoded(tmp_path, "--alpha", "drop"), {"a.gif": placed})


def test_gif_cut_and_false(tmp_path):
    picture = RANDOM.integers(0, 256, (HEIGHT, WIDTH), dtype="uint8")
    whole, part = gif(picture), gif(picture[:3], canvas=(WIDTH, HEIGHT))
    huge = b"GIF89a" + struct.pack("<HHBBB", 16000, 16000, 0, 0, 0)
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, 16000, 16000, 0)
    write(tmp_path, {
        "whole.gif": whole, "cut.gif": whole[:-40], "header.gif": whole[:9],
        "huge.gif": huge + frame + b"\x08\1\0",
        "huge interlaced.gif": huge + frame[:-1] + b"\x40\x08\1\0",
        "too large.gif": b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0, 0, 0) + frame +
                         b"\x08\0\x3b",
        "no frame.gif": huge + b"\x3b",
        "no pixels.gif": huge + b"\x2c" + bytes(9) + b"\x08\0\x3b",
        # Three rows of codes for a frame of seven.
        "short codes.gif": part[:781 + 7] + struct.pack("<H", HEIGHT) + part[781 + 9:],
        "wrong codes.gif": whole[:781 + 10] + b"\x08\x04\0\1\2\2\0\x3b",
    })
    failed, images = failures(tmp_path)
    assert images == ["whole.gif"]
    assert {name: reason for name, (reason, _) in failed.items()} == {
        "cut.gif": "truncated", "header.gif": "truncated", "huge.gif": "truncated",
        "huge interlaced.gif": "truncated", "too large.gif": "too-large", "no frame.gif": "corrupt",
        "no pixels.gif": "corrupt", "short codes.gif": "truncated", "wrong codes.gif": "corrupt"}


# --- WebP -----------------------------------------------------------------------------------------

def test_webp_pixels(tmp_path):
    """Lossless pixels are those that were written, lossy ones those that Pillow reads."""
    rgba = numpy.dstack([RGB, ALPHA])
    files = {
        "lossless.webp": saved(Image.fromarray(RGB), "WEBP", lossless=True),
        "lossless alpha.webp": saved(Image.fromarray(rgba), "WEBP", lossless=True, exact=True),
        "lossy.webp": saved(Image.fromarray(RGB), "WEBP", quality=70),
        "lossy alpha.webp": saved(Image.fromarray(rgba), "WEBP", quality=70, alpha_quality=60),
        "frames.webp": saved(Image.fromarray(RGB), "WEBP", lossless=True, save_all=True,
                             append_images=[Image.fromarray(255 - RGB)], duration=100),
        "alpha frames.webp": saved(Image.fromarray(rgba), "WEBP", lossless=True, exact=True,
                                   save_all=True, duration=100,
                                   append_images=[Image.fromarray(255 - rgba)]),
    }
    write(tmp_path, files)
    wanted = {"lossless.webp": RGB, "frames.webp": RGB, "lossless alpha.webp": over(RGB, ALPHA),
              "alpha frames.webp": over(RGB, ALPHA)}
    wanted["lossy.webp"] = numpy.asarray(Image.open(tmp_path / "lossy.webp").convert("RGB"))
    lossy = numpy.asarray(Image.open(tmp_path / "lossy alpha.webp"))
    wanted["lossy alpha.webp"] = over(lossy[..., :3], lossy[..., 3])
    check(decoded(tmp_path), wanted)
    assert numpy.array_equal(cv2.imread(str(tmp_path / "lossy.webp"))[..., ::-1],
                             wanted["lossy.webp"])
    # Cut into strips, where memory is short, they stay the same.
    check(decoded(tmp_path, "--memory", "16M"), wanted)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_webp_orientation(tmp_path, orientation):
    exif = Image.Exif()
    exif[0x112] = orientation
    data = saved(Image.fromarray(RGB), "WEBP", lossless=True, exif=exif)
    write(tmp_path, {"a.webp": data})
    turned = {1: RGB, 2: RGB[:, ::-1], 3: RGB[::-1, ::-1], 4: RGB[::-1],
              5: RGB.transpose(1, 0, 2), 6: RGB[::-1].transpose(1, 0, 2),
              7: RGB[::-1, ::-1].transpose(1, 0, 2), 8: RGB[:, ::-1].transpose(1, 0, 2)}
    check(decoded(tmp_path), {"a.webp": turned[orientation]})


def test_webp_frame_on_canvas(tmp_path):
    """A first frame that is smaller than the canvas; what it leaves free is the background."""
    part = RGB[:4, :5]
    still = saved(Image.fromarray(part), "WEBP", lossless=True)
    chunk = still[12:]
    frame = b"".join(struct.pack("<I", v)[:3] for v in (2 // 2, 2 // 2, 4, 3, 100)) + b"\2" + chunk
    body = b"VP8X" + struct.pack("<II", 10, 0x12) + struct.pack("<I", WIDTH - 1)[:3] + struct.pack(
        "<I", HEIGHT - 1)[:3] + b"ANIM" + struct.pack("<IIH", 6, 0, 0) + b"ANMF" + struct.pack(
        "<I", len(frame)) + frame
    write(tmp_path, {"a.webp": b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body})
    placed = numpy.full((HEIGHT, WIDTH, 3), 255, dtype="uint8")
    placed[2:6, 2:7] = part
    check(decoded(tmp_path), {"a.webp": placed})


def test_webp_cut_and_false(tmp_path):
    whole = saved(Image.fromarray(RGB), "WEBP", lossless=True)
    lossy = saved(Image.fromarray(RGB), "WEBP", quality=90)
    riff = b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8X" + struct.pack("<II", 10, 0)
    write(tmp_path, {
        "whole.webp": whole, "cut.webp": whole[:-7], "cut lossy.webp": lossy[:len(lossy) // 2],
        # The container is shortened too, so that only the codec can tell.
        "cut inside.webp": b"RIFF" + struct.pack("<I", len(lossy) // 2 - 8) + lossy[8:16] +
                           struct.pack("<I", len(lossy) // 2 - 20) + lossy[20:len(lossy) // 2],
        "too large.webp": riff + b"\xff" * 6,
        "no data.webp": riff + b"\x3f\0\0\x3f\0\0",
        "no frame.webp": riff[:20] + b"\2\0\0\0\x3f\0\0\x3f\0\0",
    })
    failed, images = failures(tmp_path)
    assert images == ["whole.webp"]
    reasons = {name: reason for name, (reason, _) in failed.items()}
    assert reasons.pop("no data.webp") in ("truncated", "corrupt")
    assert reasons == {"cut.webp": "truncated", "cut lossy.webp": "truncated",
                       "cut inside.webp": "truncated", "too large.webp": "too-large",
                       "no frame.webp": "corrupt"}
