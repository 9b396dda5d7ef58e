"""BMP, PNM, PAM and PFM, which the program decodes without a library: every pixel is correct, and hostile headers
are refused."""

import struct

import cv2
import h5py
import numpy
import pytest
from PIL import Image

from pictures import bmp, check, decoded, failures, over, packed, padded_rows, scaled

HEIGHT, WIDTH = 7, 11
RANDOM = numpy.random.default_rng(11)
RGB = RANDOM.integers(0, 256, (HEIGHT, WIDTH, 3), dtype="uint8")
PALETTE = RANDOM.integers(0, 256, (256, 3), dtype="uint8")


def indices(colours):
    return RANDOM.integers(0, colours, (HEIGHT, WIDTH))


def bmp_palette(colours, size=4):
    return b"".join(bytes(PALETTE[i][::-1]) + b"\0" * (size - 3) for i in range(colours))


def words(values, size):
    return [row.astype(f"<u{size}").tobytes() for row in values]


def run_lengths(rows, bits):
    """Encodes rows as RLE8 or RLE4 from the bottom up, with a run and literals in each row."""
    data = b""
    for row in rows[::-1]:
        row = [int(v) for v in row]
        same = row[0]
        length = next((i for i, v in enumerate(row) if v != same), len(row))
        data += bytes([length, same if bits == 8 else same * 17])
        rest = row[length:]
        if len(rest) >= 3:
            literal = bytes(rest) if bits == 8 else packed([rest], 4)[0]
            data += bytes([0, len(rest)]) + literal + b"\0" * (len(literal) % 2)
        else:
            data += b"".join(bytes([1, v if bits == 8 else v << 4]) for v in rest)
        data += b"\0\0"
    return data[:-2] + b"\0\1"


def test_bmp(tmp_path, program):
    files, wanted = {}, {}

    def add(name, data, pixels):
        files[name], wanted[name] = data, pixels

    bgr = [row[:, ::-1].tobytes() for row in RGB]
    add("24.bmp", bmp(WIDTH, HEIGHT, 24, padded_rows(bgr)), RGB)
    add("24 top down.bmp", bmp(WIDTH, -HEIGHT, 24, padded_rows(bgr[::-1])), RGB)
    add("24 os2.bmp", bmp(WIDTH, HEIGHT, 24, padded_rows(bgr), header=12), RGB)
    for bits in (1, 2, 4, 8):
        picture = indices(1 << bits)
        rows = padded_rows(packed(picture, bits))
        pixels = PALETTE[picture]
        add(f"{bits}.bmp", bmp(WIDTH, HEIGHT, bits, rows, palette=bmp_palette(1 << bits)), pixels)
        add(f"{bits} os2.bmp", bmp(WIDTH, HEIGHT, bits, rows, header=12,
                                   palette=bmp_palette(1 << bits, 3)), pixels)
    picture = indices(5)
    add("8 short palette.bmp", bmp(WIDTH, HEIGHT, 8, padded_rows(packed(picture, 8)), used=5,
                                   palette=bmp_palette(5)), PALETTE[picture])
    word = RANDOM.integers(0, 65536, (HEIGHT, WIDTH), dtype="uint16")
    parts = [scaled(word >> shift & 31, 31) for shift in (10, 5, 0)]
    add("555.bmp", bmp(WIDTH, HEIGHT, 16, padded_rows(words(word, 2))), numpy.dstack(parts))
    parts = [scaled(word >> 11, 31), scaled(word >> 5 & 63, 63), scaled(word & 31, 31)]
    add("565.bmp", bmp(WIDTH, HEIGHT, 16, padded_rows(words(word, 2)), compression=3,
                       masks=(0xf800, 0x7e0, 0x1f)), numpy.dstack(parts))
    long = RANDOM.integers(0, 1 << 32, (HEIGHT, WIDTH), dtype="uint32")
    add("32.bmp", bmp(WIDTH, HEIGHT, 32, padded_rows(words(long, 4))),
        numpy.dstack([long >> 16 & 255, long >> 8 & 255, long & 255]).astype("uint8"))
    ten = numpy.dstack([scaled(long >> shift & 1023, 1023) for shift in (20, 10, 0)])
    add("10 bits.bmp", bmp(WIDTH, HEIGHT, 32, padded_rows(words(long, 4)), compression=3,
                           masks=(0x3ff00000, 0xffc00, 0x3ff)), ten)
    masks = (0xff000000, 0xff0000, 0xff00, 0xff)
    colours = numpy.dstack([long >> 24, long >> 16 & 255, long >> 8 & 255]).astype("uint8")
    for header in (56, 108, 124):
        add(f"alpha {header}.bmp",
            bmp(WIDTH, HEIGHT, 32, padded_rows(words(long, 4)), compression=3, header=header,
                masks=masks), over(colours, (long & 255).astype("uint8")))
    for bits in (4, 8):
        picture = indices(1 << bits)
        picture[:, :4] = picture[:, :1]
        add(f"rle{bits}.bmp", bmp(WIDTH, HEIGHT, bits, run_lengths(picture, bits),
                                  compression=3 - bits // 4, palette=bmp_palette(1 << bits)),
            PALETTE[picture])
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    check(decoded(tmp_path), wanted)
    with h5py.File(tmp_path / "sizes.h5") as file:
        channels = dict(zip(file["images/path"].asstr()[:], file["images/channels"][:].tolist()))
    assert channels == {name: 4 if name.startswith("alpha") else 3 for name in files}
    # Pillow reads the same pixels, except for RLE4 with an odd number of literals, and so does OpenCV.
    for name in files:
        if name.startswith(("24", "1", "4", "8 ", "8.", "32", "rle8")) and "10 bits" not in name:
            pixels = numpy.asarray(Image.open(tmp_path / name).convert("RGB"))
            assert numpy.array_equal(pixels, wanted[name]), name
    for name in ("24.bmp", "24 top down.bmp", "1.bmp", "4.bmp", "8.bmp", "rle8.bmp", "rle4.bmp"):
        pixels = cv2.imread(str(tmp_path / name), cv2.IMREAD_COLOR)[..., ::-1]
        assert numpy.array_equal(pixels, wanted[name]), name


def test_bmp_skips(tmp_path, program):
    """Pixels that runs leave out have index 0; a run stops at the end of its row."""
    data = bytes([0, 2, 3, 1]) + bytes([99, 7]) + b"\0\0" + bytes([2, 9]) + b"\0\1"
    (tmp_path / "skips.bmp").write_bytes(bmp(WIDTH, HEIGHT, 8, data, compression=1,
                                             palette=bmp_palette(256)))
    picture = numpy.zeros((HEIGHT, WIDTH), dtype="uint8")
    picture[HEIGHT - 2, 3:] = 7
    picture[HEIGHT - 3, :2] = 9
    check(decoded(tmp_path), {"skips.bmp": PALETTE[picture]})


@pytest.mark.deep
@pytest.mark.parametrize("alpha, background", [("black", 0), ("drop", None)])
def test_alpha(tmp_path, program, alpha, background):
    samples = RANDOM.integers(0, 256, (HEIGHT, WIDTH, 4), dtype="uint8")
    head = f"P7\nWIDTH {WIDTH}\nHEIGHT {HEIGHT}\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n"
    (tmp_path / "a.pam").write_bytes(head.encode() + samples.tobytes())
    bgra = samples[..., [2, 1, 0, 3]]
    (tmp_path / "a.bmp").write_bytes(
        bmp(WIDTH, HEIGHT, 32, padded_rows([row.tobytes() for row in bgra]), compression=3,
            header=56, masks=(0xff0000, 0xff00, 0xff, 0xff000000)))
    pixels = samples[..., :3]
    if background is not None:
        pixels = over(pixels, samples[..., 3], background)
    check(decoded(tmp_path, "--alpha", alpha), {"a.pam": pixels, "a.bmp": pixels})


def test_pnm(tmp_path, program):
    files, wanted = {}, {}

    def add(name, head, body, pixels):
        files[name], wanted[name] = head.encode() + body, pixels

    def text(samples):
        return "\n".join(" ".join(map(str, row.ravel())) for row in samples).encode() + b"\n"

    size = f"{WIDTH} {HEIGHT}"
    bits = RANDOM.integers(0, 2, (HEIGHT, WIDTH))
    white = ((1 - bits) * 255).astype("uint8")
    add("plain.pbm", f"P1\n# a comment\n{size}\n", text(bits), white)
    add("dense.pbm", f"P1 {size}\n", "".join(map(str, bits.ravel())).encode(), white)
    add("raw.pbm", f"P4\n{size}\n", b"".join(packed(bits, 1)), white)
    for top in (1, 15, 200, 255, 1000, 65535):
        kind = ">u2" if top > 255 else "u1"
        grey = RANDOM.integers(0, top + 1, (HEIGHT, WIDTH))
        rgb = RANDOM.integers(0, top + 1, (HEIGHT, WIDTH, 3))
        add(f"plain {top}.pgm", f"P2 {size} {top}\n", text(grey), scaled(grey, top))
        add(f"plain {top}.ppm", f"P3\n#x\n{size}\n{top}\n", text(rgb), scaled(rgb, top))
        add(f"raw {top}.pgm", f"P5\n{size} # y\n{top}\n", grey.astype(kind).tobytes(),
            scaled(grey, top))
        add(f"raw {top}.ppm", f"P6\n{size}\n{top}\n", rgb.astype(kind).tobytes(), scaled(rgb, top))
        for depth, tuples in ((1, "GRAYSCALE"), (2, "GRAYSCALE_ALPHA"), (3, "RGB"),
                              (4, "RGB_ALPHA")):
            samples = RANDOM.integers(0, top + 1, (HEIGHT, WIDTH, depth))
            eight = scaled(samples, top)
            pixels = eight[..., :3] if depth > 2 else eight[..., :1].repeat(3, axis=2)
            if depth % 2 == 0:
                pixels = over(pixels, eight[..., -1])
            add(f"{depth} {top}.pam", f"P7\n# z\nWIDTH {WIDTH}\nHEIGHT {HEIGHT}\nDEPTH {depth}\n"
                f"MAXVAL {top}\nTUPLTYPE {tuples}\nENDHDR\n", samples.astype(kind).tobytes(), pixels)
    add("two.pgm", f"P5 {size} 255\n", RGB[..., 0].tobytes() + f"P5 {size} 255\n".encode() +
        RGB[..., 1].tobytes(), RGB[..., 0])
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    check(decoded(tmp_path), wanted)
    for name in ("raw.pbm", "raw 255.pgm", "raw 255.ppm", "plain 255.ppm"):
        assert numpy.array_equal(numpy.asarray(Image.open(tmp_path / name).convert("RGB")),
                                 wanted[name] if wanted[name].ndim == 3
                                 else wanted[name][..., None].repeat(3, axis=2)), name


def test_pfm(tmp_path, program):
    values = RANDOM.random((HEIGHT, WIDTH, 3)).astype("float32") * 1.2 - 0.1
    values[0, 0] = [numpy.nan, numpy.inf, -numpy.inf]
    with numpy.errstate(invalid="ignore"):
        pixels = numpy.floor(numpy.clip(numpy.nan_to_num(values.astype("float64"), nan=0), 0, 1) *
                             255 + 0.5).astype("uint8")
    size = f"{WIDTH} {HEIGHT}".encode()
    for order, scale in (("<", b"-1.0"), (">", b"1.0")):
        body = values[::-1].astype(f"{order}f4")
        (tmp_path / f"rgb{scale.decode()}.pfm").write_bytes(
            b"PF\n" + size + b"\n" + scale + b"\n" + body.tobytes())
        (tmp_path / f"grey{scale.decode()}.pfm").write_bytes(
            b"Pf\n" + size + b"\n" + scale + b"\n" + body[..., 1].tobytes())
    check(decoded(tmp_path), {f"{kind}{scale}.pfm": part for scale in ("-1.0", "1.0")
                              for kind, part in (("rgb", pixels), ("grey", pixels[..., 1]))})


def test_truncated_and_invalid(tmp_path, program):
    """Data that ends early is reported as truncated, whatever the header says; invalid headers cost nothing."""
    body = padded_rows([row.tobytes() for row in RGB])
    whole = bmp(WIDTH, HEIGHT, 24, body)
    size = f"{WIDTH} {HEIGHT}".encode()
    wanted = {
        "whole.bmp": None,
        "cut.bmp": "truncated",
        "last padding.bmp": None,
        "huge.bmp": "truncated",
        "huge runs.bmp": "truncated",
        "too large.bmp": "too-large",
        "no height.bmp": "corrupt",
        "3 bits.bmp": "corrupt",
        "jpeg inside.bmp": "unsupported",
        "cut.ppm": "truncated",
        "cut plain.ppm": "truncated",
        "huge.ppm": "truncated",
        "over.pgm": "corrupt",
        "before 0.pbm": "corrupt",
        "after 1.pbm": "corrupt",
        "no maxval.pgm": "corrupt",
        "cut.pfm": "truncated",
        "cut header.pam": "truncated",
        "five.pam": "unsupported",
    }
    files = {
        "whole.bmp": whole,
        "cut.bmp": whole[:-5],
        "last padding.bmp": whole[:-(-3 * WIDTH % 4)],
        "huge.bmp": bmp(16000, 16000, 24, b"")[:54] + b"\0" * 65,
        "huge runs.bmp": bmp(16000, 16000, 8, b"\2\1", compression=1, palette=bmp_palette(2), used=2),
        "too large.bmp": bmp(1 << 30, 1 << 30, 24, b"\0" * 65),
        "no height.bmp": bmp(5, 0, 24, b"\0" * 65),
        "3 bits.bmp": bmp(5, 5, 3, b"\0" * 65),
        "jpeg inside.bmp": bmp(5, 5, 24, b"\xff\xd8\xff" + b"\0" * 65, compression=4),
        "cut.ppm": b"P6 " + size + b" 255\n" + RGB.tobytes()[:-1],
        "cut plain.ppm": b"P3 " + size + b" 255\n1 2 3",
        "huge.ppm": b"P6 16000 16000 255\n",
        "over.pgm": b"P2 2 1 9 1 10\n",
        "before 0.pbm": b"P1 2 1 1/\n",
        "after 1.pbm": b"P1 2 1 02\n",
        "no maxval.pgm": b"P5 2 1 0\n11",
        "cut.pfm": b"PF\n2 2\n-1\n" + b"\0" * 47,
        "cut header.pam": b"P7\nWIDTH 5\n",
        "five.pam": b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 5\nMAXVAL 255\nENDHDR\n12345",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    failed, images = failures(tmp_path)
    assert {**{name: reason for name, (reason, _) in failed.items()},
            **{name: None for name in images}} == wanted
    assert all("neither 0 nor 1" in failed[name][1] for name in ("before 0.pbm", "after 1.pbm"))


def test_text_is_not_a_picture(tmp_path, program):
    """Text that begins like one of these formats is reported as not an image, not as a damaged one."""
    (tmp_path / "one.pgm").write_bytes(b"P5 1 1 255\n1")
    for name, text in (("a.txt", "P1 and P2 were there\n"), ("b.md", "BM is a shop\n"),
                       ("c", "P5\tof the report\n"), ("d.log", "PF call\n"),
                       ("e", struct.pack("<2sI", b"BM", 99) + b"letters and more letters")):
        (tmp_path / name).write_text(text) if isinstance(text, str) else (
            tmp_path / name).write_bytes(text)
    failed, images = failures(tmp_path)
    assert images == ["one.pgm"] and len(failed) == 5
    assert {reason for reason, _ in failed.values()} == {"not-an-image"}
