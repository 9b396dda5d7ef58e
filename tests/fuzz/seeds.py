#!/usr/bin/env python3
"""Generates small inputs for the fuzz targets.

    tests/fuzz/seeds.py DEST CLPIPE

Writes DEST/TARGET/NAME: for each target a few dozen files, most of them smaller than a kilobyte. CLPIPE is
the program, which makes the finished files and the logs. Inputs that need PIL, cjpeg or h5py are skipped with
a message if these are missing.
"""
import glob
import io
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "cli"))
import archives

WIDTH, HEIGHT = 11, 9


class Seeds:
    """Writes seed files to DEST, one folder for each target."""

    def __init__(self, dest):
        self.dest = dest
        self.count = 0

    def add(self, target, name, data):
        for folder in [target] + (["decode"] if target in IMAGES else []):
            path = os.path.join(self.dest, folder)
            os.makedirs(path, exist_ok=True)
            with open(os.path.join(path, target + "-" + name), "wb") as file:
                file.write(data)
        self.count += 1


def sample(x, y, channel, most=255):
    """A test picture with edges, a gradient and some noise."""
    noise = (x * 2654435761 + y * 40503 + channel * 977) >> 5 & 31
    return ((x * 19 + y * 7 * (channel + 1)) % 224 + noise) * most // 255


def rgb(width=WIDTH, height=HEIGHT):
    return bytes(sample(x, y, c) for y in range(height) for x in range(width) for c in range(3))


# --- PNG ------------------------------------------------------------------------------------------

def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_rows(width, height, channels, depth, x0=0, y0=0, dx=1, dy=1, filters=(0, 1, 2, 3, 4)):
    """Returns filter bytes and packed samples. The samples are not actually filtered, so the decoded pixels
    are arbitrary."""
    out = bytearray()
    for row, y in enumerate(range(y0, height, dy)):
        bits = ""
        for x in range(x0, width, dx):
            for c in range(channels):
                bits += format(sample(x, y, c, (1 << depth) - 1), "0%db" % depth)
        if not bits:
            return b""
        bits += "0" * (-len(bits) % 8)
        out.append(filters[row % len(filters)])
        out += int(bits, 2).to_bytes(len(bits) // 8, "big")
    return bytes(out)


def png(colour, depth, interlaced=False, extra=b"", level=9, split=0, width=WIDTH, height=HEIGHT,
        tail=b""):
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4),
                  (1, 0, 2, 2), (0, 1, 1, 2)]
        raw = b"".join(png_rows(width, height, channels, depth, *p) for p in passes)
    else:
        raw = png_rows(width, height, channels, depth)
    packed = zlib.compress(raw, level)
    step = split or len(packed)
    parts = [packed[i:i + step] for i in range(0, len(packed), step)]
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra +
            b"".join(chunk(b"IDAT", part) for part in parts) + tail + chunk(b"IEND", b""))


def exif(orientation, order="<"):
    mark = b"II*\0" if order == "<" else b"MM\0*"
    return (mark + struct.pack(order + "IHHHIHHI", 8, 1, 0x112, 3, 1, orientation, 0, 0))


def draw_png(seeds):
    palette = chunk(b"PLTE", bytes(sample(i, 1, c) for i in range(256) for c in range(3)))
    for colour, depths in ((0, (1, 2, 4, 8, 16)), (2, (8, 16)), (3, (1, 2, 4, 8)), (4, (8, 16)),
                           (6, (8, 16))):
        for depth in depths:
            extra = palette[:0] if colour != 3 else chunk(
                b"PLTE", bytes(sample(i, 1, c) for i in range(1 << depth) for c in range(3)))
            seeds.add("png", "c%dd%d" % (colour, depth), png(colour, depth, extra=extra))
            seeds.add("png", "c%dd%d-adam7-stored" % (colour, depth),
                      png(colour, depth, interlaced=True, extra=extra, level=0))
    seeds.add("png", "grey-key", png(0, 8, extra=chunk(b"tRNS", b"\0\x40"), level=0))
    seeds.add("png", "rgb-key", png(2, 16, extra=chunk(b"tRNS", b"\0\1\0\2\0\3"), level=0))
    seeds.add("png", "palette-alpha",
              png(3, 8, extra=palette + chunk(b"tRNS", bytes(range(0, 250, 7)))))
    seeds.add("png", "exif", png(2, 8, extra=chunk(b"eXIf", exif(6)), split=40))
    gamma = chunk(b"gAMA", b"\0\0\xb1\x8f")
    profile = chunk(b"iCCP", b"x\0\0" + zlib.compress(b"profile"))
    seeds.add("png", "texts", png(0, 8, extra=chunk(b"tEXt", b"a\0b") + gamma + profile,
                                  tail=chunk(b"zTXt", b"k\0\0" + zlib.compress(b"text"))))
    seeds.add("png", "apng", png(6, 8, extra=chunk(b"acTL", struct.pack(">II", 2, 0)) + chunk(
        b"fcTL", struct.pack(">IIIIIHHBB", 0, WIDTH, HEIGHT, 0, 0, 1, 10, 0, 0)),
        tail=chunk(b"fdAT", b"\0\0\0\1abc")))
    seeds.add("png", "one", png(0, 1, width=1, height=1))
    seeds.add("png", "cut", png(2, 8)[:-30])


# --- JPEG -----------------------------------------------------------------------------------------

def draw_jpeg(seeds):
    ppm = b"P6\n%d %d\n255\n" % (2 * WIDTH, 2 * HEIGHT) + rgb(2 * WIDTH, 2 * HEIGHT)
    if shutil.which("cjpeg"):
        for name, options in {
                "420": [], "444": ["-sample", "1x1"], "422": ["-sample", "2x1"],
                "440": ["-sample", "1x2"], "411": ["-sample", "4x1"], "grey": ["-grayscale"],
                "rgb": ["-rgb"], "progressive": ["-progressive"], "restart": ["-restart", "1B"],
                "arithmetic": ["-arithmetic"], "arithmetic-progressive":
                ["-arithmetic", "-progressive"], "low": ["-quality", "5"],
                "high": ["-quality", "100", "-optimize"]}.items():
            made = subprocess.run(["cjpeg"] + options, input=ppm, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL)
            if made.returncode == 0:
                seeds.add("jpeg", name, made.stdout)
    else:
        print("seeds: cjpeg is not there: fewer JPEGs")
    try:
        from PIL import Image
    except ImportError:
        print("seeds: PIL is not there: no JPEG in CMYK or with EXIF, no GIF, TIFF and WebP by it")
        return
    image = Image.frombytes("RGB", (WIDTH, HEIGHT), rgb())

    def save(target, name, picture, **options):
        out = io.BytesIO()
        try:
            picture.save(out, **options)
        except (OSError, KeyError, ValueError):
            return
        seeds.add(target, name, out.getvalue())

    save("jpeg", "pil", image, format="JPEG", quality=30)
    save("jpeg", "pil-progressive", image, format="JPEG", progressive=True, subsampling=0)
    save("jpeg", "cmyk", image.convert("CMYK"), format="JPEG", quality=50)
    for orientation in (3, 6):
        save("jpeg", "exif%d" % orientation, image, format="JPEG", quality=10,
             exif=b"Exif\0\0" + exif(orientation, "<>"[orientation % 2]))
    save("webp", "lossy", image, format="WEBP", quality=30)
    save("webp", "lossless", image, format="WEBP", lossless=True)
    alpha = image.convert("RGBA")
    alpha.putalpha(Image.frombytes("L", (WIDTH, HEIGHT), rgb()[:WIDTH * HEIGHT]))
    save("webp", "alpha", alpha, format="WEBP", quality=30)
    save("webp", "alpha-lossless", alpha, format="WEBP", lossless=True, exact=True)
    save("webp", "exif", image, format="WEBP", quality=5, exif=b"Exif\0\0" + exif(8))
    save("webp", "animated", alpha, format="WEBP", save_all=True, quality=5,
         append_images=[alpha.rotate(90).resize((WIDTH, HEIGHT))])
    save("gif", "pil", image.convert("P", palette=Image.ADAPTIVE, colors=16), format="GIF")
    for how in ("raw", "tiff_lzw", "tiff_deflate", "tiff_adobe_deflate", "packbits", "jpeg"):
        save("tiff", "rgb-" + how, image, format="TIFF", compression=how)
    for how in ("raw", "group3", "group4", "tiff_ccitt"):
        save("tiff", "bits-" + how, image.convert("1"), format="TIFF", compression=how)
    for mode in ("L", "LA", "RGBA", "CMYK", "P", "I;16", "YCbCr", "F"):
        try:
            save("tiff", "mode-" + mode.replace(";", ""), image.convert("L").convert(mode)
                 if mode in ("I;16", "F") else image.convert(mode), format="TIFF")
        except ValueError:
            pass


# --- BMP, GIF, netpbm, TIFF by hand ---------------------------------------------------------------

def bmp(bits, data, compression=0, palette=b"", height=HEIGHT, masks=b"", header=40):
    if header == 12:
        info = struct.pack("<IHHHH", 12, WIDTH, height, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", header, WIDTH, height, 1, bits, compression, len(data),
                           2835, 2835, len(palette) // 4, 0)
        info += masks.ljust(header - 40, b"\0") if header > 40 else masks
    start = 14 + len(info) + len(palette)
    return b"BM" + struct.pack("<IHHI", start + len(data), 0, 0, start) + info + palette + data


def draw_bmp(seeds):
    def rows(bits):
        size = (WIDTH * bits + 31) // 32 * 4
        return b"".join(bytes(sample(x, y, 0) for x in range(size)) for y in range(HEIGHT))

    for bits in (1, 4, 8):
        palette = bytes(sample(i, 2, c) for i in range(1 << bits) for c in range(4))
        seeds.add("bmp", "p%d" % bits, bmp(bits, rows(bits), palette=palette))
    small = bytes(sample(i, 2, c) for i in range(16) for c in range(3))
    seeds.add("bmp", "core", bmp(4, rows(4), palette=small, header=12))
    for bits in (16, 24, 32):
        seeds.add("bmp", "rgb%d" % bits, bmp(bits, rows(bits)))
    seeds.add("bmp", "down", bmp(24, rows(24), height=-HEIGHT))
    seeds.add("bmp", "masks16", bmp(16, rows(16), 3, masks=struct.pack("<III", 0xf800, 0x7e0, 31)))
    seeds.add("bmp", "v4", bmp(32, rows(32), 3, header=108, masks=struct.pack(
        "<IIII", 0xff, 0xff00, 0xff0000, 0xff000000)))
    palette = bytes(sample(i, 2, c) for i in range(256) for c in range(4))
    line = b"\5\7\0\6abcdef"
    seeds.add("bmp", "rle8", bmp(8, (line + b"\0\0") * HEIGHT + b"\0\1", 1, palette))
    seeds.add("bmp", "rle8-delta", bmp(8, b"\3\1\0\2\2\1" + line + b"\0\1", 1, palette))
    seeds.add("bmp", "rle4", bmp(4, b"\5\x12\0\6\x12\x34\x56\0\0\0" * HEIGHT + b"\0\1", 2,
                                 palette[:64]))


def lzw(pixels, bits):
    """GIF's LZW without a dictionary: frequent clear codes keep the code size constant."""
    clear, size = 1 << bits, bits + 1
    value = length = 0
    out = bytearray()
    codes = []
    for i, pixel in enumerate(pixels):
        if i % (clear - 2) == 0:
            codes.append(clear)
        codes.append(pixel)
    codes.append(clear + 1)
    for code in codes:
        value |= code << length
        length += size
        while length >= 8:
            out.append(value & 255)
            value >>= 8
            length -= 8
    out.append(value & 255)
    blocks = b"".join(bytes([len(out[i:i + 255])]) + bytes(out[i:i + 255])
                      for i in range(0, len(out), 255))
    return bytes([bits]) + blocks + b"\0"


def draw_gif(seeds):
    palette = bytes(sample(i, 2, c) for i in range(8) for c in range(3))
    pixels = [sample(x, y, 0) & 7 for y in range(HEIGHT) for x in range(WIDTH)]

    def image(left=0, top=0, flags=0, width=WIDTH, height=HEIGHT):
        return (b"," + struct.pack("<HHHHB", left, top, width, height, flags) +
                (palette if flags & 0x80 else b"") + lzw(pixels[:width * height], 3))

    screen = struct.pack("<HHBBB", WIDTH, HEIGHT, 0x82, 1, 0)
    control = b"!\xf9\4" + struct.pack("<BHB", 1, 5, 3) + b"\0"
    for name, data in {
            "plain": b"GIF87a" + screen + palette + image(),
            "clear": b"GIF89a" + screen + palette + control + image(),
            "local": b"GIF89a" + screen[:4] + b"\0\0\0" + image(flags=0x82),
            "laced": b"GIF89a" + screen + palette + image(flags=0x40),
            "part": b"GIF89a" + screen + palette + control + image(3, 2, 0, 5, 4),
            "comment": b"GIF89a" + screen + palette + b"!\xfe\3abc\0" + image(),
            "frames": b"GIF89a" + screen + palette + control + image() + control + image(1, 1, 0,
                                                                                        4, 4),
    }.items():
        seeds.add("gif", name, data + b";")
    seeds.add("gif", "cut", b"GIF89a" + screen + palette + image()[:-20])


def draw_netpbm(seeds):
    size = b"%d %d" % (WIDTH, HEIGHT)
    bits = bytes(sample(x, y, 0) for y in range(HEIGHT) for x in range((WIDTH + 7) // 8))
    grey = bytes(sample(x, y, 0) for y in range(HEIGHT) for x in range(WIDTH))
    text = b" ".join(b"%d" % v for v in grey)
    for name, data in {
            "p1": b"P1\n" + size + b"\n" + b" ".join(b"%d" % (v & 1) for v in grey),
            "p2": b"P2 # comment\n" + size + b"\n255\n" + text,
            "p3": b"P3\n3 2\n15\n" + b" ".join(b"%d" % (v % 16) for v in grey[:18]),
            "p4": b"P4\n" + size + b"\n" + bits,
            "p5": b"P5\n#c\n" + size + b" 255\n" + grey,
            "p5-100": b"P5 " + size + b" 100\n" + bytes(v % 101 for v in grey),
            "p5-16": b"P5\n" + size + b"\n65535\n" + grey + grey,
            "p6": b"P6\n" + size + b"\n255\n" + rgb(),
            "p6-16": b"P6\n" + size + b"\n1023\n" + bytes(
                b for v in rgb() for b in (v % 4, v)),
    }.items():
        seeds.add("pnm", name, data)
    for kind, depth in ((b"BLACKANDWHITE", 1), (b"GRAYSCALE", 1), (b"GRAYSCALE_ALPHA", 2),
                        (b"RGB", 3), (b"RGB_ALPHA", 4)):
        most = 1 if kind.startswith(b"BLACK") else 255
        data = bytes(sample(i, 3, 0, most) for i in range(WIDTH * HEIGHT * depth))
        seeds.add("pnm", "pam-" + kind.decode().lower(),
                  b"P7\nWIDTH %d\nHEIGHT %d\nDEPTH %d\nMAXVAL %d\nTUPLTYPE %s\nENDHDR\n" %
                  (WIDTH, HEIGHT, depth, most, kind) + data)
    for letter, channels in ((b"f", 1), (b"F", 3)):
        for order, scale in (("<", b"-1.0"), (">", b"1.0")):
            floats = [sample(i, 5, 0) / 255 for i in range(WIDTH * HEIGHT * channels)]
            seeds.add("pfm", "%s%s" % (letter.decode(), "le" if order == "<" else "be"),
                      b"P" + letter + b"\n" + size + b"\n" + scale + b"\n" +
                      struct.pack(order + "%df" % len(floats), *floats))


def tiff(order, tags, data, extra=b""):
    """A TIFF with one directory; `tags` are (tag, type, values), types 3 and 4."""
    def pack(text, *values):
        return struct.pack(order + text, *values)

    start = 8 + len(data) + len(extra)
    start += start % 2
    body = (b"II" if order == "<" else b"MM") + pack("HI", 42, start) + data + extra
    body = body.ljust(start, b"\0")
    later = start + 2 + 12 * len(tags) + 4
    directory, values_after = pack("H", len(tags)), b""
    for tag, kind, values in sorted(tags):
        packed = pack("%d%s" % (len(values), {3: "H", 4: "I"}[kind]), *values)
        if len(packed) <= 4:
            field = packed.ljust(4, b"\0")
        else:
            field = pack("I", later + len(values_after))
            values_after += packed
        directory += pack("HHI", tag, kind, len(values)) + field
    return body + directory + pack("I", 0) + values_after


def draw_tiff(seeds):
    def tags(samples, bits, photometric, strips, counts, more=()):
        return [(256, 3, [WIDTH]), (257, 3, [HEIGHT]), (258, 3, [bits] * samples),
                (259, 3, [1]), (262, 3, [photometric]), (273, 4, strips), (277, 3, [samples]),
                (278, 3, [-(-HEIGHT // len(strips))]), (279, 4, counts)] + list(more)

    data = rgb()
    grey = data[:WIDTH * HEIGHT]
    half = WIDTH * 3 * 5
    for order in "<>":
        name = {"<": "le", ">": "be"}[order]
        seeds.add("tiff", "rgb-" + name, tiff(order, tags(3, 8, 2, [8], [len(data)]), data))
        seeds.add("tiff", "strips-" + name, tiff(order, tags(
            3, 8, 2, [8, 8 + half], [half, len(data) - half]), data))
        seeds.add("tiff", "grey16-" + name, tiff(order, tags(1, 16, 1, [8], [2 * len(grey)]),
                                                grey + grey))
    seeds.add("tiff", "planar", tiff("<", tags(
        3, 8, 2, [8, 8 + len(grey), 8 + 2 * len(grey)], [len(grey)] * 3, [(284, 3, [2])]), data))
    seeds.add("tiff", "white-zero", tiff("<", tags(1, 4, 0, [8], [6 * HEIGHT]), grey[:6 * HEIGHT]))
    seeds.add("tiff", "palette", tiff("<", tags(1, 8, 3, [8], [len(grey)], [
        (320, 3, [i * 257 % 65536 for i in range(768)])]), grey))
    seeds.add("tiff", "alpha", tiff("<", tags(4, 8, 2, [8], [len(grey) * 4], [
        (338, 3, [2]), (274, 3, [6])]), data + grey))
    tile = bytes(16 * 16 * 3)
    seeds.add("tiff", "tiles", tiff("<", [
        t for t in tags(3, 8, 2, [8], [len(tile)]) if t[0] not in (273, 278, 279)] + [
        (322, 3, [16]), (323, 3, [16]), (324, 4, [8]), (325, 4, [len(tile)])], tile))


def draw_heif(seeds):
    if not shutil.which("heif-enc"):
        print("seeds: heif-enc is not there: no HEIF and AVIF")
        return
    with tempfile.TemporaryDirectory() as work:
        source, target = os.path.join(work, "a.png"), os.path.join(work, "a.out")
        for picture, colour in (("rgb", 2), ("alpha", 6), ("grey", 0)):
            with open(source, "wb") as file:
                file.write(png(colour, 8, width=20, height=17))
            for format_, options in (("heif", []), ("avif", ["-A"])):
                done = subprocess.run(["heif-enc", "-q", "40", *options, source, "-o", target],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                if done.returncode == 0 and os.path.exists(target):
                    with open(target, "rb") as file:
                        seeds.add(format_, picture, file.read())
                    os.remove(target)


def draw_jxl(seeds):
    if not shutil.which("cjxl"):
        print("seeds: cjxl is not there: no JPEG XL")
        return
    with tempfile.TemporaryDirectory() as work:
        source, target = os.path.join(work, "a.png"), os.path.join(work, "a.jxl")
        for picture, colour, depth, options in (
                ("lossless", 2, 8, ["-d", "0"]), ("alpha", 6, 8, ["-d", "0"]),
                ("lossy", 6, 8, ["-d", "2"]), ("deep", 0, 16, ["-d", "0"]),
                ("boxes", 2, 8, ["-d", "1", "--container=1"])):
            with open(source, "wb") as file:
                file.write(png(colour, depth, width=20, height=17))
            done = subprocess.run(["cjxl", source, target, *options], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
            if done.returncode == 0:
                with open(target, "rb") as file:
                    seeds.add("jxl", picture, file.read())


# --- readers --------------------------------------------------------------------------------------

def draw_list(seeds):
    for name, data in {
            "lines": b"a.jpg\nb/c.png\n./b//c.png\na.jpg\n\n/x/y.jpg\n",
            "nul": b"a\nb.jpg\0./a\nb.jpg\0\0c\0c\0//d/./e", "empty": b"", "one": b"x",
            "dots": b"./\n.\n..\n.//./a\n././a\n/\n//\n", "crlf": b"a.jpg\r\nb.jpg\r\n",
            "bytes": b"\xff\xfe\n\xc3\xa4.jpg\n\t \n"}.items():
        seeds.add("list", name, data)


def draw_listfile(seeds):
    """Lists without the first record, which the target adds."""
    file, archive = b"f 2 1.5 a.jpg\0f 70 -3 b/c.cls\0f 0 0.000000001 b/c.jpg\0", b"a 9000 1 x.tar\0"
    whole = b"z 4000 1700000000.123456789 y.tgz\0c 5 0 1.png\0c 6000 3 2.png\0"
    one, two = b"f 2 1.5 a.jpg\0", b"f 0 1 b/c.jpg\0"
    blocks = one + two + b"p 14 0 0 %s\0p 28 1 3 %s\0e 2 %s 4 42\0" % (
        b"7ab16675456b5a848f23568dcc6752fa", b"0d0ea5d67fbda92810c6d3ed6655bc43", b"0" * 32)
    failed = b"x unreadable 13 0 0.0 2 no x.tar/c.jpg\0x not-an-image 0 0 1.0 0  d\n.txt\0"
    for name, data in {
            "files": file, "members": archive + b"m 5 512 b.jpg\0m 8488 512 ./c\0c 1 2 d\0" + failed,
            "whole": whole + failed.replace(b"x.tar", b"y.tgz") + file, "mixed": file + archive + whole,
            "cut": file[:-1], "empty": b"", "end": b"e 0 %032d 0 14\0" % 0,
            "twice": file + file[:14], "blocks": blocks,
            "outside": archive + b"m 9001 0 b\0", "before": b"m 1 1 b\0"}.items():
        seeds.add("listfile", name, data)


def draw_archive(seeds):
    """The small archives of the tests, and one archive with all kinds of members."""
    picture = png(0, 8)
    kinds = [("special.png", {"type": kind, "linkname": "a.png"}) for kind in
             (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE)]
    many = [("a.png", picture), ("b/" + "n" * 120 + ".png", picture), ("./c.txt", b"hi"),
            ("../out.png", b"out"), ("\u00fc.png", b""), ("a.png", b"again")] + kinds
    table = {name: row[0] for name, row in archives.made_archives(picture).items()}
    for name in ("GNU", "PAX"):
        table["many-" + name] = archives.made_tar(many, format=getattr(tarfile, name + "_FORMAT"))
    for name, content in table.items():
        if not content[8192:].strip(b"\0"):
            seeds.add("archive", name, content[:8192])


def draw_npy(seeds):
    values = bytes(sample(i, 7, 0) for i in range(12 * 8))
    for dtype, size in (("<f4", 4), (">f4", 4), ("<f8", 8), ("<f2", 2), ("|u1", 1), ("<i4", 4),
                        (">u8", 8), ("|i1", 1), ("|b1", 1)):
        for order in ("True", "False"):
            for version in (1, 2, 3):
                text = "{'descr': '%s', 'fortran_order': %s, 'shape': (4, 3), }" % (dtype, order)
                text = text.encode().ljust(63) + b"\n"
                length = struct.pack("<H" if version == 1 else "<I", len(text))
                seeds.add("npy", "%s-%s-%d" % (dtype.strip("<>|") + str(ord(dtype[0])), order,
                                               version),
                          b"\x93NUMPY" + bytes([version, 0]) + length + text + values[:12 * size])


def draw_network(seeds):
    """Networks of one to seven layers with all kinds of layers."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
    import network_numpy
    import numpy
    draw = numpy.random.default_rng(1)
    same = {"height": 6, "width": 5, "channels": 4}
    window = {"kernel_y": 3, "kernel_x": 3, "stride_y": 1, "stride_x": 1, "top": 1, "left": 1}
    range8 = {"low": 0, "high": 255}

    def convolution(a, inputs, groups):
        return dict(same, kind="convolution", a=a, dilation_y=1, dilation_x=1, groups=groups, zero=3,
                    weights=draw.integers(-128, 128, (4, 3, 3, inputs // groups)),
                    bias=draw.integers(-99, 99, 4), multiplier=numpy.full(4, 2 ** 30),
                    shifts=numpy.array([40, 41, 33, 31]), **window, **range8)
    layers = [convolution(0, 3, 1), convolution(1, 4, 4),
              dict(same, kind="table", a=2, groups=1, zero=3, tables=draw.integers(0, 256, (1, 256))),
              dict(same, kind="add", a=3, b=1, zero=0, mul_a=1 << 19, mul_b=1 << 19, shift=20, **range8),
              dict(kind="mean", a=4, height=1, width=1, channels=4, kernel_y=6, kernel_x=5, stride_y=1,
                   stride_x=1, zero=9, mul_a=1 << 30, shift=30, **range8),
              dict(same, kind="multiply", a=4, b=5, zero=0, mul_a=1 << 30, shift=38, **range8),
              dict(same, kind="max", a=6, zero=0, **window),
              dict(kind="sum", a=7, height=1, width=1, channels=4)]
    for count in range(1, len(layers) + 1):
        seeds.add("network", "layers-%d" % count, network_numpy.write(
            {"picture": (6, 5, 9), "layers": layers[:count], "about": "name: seed\n",
             "outputs": [{"name": "last", "tensor": count, "multiplier": 1, "shift": 3}]}))


def draw_matrix(seeds):
    try:
        import h5py
    except ImportError:
        print("seeds: h5py is not there: no foreign HDF5 files")
        return
    for kind in ("<f4", ">f8", "<f2", "|u1", "<i8"):
        for name, options in {"": {}, "-packed": {"compression": "gzip", "shuffle": True},
                              "-chunks": {"chunks": (2, 2), "maxshape": (None, 3)},
                              "-sums": {"chunks": (3, 2), "compression": "gzip",
                                        "fletcher32": True}}.items():
            out = io.BytesIO()
            with h5py.File(out, "w") as file:
                data = file.create_dataset("m", (4, 3), kind, **options)
                data[...] = [[r * 3 + c for c in range(3)] for r in range(4)]
            seeds.add("matrix", kind.strip("<>|") + name, out.getvalue())


def draw_store(seeds, program):
    """Finished files and logs of a few pictures and failures."""
    with tempfile.TemporaryDirectory() as work:
        pictures = os.path.join(work, "pictures")
        os.makedirs(pictures)
        for i, colour in enumerate((0, 2, 6)):
            with open(os.path.join(pictures, "%d.png" % i), "wb") as file:
                file.write(png(colour, 8, width=WIDTH + i))
        with open(os.path.join(os.fsencode(pictures), b"\xff.png"), "wb") as file:
            file.write(png(2, 8))
        for name, data in (("cut.png", png(2, 8)[:-40]), ("empty.jpg", b""), ("text.txt", b"hi")):
            with open(os.path.join(pictures, name), "wb") as file:
                file.write(data)

        def clpipe(*arguments):
            done = subprocess.run([program] + list(arguments), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  cwd=work)
            if done.returncode not in (0, 1):
                sys.exit("seeds: clpipe %s: %s" % (" ".join(arguments), done.stderr))

        def take(target, name, path):
            with open(max(glob.glob(os.path.join(work, path)), key=os.path.getsize), "rb") as file:
                seeds.add(target, name, file.read())

        small = ["--feature", "rgb:bins=2"]
        more = small + ["--feature", "gray:bins=3,normalize=none"]
        clpipe("ingest", "pictures", "-o", "one.h5", *small)
        clpipe("ingest", "pictures", "-o", "two.h5", *more)
        clpipe("cluster", "one.h5", "-k", "2")
        take("result", "clusters", "one.h5")
        take("result", "features", "two.h5")
        clpipe("ingest", "pictures", "-o", "log.h5", "--strict", *small)
        take("log", "strict", "log.h5.partial/log-*")
        os.remove(os.path.join(pictures, "cut.png"))
        os.remove(os.path.join(pictures, "empty.jpg"))
        with open(os.path.join(pictures, "zz.png"), "wb") as file:
            file.write(b"")
        clpipe("ingest", "pictures", "-o", "log2.h5", "--strict", *small)
        clpipe("ingest", "pictures", "-o", "log2.h5", "--strict", *small)
        take("log", "again", "log2.h5.partial/log-*")


IMAGES = ("jpeg", "png", "bmp", "gif", "pnm", "pfm", "tiff", "webp", "heif", "avif", "jxl")


def main(arguments):
    if len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    seeds = Seeds(arguments[1])
    for draw in (draw_png, draw_jpeg, draw_bmp, draw_gif, draw_netpbm, draw_tiff, draw_heif,
                 draw_jxl, draw_list, draw_listfile, draw_archive, draw_npy, draw_network,
                 draw_matrix):
        draw(seeds)
    draw_store(seeds, os.path.abspath(arguments[2]))
    seeds.add("decode", "text", b"hello")
    seeds.add("decode", "empty", b"")
    print("seeds: %d inputs in %s" % (seeds.count, arguments[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
