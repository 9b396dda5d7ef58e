"""GIF, WebP and TIFF: every pixel equals the written one or Pillow's; hostile headers are refused."""

import io
import json
import struct

import cv2
import numpy
import pytest
from PIL import Image

from conftest import run_clpipe
from pictures import check, decoded, failures, over, packed, scaled, tiff, tiff_tags

HEIGHT, WIDTH = 7, 11
RANDOM = numpy.random.default_rng(17)
RGB = RANDOM.integers(0, 256, (HEIGHT, WIDTH, 3), dtype="uint8")
ALPHA = RANDOM.integers(0, 256, (HEIGHT, WIDTH), dtype="uint8")


@pytest.fixture(autouse=True)
def needs(request, program):
    """Skips a test if the build cannot read the format that the test is named after."""
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
    """A GIF with one frame of uncompressed codes: 9 bits per pixel, and a clear code every 200 pixels."""
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
    """The files are written by Pillow, with compressed codes."""
    flat = Image.fromarray((RGB // 64 * 64)).quantize(64)
    write(tmp_path, {"a.gif": saved(flat, "GIF"), "b.gif": saved(flat, "GIF", interlace=0)})
    pixels = numpy.asarray(flat.convert("RGB"))
    check(decoded(tmp_path), {"a.gif": pixels, "b.gif": pixels})


def test_gif_alpha_dropped(tmp_path):
    """The transparent index keeps its colour, and the uncovered canvas has the background colour."""
    part = RANDOM.integers(0, 256, (4, 5), dtype="uint8")
    write(tmp_path, {"a.gif": gif(part, canvas=(WIDTH, HEIGHT), at=(3, 2), background=5,
                                  transparent=int(part[0, 0]))})
    placed = numpy.empty((HEIGHT, WIDTH, 3), dtype="uint8")
    placed[:] = PALETTE[5]
    placed[2:6, 3:8] = PALETTE[part]
    check(decoded(tmp_path, "--alpha", "drop"), {"a.gif": placed})


def test_gif_truncated_and_invalid(tmp_path):
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
        # Three rows of codes for a frame of seven rows.
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

@pytest.mark.deep
def test_webp_pixels(tmp_path):
    """Lossless pixels equal those that were written, lossy ones those that Pillow reads."""
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
    # Alpha that the header of the file does not announce is ignored.
    extended = b"VP8X" + struct.pack("<II", 10, 0) + struct.pack("<I", WIDTH - 1)[:3] + struct.pack("<I", HEIGHT - 1)[:3]
    body = b"WEBP" + extended + files["lossless alpha.webp"][12:]
    files["alpha unannounced.webp"] = b"RIFF" + struct.pack("<I", len(body)) + body
    write(tmp_path, files)
    wanted = {"lossless.webp": RGB, "frames.webp": RGB, "lossless alpha.webp": over(RGB, ALPHA),
              "alpha unannounced.webp": RGB,
              "alpha frames.webp": over(RGB, ALPHA)}
    wanted["lossy.webp"] = numpy.asarray(Image.open(tmp_path / "lossy.webp").convert("RGB"))
    lossy = numpy.asarray(Image.open(tmp_path / "lossy alpha.webp"))
    wanted["lossy alpha.webp"] = over(lossy[..., :3], lossy[..., 3])
    check(decoded(tmp_path), wanted)
    assert numpy.array_equal(cv2.imread(str(tmp_path / "lossy.webp"))[..., ::-1],
                             wanted["lossy.webp"])
    # With little memory, the pictures are cut into strips, which does not change them.
    check(decoded(tmp_path, "--memory", "16M"), wanted)


@pytest.mark.variations
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
    """A first frame smaller than the canvas: the rest of the canvas is background."""
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


def test_webp_truncated_and_invalid(tmp_path):
    whole = saved(Image.fromarray(RGB), "WEBP", lossless=True)
    lossy = saved(Image.fromarray(RGB), "WEBP", quality=90)
    riff = b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8X" + struct.pack("<II", 10, 0)
    write(tmp_path, {
        "whole.webp": whole, "cut.webp": whole[:-7], "cut lossy.webp": lossy[:len(lossy) // 2],
        # The container is shortened too, so that only the codec can notice.
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


# --- TIFF -----------------------------------------------------------------------------------------

def test_tiff_samples(tmp_path):
    """Every depth, photometric interpretation, byte order and planar layout gives the samples that were written."""
    files, wanted = {}, {}

    def add(name, tags, rows, pixels, **options):
        files[name] = tiff(tags, rows, **options)
        wanted[name] = pixels

    def random(top, samples=1):
        return RANDOM.integers(0, top + 1, (HEIGHT, WIDTH, samples))

    for bits in (1, 2, 4, 6, 8, 12):
        top = (1 << bits) - 1
        for photometric in (0, 1):
            grey = random(top)
            eight = scaled(grey, top)
            add(f"grey {bits} {photometric}.tif", tiff_tags(WIDTH, HEIGHT, bits, 1, photometric),
                [b"".join(packed(grey[..., 0], bits))], eight if photometric else 255 - eight)
        rgb = random(top, 3)
        add(f"rgb {bits}.tif", tiff_tags(WIDTH, HEIGHT, bits, 3, 2),
            [b"".join(packed(rgb.reshape(HEIGHT, -1), bits))], scaled(rgb, top))
    for order in "<>":
        for big in (False, True):
            name = f"{'little' if order == '<' else 'big'} {big}.tif"
            rgb = random(65535, 3)
            add("16 " + name, tiff_tags(WIDTH, HEIGHT, 16, 3, 2, rows=2),
                [rgb[y:y + 2].astype(f"{order}u2").tobytes() for y in range(0, HEIGHT, 2)],
                scaled(rgb, 65535), order=order, big=big)
    colour = numpy.arange(256 * 3).reshape(3, 256) * 85 % 65536
    picture = random(255)[..., 0]
    add("palette.tif", {**tiff_tags(WIDTH, HEIGHT, 8, 1, 3), 320: (3, colour.ravel().tolist())},
        [picture.astype("u1").tobytes()], scaled(colour.T[picture], 65535))
    add("palette of 8 bits.tif", {**tiff_tags(WIDTH, HEIGHT, 8, 1, 3),
                                  320: (3, (colour % 256).ravel().tolist())},
        [picture.astype("u1").tobytes()], (colour.T[picture] % 256).astype("uint8"))
    for bits, kind in ((8, "u1"), (16, "<u2")):
        top = (1 << bits) - 1
        rgba = random(top, 4)
        eight = scaled(rgba, top)
        body = [rgba.astype(kind).tobytes()]
        add(f"alpha {bits}.tif", tiff_tags(WIDTH, HEIGHT, bits, 4, 2, extra=2), body,
            over(eight[..., :3], eight[..., 3]))
        share = over(numpy.zeros_like(eight[..., :3]), eight[..., 3]).astype("uint32")
        add(f"premultiplied {bits}.tif", tiff_tags(WIDTH, HEIGHT, bits, 4, 2, extra=1), body,
            numpy.minimum(eight[..., :3] + share, 255).astype("uint8"))
        add(f"unknown fourth {bits}.tif", tiff_tags(WIDTH, HEIGHT, bits, 4, 2, extra=0), body,
            eight[..., :3])
        inverse = 255 - eight.astype("uint32")
        add(f"cmyk {bits}.tif", tiff_tags(WIDTH, HEIGHT, bits, 4, 5, inks=1), body,
            ((inverse[..., :3] * inverse[..., 3:] + 127) // 255).astype("uint8"))
        add(f"planes {bits}.tif", tiff_tags(WIDTH, HEIGHT, bits, 4, 2, extra=2, planar=2, rows=3),
            [rgba[y:y + 3, :, s].astype(kind).tobytes() for s in range(4)
             for y in range(0, HEIGHT, 3)], over(eight[..., :3], eight[..., 3]))
        grey = random(top, 2)
        eight = scaled(grey, top)
        add(f"grey alpha {bits}.tif", tiff_tags(WIDTH, HEIGHT, bits, 2, 1, extra=2),
            [grey.astype(kind).tobytes()], over(eight[..., :1].repeat(3, axis=2), eight[..., 1]))
    write(tmp_path, files)
    check(decoded(tmp_path), wanted)
    for name in ("rgb 8.tif", "grey 8 0.tif", "grey 8 1.tif", "grey 1 0.tif", "grey 1 1.tif"):
        check({name: numpy.asarray(Image.open(tmp_path / name).convert("RGB"))},
              {name: wanted[name]})


@pytest.mark.deep
def test_tiff_tiles(tmp_path):
    """Tiles that the picture does not fill, with one and with several planes."""
    height, width = 20, 37
    rgb = RANDOM.integers(0, 256, (height, width, 3), dtype="uint8")
    filled = numpy.zeros((32, 48, 3), dtype="uint8")
    filled[:height, :width] = rgb
    places = [(y, x) for y in (0, 16) for x in (0, 16, 32)]
    tags = tiff_tags(width, height, 8, 3, 2, tile=(16, 16))
    planes = tiff_tags(width, height, 8, 3, 2, tile=(16, 16), planar=2)
    write(tmp_path, {
        "tiles.tif": tiff(tags, [filled[y:y + 16, x:x + 16].tobytes() for y, x in places],
                          tiled=True),
        "planes.tif": tiff(planes, [filled[y:y + 16, x:x + 16, s].tobytes() for s in range(3)
                                    for y, x in places], tiled=True)})
    check(decoded(tmp_path), {"tiles.tif": rgb, "planes.tif": rgb})
    check(decoded(tmp_path, "--memory", "16M"), {"tiles.tif": rgb, "planes.tif": rgb})


def test_tiff_compressions(tmp_path):
    """The files are written by Pillow and OpenCV with libtiff."""
    rgb = Image.fromarray(RGB)
    grey, bilevel = rgb.convert("L"), rgb.convert("1")
    files, wanted = {}, {}
    for kind in ("raw", "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate", "packbits", "lzma",
                 "zstd"):
        for mode, picture in (("rgb", rgb), ("grey", grey)):
            files[f"{kind} {mode}.tif"] = saved(picture, "TIFF", compression=kind)
            wanted[f"{kind} {mode}.tif"] = numpy.asarray(picture)
    for kind in ("tiff_ccitt", "group3", "group4"):
        files[f"{kind}.tif"] = saved(bilevel, "TIFF", compression=kind)
        wanted[f"{kind}.tif"] = numpy.asarray(bilevel.convert("L"))
    predictor = cv2.imencode(".tif", RGB[..., ::-1])[1].tobytes()
    files["predictor.tif"], wanted["predictor.tif"] = predictor, RGB
    for mode, picture in (("ycbcr", rgb.convert("YCbCr")), ("grey", grey)):
        files[f"jpeg {mode}.tif"] = saved(picture, "TIFF", compression="jpeg", quality=90)
        wanted[f"jpeg {mode}.tif"] = None
    pages = saved(rgb, "TIFF", save_all=True, append_images=[Image.fromarray(255 - RGB)])
    files["pages.tif"], wanted["pages.tif"] = pages, RGB
    write(tmp_path, files)
    for name in ("jpeg ycbcr.tif", "jpeg grey.tif"):
        wanted[name] = numpy.asarray(Image.open(tmp_path / name).convert("RGB"))
    check(decoded(tmp_path), wanted)


@pytest.mark.deep
@pytest.mark.parametrize("orientation", [0, *range(1, 10)])
def test_tiff_orientation(tmp_path, orientation):
    """The tag is applied once; invalid orientations are ignored."""
    tags = tiff_tags(WIDTH, HEIGHT, 8, 3, 2, orientation=orientation)
    write(tmp_path, {"a.tif": tiff(tags, [RGB.tobytes()])})
    turned = {2: RGB[:, ::-1], 3: RGB[::-1, ::-1], 4: RGB[::-1],
              5: RGB.transpose(1, 0, 2), 6: RGB[::-1].transpose(1, 0, 2),
              7: RGB[::-1, ::-1].transpose(1, 0, 2), 8: RGB[:, ::-1].transpose(1, 0, 2)}
    check(decoded(tmp_path), {"a.tif": turned.get(orientation, RGB)})


def test_tiff_truncated_and_invalid(tmp_path):
    rows = [row.tobytes() for row in RGB]
    tags = tiff_tags(WIDTH, HEIGHT, 8, 3, 2, rows=1)
    whole = tiff(tags, rows)
    floats = {**tiff_tags(WIDTH, HEIGHT, 32, 1, 1), 339: (3, [3])}
    files = {
        "whole.tif": whole,
        "cut directory.tif": whole[:-30],
        "no directory.tif": b"II*\0\x08\0\0\0",
        "empty directory.tif": b"II*\0\x08\0\0\0" + bytes(60),
        "short strip.tif": tiff(tags, [*rows[:-1], rows[-1][:5]]),
        "too large.tif": tiff(tiff_tags(1 << 30, 1 << 30, 8, 3, 2), rows),
        "many strips.tif": tiff(tiff_tags(1, 0xffffffff, 8, 1, 1, rows=1), [b"1"]),
        "huge tile.tif": tiff(tiff_tags(1, 1, 8, 3, 2, tile=(1 << 20, 1 << 20)), [b"123"],
                              tiled=True),
        "float.tif": tiff(floats, [bytes(4 * WIDTH * HEIGHT)]),
        "no pixels.tif": tiff(tiff_tags(0, HEIGHT, 8, 3, 2), rows),
        "compression.tif": tiff({**tags, 259: (3, [31000])}, rows),
        "inks.tif": tiff(tiff_tags(WIDTH, HEIGHT, 8, 4, 5, inks=2), [bytes(4 * WIDTH * HEIGHT)]),
        "no palette.tif": tiff(tiff_tags(WIDTH, HEIGHT, 4, 1, 3), [bytes(WIDTH * HEIGHT)]),
    }
    write(tmp_path, files)
    failed, images = failures(tmp_path)
    assert images == ["whole.tif"]
    reasons = {name: reason for name, (reason, _) in failed.items()}
    assert reasons.pop("many strips.tif") in ("too-large", "truncated", "corrupt")
    assert reasons == {
        "cut directory.tif": "truncated", "no directory.tif": "truncated",
        "empty directory.tif": "corrupt", "short strip.tif": "truncated",
        "too large.tif": "too-large", "huge tile.tif": "too-large", "float.tif": "unsupported",
        "no pixels.tif": "corrupt", "compression.tif": "unsupported", "inks.tif": "unsupported",
        "no palette.tif": "corrupt"}
