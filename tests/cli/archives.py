"""Synthetic archives, one per case, with the results expected of `clpipe ingest`."""
import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib


def add(archive, name, content=b"", **more):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in more.items():
        setattr(info, key, value)
    archive.addfile(info, io.BytesIO(content))


def made_tar(members, **options):
    """A tar archive of members given as (name, content) or (name, TarInfo fields)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, **{"mode": "w", **options}) as archive:
        for name, content in members:
            if isinstance(content, bytes):
                add(archive, name, content)
            else:
                add(archive, name, **content)
    return out.getvalue()


def padded(content):
    return content + bytes(-len(content) % 512)


def member(name, content=b"", kind=b"0", size=None, magic=b"ustar\x0000", prefix=b"", more=None,
           checksum=None):
    """A tar header and its content. Fields are written as given; `more` maps offsets to bytes that replace them."""
    size = b"%011o\0" % len(content) if size is None else size
    head = bytearray(512)
    for at, field in {0: name, 100: b"0000644\0", 108: b"0000000\0", 116: b"0000000\0", 124: size,
                      136: b"00000000000\0", 148: b" " * 8, 156: kind, 257: magic, 345: prefix,
                      **(more or {})}.items():
        head[at:at + len(field)] = field
    head[148:156] = checksum or b"%06o\0 " % sum(head)
    return bytes(head) + padded(content)


def pax(records, kind=b"x"):
    """A pax header. Each record is a (key, value) pair of bytes, or bytes that are written unchanged."""
    text = b""
    for record in records:
        if isinstance(record, bytes):
            text += record
            continue
        body = b" %s=%s\n" % record
        length = len(body) + 1
        while len(b"%d" % length) + len(body) != length:
            length += 1
        text += b"%d" % length + body
    return member(b"PaxHeader", text, kind)


def base256(number):
    return (number + (0x80 << 88) if number >= 0 else number + (1 << 96)).to_bytes(12, "big")


END = bytes(1024)


def made_zip(members, method=zipfile.ZIP_STORED, zip64=False, comment=b""):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.comment = comment
        for name, content in members:
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=zip64) if zip64 else \
                    archive.open(name, "w") as stream:
                stream.write(content)
    return out.getvalue()


class Unseekable(io.RawIOBase):
    """An output without seek(), for which zipfile writes data descriptors."""
    def __init__(self):
        self.content = b""

    def writable(self):
        return True

    def write(self, data):
        self.content += bytes(data)
        return len(data)


def streamed_zip(members, method):
    out = Unseekable()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content, method)
    return out.content


def zip_member(name, content, stored=None, method=0, flags=0, local_name=None, crc=None, size=None,
               packed=None, extra=b"", local_extra=b"", mode=0o100644, offset=None, disk=0):
    """The fields of a member for raw_zip; `stored` holds the member's bytes as they appear in the file."""
    stored = content if stored is None else stored
    return dict(name=name, stored=stored, method=method, flags=flags, extra=extra, mode=mode, disk=disk,
                local_name=name if local_name is None else local_name, local_extra=local_extra,
                crc=zlib.crc32(content) if crc is None else crc, offset=offset,
                size=len(content) if size is None else size,
                packed=len(stored) if packed is None else packed)


def raw_zip(members, front=b"", count=None, directory_size=None, directory_offset=None, comment=b"",
            disk=0, after=b""):
    """A zip with arbitrary values in its fields."""
    out, directory = front, b""
    for m in members:
        offset = len(out) if m["offset"] is None else m["offset"]
        if m["offset"] is None:
            out += struct.pack("<4s5H3I2H", b"PK\3\4", 20, m["flags"], m["method"], 0, 33, m["crc"],
                               m["packed"], m["size"], len(m["local_name"]), len(m["local_extra"]))
            out += m["local_name"] + m["local_extra"] + m["stored"]
        directory += struct.pack("<4s6H3I5H2I", b"PK\1\2", 0x31e, 20, m["flags"], m["method"], 0, 33,
                                 m["crc"], m["packed"], m["size"], len(m["name"]), len(m["extra"]), 0,
                                 m["disk"], 0, m["mode"] << 16, offset) + m["name"] + m["extra"]
    begin = len(out) if directory_offset is None else directory_offset
    count = len(members) if count is None else count
    return out + directory + struct.pack(
        "<4s4H2IH", b"PK\5\6", disk, disk, count, count,
        len(directory) if directory_size is None else directory_size, begin, len(comment)) + \
        comment + after


def zstd_frame(content, rle=0):
    """A zstd frame: `content` in raw blocks, then `rle` run-length blocks of 128 KiB of zeros each."""
    out = b"\x28\xb5\x2f\xfd\x00\x58" # a window of 2 MiB
    parts = [content[at:at + 65536] for at in range(0, len(content), 65536)]
    blocks = [(0, len(part), part) for part in parts] + [(1, 1 << 17, b"\0")] * rle
    for i, (kind, size, data) in enumerate(blocks):
        out += (size << 3 | kind << 1 | (i == len(blocks) - 1)).to_bytes(3, "little") + data
    return out


def skippable(content):
    return struct.pack("<II", 0x184D2A50, len(content)) + content


def xz(content):
    """Compresses with xz and a small dictionary."""
    return lzma.compress(content, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 4096}])


LZMA = [{"id": lzma.FILTER_LZMA1, "dict_size": 4096, "lc": 3, "lp": 0, "pb": 2}]


def zip_lzma(content):
    return struct.pack("<4BBI", 9, 20, 5, 0, 93, 4096) + \
        lzma.compress(content, format=lzma.FORMAT_RAW, filters=LZMA)


def lzip(content):
    body = lzma.compress(content, format=lzma.FORMAT_RAW, filters=LZMA)
    return b"LZIP\1\x0c" + body + struct.pack("<IQQ", zlib.crc32(content), len(content),
                                              len(body) + 26)


def flip(content, at):
    return content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1:]


def made_archives(picture):
    """{archive: (content, expected images, expected failures)}. The failures map the name of a member to
    "reason: start of the message". The name "" is the archive itself; None is a file that is not an archive."""
    one = [("a.png", picture)]
    a = member(b"a.png", picture)
    b = member(b"b.png", picture)
    tar = made_tar(one)
    half = len(picture) // 2
    deflated = zlib.compress(picture)[2:-4]
    z = zip_member(b"a.png", picture)
    y = zip_member(b"b.png", picture)
    DAMAGED = "corrupt: the archive is damaged"
    CUT = "truncated: the archive is damaged"
    AGAIN = "unsupported: a second member of this name"
    OUT = "unsupported: the name leads out of the archive"
    LINK = "unsupported: a link in an archive"
    SPARSE = "unsupported: stored as a sparse file"
    good = ["a.png"]
    table = {
        # tar: names
        "pax-long.tar": (made_tar([("p" * 300 + ".png", picture)], format=tarfile.PAX_FORMAT),
                         ["p" * 300 + ".png"], {}),
        "gnu-long.tar": (made_tar([("d/" * 120 + "g.png", picture)], format=tarfile.GNU_FORMAT),
                         ["d/" * 120 + "g.png"], {}),
        "ustar-prefix.tar": (member(b"a.png", picture, prefix=b"p" * 155) + END,
                             ["p" * 155 + "/a.png"], {}),
        "v7.tar": (member(b"a.png", picture, kind=b"\0", magic=bytes(8)) + END, good, {}),
        "pax-global.tar": (made_tar(one, format=tarfile.PAX_FORMAT, pax_headers={"comment": "all"}),
                           good, {}),
        "utf8.tar": (made_tar([("\u65e5\u672c.png", picture)], format=tarfile.PAX_FORMAT),
                     ["\u65e5\u672c.png"], {}),
        "latin1.tar": (made_tar([("caf\u00e9.png", picture)], format=tarfile.USTAR_FORMAT,
                                encoding="latin-1"), [r"caf\xe9.png"], {}),
        "binary.tar": (pax([(b"hdrcharset", b"BINARY"), (b"path", b"\xff\xfe.png")]) + a + END,
                       [r"\xff\xfe.png"], {}),
        "dots.tar": (made_tar([("./././a.png", picture)]), good, {}),
        "newline.tar": (made_tar([("a\nb.png", picture)]), ["a\nb.png"], {}),
        "backslash.tar": (member(b"d\\a.png", picture) + END, ["d\\a.png"], {}),
        "4k-name.tar": (pax([(b"path", b"n" * 4096 + b".png")]) + a + END, ["n" * 4096 + ".png"], {}),
        "nul-in-pax.tar": (pax([(b"path", b"a.png\0.txt")]) + b + END, good, {}),
        "no-name.tar": (member(b"", picture) + b + END, ["?", "b.png"], {}),
        "same-by-dot.tar": (a + member(b"./a.png", picture) + END, good, {"a.png": AGAIN}),
        "hidden.tar": (made_tar([(".h.png", picture), (".d/a.png", picture)] + one), good, {}),
        "up.tar.gz": (made_tar([("../a.png", picture)] + one, mode="w:gz"), good, {"../a.png": OUT}),
        "again.txz": (xz(made_tar(one + one)), good, {"a.png": AGAIN}),
        # tar: sizes
        "pax-size.tar": (pax([(b"size", b"%d" % len(picture))]) +
                         member(b"a.png", picture, size=b"00000000000\0") + b + END,
                         ["a.png", "b.png"], {}),
        "pax-broken.tar": (pax([b"99 path=x.png\n"]) + a + b + END, ["a.png", "b.png"], {}),
        "base256.tar": (member(b"a.png", picture, size=base256(len(picture))) + b + END,
                        ["a.png", "b.png"], {}),
        "negative.tar": (member(b"a.png", picture, size=base256(-1)) + b + END, [], {"": DAMAGED}),
        "huge.tar": (member(b"a.png", picture, size=b"77777777777\0") + b + END, [],
                     {"a.png": "truncated: the archive ends before", "": CUT}),
        "huger.tar": (member(b"a.png", picture, size=base256(1 << 62)) + b + END, [],
                      {"a.png": "truncated: the archive ends before", "": CUT}),
        "huge.tar.gz": (gzip.compress(member(b"a.png", picture, size=base256(1 << 40)) + b + END), [],
                        {"a.png": "too-large: 1099511627776 bytes", "": CUT}),
        "no-octal.tar": (member(b"a.png", picture, size=b"abcdefghijk\0") + END, [],
                         {"": "corrupt: not an archive"}),
        "longer.tar": (member(b"a.png", picture, magic=b"ustar  \0", more={
            483: b"%011o\0" % (len(padded(picture)) + 1)}) + b + END, ["b.png"],
            {"a.png": "corrupt: the archive states a size"}),
        "negative-real.tar": (member(b"a.png", picture, magic=b"ustar  \0",
                                     more={483: b"\xff" * 12}) + b + END, ["b.png"],
                              {"a.png": "corrupt: the archive states a size below 0"}),
        # tar: members that are not regular files
        "hard.tar": (made_tar(one + [("h.png", {"type": tarfile.LNKTYPE, "linkname": "a.png"})]),
                     good, {"h.png": LINK}),
        "symbolic.tar": (made_tar([("s.png", {"type": tarfile.SYMTYPE, "linkname": "a.png"}),
                                   ("s", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"})] + one),
                         good, {"s.png": LINK, "s": "not-an-image: a link"}),
        "long-link.tar": (made_tar([("s.png", {"type": tarfile.SYMTYPE, "linkname": "l" * 300})] + one,
                                   format=tarfile.GNU_FORMAT), good, {"s.png": LINK}),
        "pax-link.tar": (made_tar([("s.png", {"type": tarfile.SYMTYPE, "linkname": "l" * 300})] + one,
                                  format=tarfile.PAX_FORMAT), good, {"s.png": LINK}),
        "device.tar": (made_tar([("null.png", {"type": tarfile.CHRTYPE})] + one), good,
                       {"null.png": "unsupported: not a regular file"}),
        "block.tar": (made_tar([("sda", {"type": tarfile.BLKTYPE})] + one), good,
                      {"sda": "not-an-image: not a regular file"}),
        "fifo.tar": (made_tar([("p.png", {"type": tarfile.FIFOTYPE})] + one), good,
                     {"p.png": "unsupported: not a regular file"}),
        "folder.tar": (made_tar([("d.png", {"type": tarfile.DIRTYPE})] + one), good, {}),
        "contiguous.tar": (member(b"a.png", picture, kind=b"7") + END, good, {}),
        "unknown-kind.tar": (member(b"a.png", picture, kind=b"Z") + END, good, {}),
        "label.tar": (member(b"label", kind=b"V", magic=b"ustar  \0") + a + END, good, {}),
        "volume.tar": (member(b"a.png", picture, kind=b"M", magic=b"ustar  \0",
                              more={369: b"00000001000\0"}) + b + END, ["b.png"],
                       {"a.png": "unsupported: not a regular file"}),
        "sparse-old.tar": (member(b"s.png", picture, kind=b"S", magic=b"ustar  \0", more={
            386: b"00000001000\0%011o\0" % len(picture), 483: b"%011o\0" % (512 + len(picture))}) + b +
            END, ["b.png"], {"s.png": SPARSE}),
        "sparse-pax.tar": (pax([(b"GNU.sparse.size", b"9999"), (b"GNU.sparse.numblocks", b"1"),
                                (b"GNU.sparse.map", b"512,%d" % len(picture))]) +
                           member(b"s.png", picture) + b + END, ["b.png"], {"s.png": SPARSE}),
        "sparse-new.tar": (pax([(b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"),
                                (b"GNU.sparse.name", b"s.png"), (b"GNU.sparse.realsize", b"99999")]) +
                           member(b"GNUSparseFile.0/s.png",
                                  padded(b"1\n512\n%d\n" % len(picture)) + picture) + b + END,
                           ["b.png"], {"s.png": SPARSE}),
        # tar: start and end of the archive
        "zeros.tar": (bytes(10240), [], {}),
        "nothing.tar": (b"", [], {"": "empty: an empty file"}),
        "folders.tar": (made_tar([("d", {"type": tarfile.DIRTYPE}), ("e", {"type": tarfile.DIRTYPE})]),
                        [], {}),
        "blocks.tar": (a, good, {}),
        "one-block.tar": (a + bytes(512), good, {}),
        "padded.tar": (tar + bytes(1 << 16), good, {}),
        "garbage.tar": (a + END + b"garbage " * 100, good, {}),
        "garbage-inside.tar": (a + b"garbage " * 128 + b + END, good, {"": DAMAGED}),
        "two.tar": (tar + made_tar([("b.png", picture)]), good, {}),
        "checksum.tar": (member(b"a.png", picture, checksum=b"000001\0 ") + END, [],
                         {"": "corrupt: not an archive"}),
        "checksum-second.tar": (a + member(b"b.png", picture, checksum=b"000001\0 ") + END, good,
                                {"": DAMAGED}),
        "cut-header.tar": (a + b[:200], good, {"": CUT}),
        "cut-data.tar": (a + b[:512 + half], good,
                         {"b.png": "truncated: the archive ends before", "": CUT}),
        "cut-padding.tar": ((a + b)[:len(a) + 512 + len(picture) + 1], ["a.png", "b.png"], {"": CUT}),
        # compressed tar
        "empty-file.tar.bz2": (made_tar([("e.png", b"")] + one, mode="w:bz2"), good,
                               {"e.png": "empty"}),
        "members.tar.gz": (gzip.compress(tar[:700]) + gzip.compress(tar[700:]), good, {}),
        "trailing.tar.gz": (gzip.compress(tar) + b"trailing garbage", good, {}),
        "sum.tar.gz": (flip(gzip.compress(tar), -8), good, {}),
        "named.tar.gz": (b"\x1f\x8b\x08\x1e" + bytes(6) + b"\2\0xx" + b"name\0comment\0" +
                         struct.pack("<H", zlib.crc32(b"\x1f\x8b\x08\x1e" + bytes(6) +
                                                      b"\2\0xxname\0comment\0") & 0xffff) +
                         gzip.compress(tar)[10:], good, {}),
        "cut-data.tgz": (gzip.compress(a + b)[:-half], [], {"": "truncated: not an archive"}),
        "plain.tar.gz": (tar, good, {}),
        "double.tar.gz": (gzip.compress(gzip.compress(tar)), good, {}),
        "text.tar.gz": (gzip.compress(b"text " * 500), [], {"": "corrupt: not an archive"}),
        "frames.tar.zst": (skippable(b"first") + zstd_frame(tar[:700]) + skippable(b"") +
                           zstd_frame(tar[700:]), good, {}),
        "cut.tar.zst": (zstd_frame(a + b)[:len(a) + half], [], {"": "truncated: not an archive"}),
        "damaged.tar.zst": (flip(zstd_frame(tar), 0), [], {"": "corrupt"}),
        "streams.tar.xz": (xz(tar[:700]) + bytes(8) + xz(tar[700:]), good, {}),
        "cut.tar.xz": (xz(a + b)[:-half], [], {"": "truncated: not an archive"}),
        "sum.tar.xz": (flip(xz(tar), -30), [], {"": "corrupt: not an archive"}),
        "streams.tar.bz2": (bz2.compress(tar[:700]) + bz2.compress(tar[700:]), good, {}),
        "cut.tar.bz2": (bz2.compress(tar)[:-20], [], {"": "truncated: not an archive"}),
        "lzip.tar.lz": (lzip(tar), good, {}),
        "alone.tar.lzma": (lzma.compress(tar, format=lzma.FORMAT_ALONE, filters=LZMA), good, {}),
        # zip
        "deflated.zip": (made_zip(one, zipfile.ZIP_DEFLATED), good, {}),
        "bzip2.zip": (made_zip(one, zipfile.ZIP_BZIP2), good, {}),
        "lzma.zip": (raw_zip([zip_member(b"a.png", picture, zip_lzma(picture), method=14, flags=2)]), good,
                     {}),
        "zip64.zip": (made_zip(one, zip64=True), good, {}),
        "descriptor-stored.zip": (streamed_zip(one, zipfile.ZIP_STORED), good, {}),
        "descriptor-deflated.zip": (streamed_zip(one, zipfile.ZIP_DEFLATED), good, {}),
        "encrypted.zip": (raw_zip([zip_member(b"a.png", picture, bytes(12) + picture, flags=1), y]),
                          ["b.png"], {"a.png": "unsupported: encrypted"}),
        "strongly.zip": (raw_zip([zip_member(b"a.png", picture, bytes(12) + picture, flags=0x41), y]),
                         ["b.png"], {"a.png": "unsupported: encrypted"}),
        **{f"method-{method}.zip": (raw_zip([zip_member(b"a.png", picture, deflated, method=method),
                                             y]), ["b.png"],
                                    {"a.png": "unsupported: cannot be read: Unsupported ZIP"})
           for method in (1, 6, 9, 96, 99)},
        "deflated-sum.zip": (raw_zip([zip_member(b"a.png", picture, deflated, method=8, crc=1), y]),
                             ["b.png"], {"a.png": "corrupt: "}),
        "stored-sum.zip": (raw_zip([zip_member(b"a.png", picture, crc=1)]), good, {}),
        "long.zip": (raw_zip([zip_member(b"a.png", picture, deflated, method=8,
                                         size=len(picture) + 1), y]), ["b.png"],
                     {"a.png": DAMAGED}),
        "short.zip": (raw_zip([zip_member(b"a.png", picture, deflated, method=8,
                                          size=len(picture) - 1), y]), ["b.png"],
                      {"a.png": DAMAGED}),
        "past-end.zip": (raw_zip([y, zip_member(b"a.png", picture, size=1 << 30, packed=1 << 30)]),
                         ["b.png"], {"a.png": "truncated: the archive ends before"}),
        "directory-offset.zip": (raw_zip([z], directory_offset=1 << 30), [], {"": "corrupt: "}),
        "directory-short.zip": (raw_zip([z, y], directory_size=10), [],
                                {"": "corrupt: a zip without members"}),
        "count-more.zip": (raw_zip([z], count=7), good, {"": "corrupt: 6 of 7 entries"}),
        "count-fewer.zip": (raw_zip([z, y], count=1), ["a.png", "b.png"], {}),
        "no-local.zip": (raw_zip([zip_member(b"a.png", picture, offset=7), y]), ["b.png"], {"": DAMAGED}),
        "overlap.zip": (raw_zip([z, zip_member(b"b.png", picture, offset=0)]), good,
                        {"": "corrupt: 1 of 2 entries"}),
        "other-name.zip": (raw_zip([zip_member(b"a.png", picture, local_name=b"other.png")]),
                           ["other.png"], {}),
        "local-extra.zip": (raw_zip([zip_member(b"a.png", picture, local_extra=b"zz\4\0abcd")]), good,
                            {}),
        "comment.zip": (made_zip(one, comment=b"a comment " * 50), good, {}),
        "comment-end.zip": (made_zip(one, comment=b"PK\5\6" + bytes(18)), [],
                            {"": "corrupt: a zip without members"}),
        "after.zip": (raw_zip([z], after=b"garbage"), good, {}),
        "front.zip": (b"#!/bin/sh\n" * 100 + made_zip(one), good, {}),
        "front-counted.zip": (raw_zip([z], front=b"#!/bin/sh\n" * 100), good, {}),
        "volume.zip": (raw_zip([zip_member(b"a.png", picture, disk=1)], disk=1), [],
                       {"": "corrupt: not an archive"}),
        "none.zip": (raw_zip([]), [], {"": "corrupt: not an archive"}),
        "no-directory.zip": (raw_zip([z])[:-90], [], {"": "corrupt: "}),
        "nothing.zip": (b"", [], {"": "empty: an empty file"}),
        "slashes.zip": (made_zip([("d/", b""), ("d/a.png", picture)]), ["d/a.png"], {}),
        "link.zip": (raw_zip([zip_member(b"s.png", b"a.png", mode=0o120777), z]), good,
                     {"s.png": LINK}),
        "utf8.zip": (made_zip([("\u65e5\u672c.png", picture)]), ["\u65e5\u672c.png"], {}),
        "cp437.zip": (raw_zip([zip_member(b"\x81.png", picture)]), [r"\x81.png"], {}),
        "backslash.zip": (raw_zip([zip_member(b"d\\a.png", picture)]), ["d/a.png"], {}),
        "drive.zip": (raw_zip([zip_member(b"C:\\a.png", picture)]), ["C:/a.png"], {}),
        "up-backslash.zip": (raw_zip([zip_member(b"..\\a.png", picture), y]), ["b.png"],
                             {"../a.png": OUT}),
        "nul.zip": (raw_zip([zip_member(b"a.png\0.txt", picture)]), good, {}),
        "4k-name.zip": (raw_zip([zip_member(b"n" * 4096 + b".png", picture)]), ["n" * 4096 + ".png"],
                        {}),
        "again.zip": (raw_zip([z, z]), good, {"a.png": AGAIN}),
        "up.zip": (made_zip([("../../a.png", picture), ("b.png", picture)]), ["b.png"],
                   {"../../a.png": OUT}),
        "absolute.zip": (made_zip([("/etc/a.png", picture), ("b.png", picture)]), ["b.png"],
                         {"/etc/a.png": OUT}),
        # nested archives, and files whose content does not match their name
        "nested.tar": (made_tar([("in.tar", tar), ("in.zip", made_zip(one))] + one), good,
                       {"in.tar": "not-an-image", "in.zip": "not-an-image"}),
        "nested.zip": (made_zip([("in.tar.gz", gzip.compress(tar))] + one), good,
                       {"in.tar.gz": "not-an-image"}),
        "picture.tar": (picture, [], {"": "corrupt: not an archive"}),
        "picture.zip": (picture, [], {"": "corrupt: not an archive"}),
        "zip.tar": (made_zip(one), good, {}),
        "tar.zip": (tar, good, {}),
        "cpio.tar": (b"070701" + b"0" * 104 + b"a.png\0", [], {"": "corrupt: not an archive"}),
        "tar.png": (tar, [], {None: "unknown-format"}),
        "zip-without": (made_zip(one), [], {None: "not-an-image"}),
    }
    return table


def made_bombs(picture):
    """{name: content}. Each archive holds a.png, which is 257 MiB of zeros, followed by b.png."""
    mib = 257
    front = member(b"a.png", size=b"%011o\0" % (mib << 20))
    back = member(b"b.png", picture) + END
    zeros = bytes(1 << 20)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    deflated = b"".join(packer.compress(zeros) for _ in range(mib)) + packer.flush()
    streams = {"gz": gzip.compress, "bz2": bz2.compress, "xz": xz}
    return {**{f"bomb.tar.{ending}": pack(front) + pack(zeros) * mib + pack(back)
               for ending, pack in streams.items()},
            "bomb.tar.zst": zstd_frame(front) + zstd_frame(b"", mib * 8) + zstd_frame(back),
            "bomb.zip": raw_zip([zip_member(b"a.png", b"", deflated, method=8, size=mib << 20),
                                 zip_member(b"b.png", picture)])}
