"""Helpers of the tests of single formats: reading pixels back from a result, and writing image files."""

import struct

import h5py
import numpy

from conftest import run_clpipe


def decoded(directory, *options, expect=0):
    """{name: upright pixels, (height, width, 3)} of a directory of pictures of one size.

    The grid has one cell per pixel, so the histogram of a cell gives the value of its pixel.
    """
    result = run_clpipe("ingest", directory, "-o", directory / "sizes.h5", "--hidden", "-q",
                        "--exclude", "*.h5", *options)
    assert result.returncode == expect, result.stderr
    with h5py.File(directory / "sizes.h5") as file:
        sizes = set(zip(file["images/height"][:].tolist(), file["images/width"][:].tolist()))
    assert len(sizes) == 1, sizes
    height, width = sizes.pop()
    out = directory / "pixels.h5"
    run_clpipe("ingest", directory, "-o", out, "--hidden", "-q", "--exclude", "*.h5", "--normalize",
               "none", "--feature", f"p=rgb:bins=256,grid={height}x{width}", *options)
    with h5py.File(out) as file:
        counts = file["features/p"][:].reshape(-1, height, width, 3, 256)
        names = file["images/path"].asstr()[:].tolist()
    assert (counts.sum(axis=4) == 1).all()
    return dict(zip(names, counts.argmax(axis=4).astype("uint8")))


def failures(directory, *options):
    """Ingests a directory; returns its failures as {name: (reason, message)} and the names of its images."""
    out = directory / "failures.h5"
    run_clpipe("ingest", directory, "-o", out, "--hidden", "-q", "--exclude", "*.h5", *options)
    with h5py.File(out) as file:
        return (dict(zip(file["failures/path"].asstr()[:].tolist(),
                         zip([r.decode() for r in file["failures/reason"][:]],
                             file["failures/message"].asstr()[:].tolist()))),
                file["images/path"].asstr()[:].tolist())


def scaled(samples, top):
    """Samples in the range 0 to top, scaled to 8 bits."""
    samples = numpy.asarray(samples, dtype="uint64")
    return ((samples * 255 + top // 2) // top).astype("uint8")


def over(colour, alpha, background=255):
    """Blends a colour with alpha over the background; all have 8 bits."""
    colour = colour.astype("uint32")
    alpha = alpha.astype("uint32")[..., None]
    return ((colour * alpha + background * (255 - alpha) + 127) // 255).astype("uint8")


def check(found, wanted):
    """Asserts equal names and pixels. Grey pictures in `wanted` may have one channel or no axis for channels."""
    assert set(found) == set(wanted)
    wrong = []
    for name, pixels in wanted.items():
        if pixels.ndim == 2:
            pixels = pixels[..., None]
        if not numpy.array_equal(found[name], numpy.broadcast_to(pixels, (*pixels.shape[:2], 3))):
            wrong.append(name)
    assert not wrong, wrong


# --- BMP ------------------------------------------------------------------------------------------

def bmp(width, height, bits, rows, compression=0, header=40, palette=b"", masks=(), used=0):
    """A bitmap; `rows` are the stored bytes of all rows."""
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", header, width, height, 1, bits, compression, len(rows),
                           2835, 2835, used, 0)[:header]
        if header > 40:
            info += b"".join(struct.pack("<I", mask) for mask in masks)
            info = info.ljust(header, b"\0")
            masks = ()
    info += b"".join(struct.pack("<I", mask) for mask in masks)
    offset = 14 + len(info) + len(palette)
    return struct.pack("<2sIHHI", b"BM", offset + len(rows), 0, 0, offset) + info + palette + rows


def padded_rows(rows, size=4):
    """The rows from the bottom up, each padded to a multiple of `size` bytes."""
    return b"".join(row + b"\0" * (-len(row) % size) for row in reversed([bytes(r) for r in rows]))


def packed(indices, bits):
    """Packs rows of indices into rows of bytes, with the first pixel in the highest bits."""
    rows = []
    for row in indices:
        text = "".join(format(int(i), f"0{bits}b") for i in row)
        text += "0" * (-len(text) % 8)
        rows.append(bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8)))
    return rows


# --- TIFF -----------------------------------------------------------------------------------------

def tiff(tags, blocks, order="<", big=False, tiled=False):
    """A TIFF of one page. `tags` is {number: (type, values)}; `blocks` are the strips or tiles.

    Types 1 and 7 are bytes, 3 is 16 bits, 4 is 32 bits.
    """
    sizes = {1: "B", 3: "H", 4: "I", 7: "B", 16: "Q"}
    word, count, small = ("Q", "Q", 8) if big else ("I", "H", 4)
    head = 16 if big else 8
    place, offsets = head, []
    for block in blocks:
        offsets.append(place)
        place += len(block) + len(block) % 2
    tags = dict(tags)
    tags[324 if tiled else 273] = (4, offsets)
    tags[325 if tiled else 279] = (4, [len(block) for block in blocks])
    directory = struct.pack(order + count, len(tags))
    extra_at = place + len(directory) + len(tags) * (20 if big else 12) + struct.calcsize(word)
    extra = b""
    for number in sorted(tags):
        kind, values = tags[number]
        value = struct.pack(f"{order}{len(values)}{sizes[kind]}", *values)
        if len(value) > small:
            value, more = struct.pack(order + word, extra_at + len(extra)), value
            extra += more + b"\0" * (len(more) % 2)
        directory += struct.pack(order + "HH" + word, number, kind, len(values))
        directory += value.ljust(small, b"\0")
    directory += struct.pack(order + word, 0)
    start = b"II" if order == "<" else b"MM"
    start += struct.pack(order + ("HHHQ" if big else "HI"), *((43, 8, 0, place) if big
                                                              else (42, place)))
    return start + b"".join(b + b"\0" * (len(b) % 2) for b in blocks) + directory + extra


def tiff_tags(width, height, bits, samples, photometric, **more):
    """The tags of every page; `more` may give rows (per strip), extra, planar, orientation, tile or inks."""
    tags = {256: (4, [width]), 257: (4, [height]), 258: (3, [bits] * samples), 259: (3, [1]),
            262: (3, [photometric]), 277: (3, [samples]), 284: (3, [more.get("planar", 1)])}
    if "tile" in more:
        tags[322], tags[323] = (4, [more["tile"][0]]), (4, [more["tile"][1]])
    else:
        tags[278] = (4, [more.get("rows", height)])
    if "extra" in more:
        tags[338] = (3, [more["extra"]])
    if "orientation" in more:
        tags[274] = (3, [more["orientation"]])
    if "inks" in more:
        tags[332] = (3, [more["inks"]])
    return tags
