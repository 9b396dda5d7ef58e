"""Recomputes the attribute `shown` of a file with h5py; see docs/file-format.md, "Checksums and identity"."""

import hashlib
import re
import sys
from pathlib import Path

import h5py

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from identity import CONTAINERS, DEFINED, _attributes, _type_name  # noqa: E402

# What `shown` covers in addition to the objects that have checksums.
BESIDE = {
    "/": "clpipe_version created",
    "/images/(inode|ctime_ns|directories)": "",
    "/failures/(inode|ctime_ns)": "",
    "/clusters/[^/]+": "source_bytes source_mtime_ns source_sample",
    "/thumbnails": "size",
    "/thumbnails/(data|end)": "",
    "/parts": "",
    "/parts/(path|rows|thumbnail_bytes|bytes|identity)": "",
    "/checksums": "identity",
    "/runs": "run_clusters",
    "/runs/[^/]+": "command clpipe_version details device driver finished host seconds",
    "/runs/[^/]+/row_map": "root",
}
SCALES = ("image|failure|source|digest_word|rank|code_byte|(json|txt|thumbnail|checksum)_byte|part|(feature|cluster"
          "|iteration|sweep|row|dimension|column|neighbour|piece|codebook_row|codebook_value|class|selection|omitted)_.*")


def head_of(name, item, attributes):
    """The bytes that enter the digest for an object: its name, type, shape, axes and attributes."""
    head = f"group {name}\n"
    if isinstance(item, h5py.Dataset):
        axes = ",".join(axis[0].name[1:] if len(axis) else "-" for axis in item.dims)
        head = f"dataset {name} {_type_name(item.dtype)} {','.join(map(str, item.shape))} {axes}\n"
    parts = [head.encode()]
    for key in sorted(set(attributes) & set(item.attrs), key=str.encode):
        value = item.attrs[key]
        if isinstance(value, (str, bytes)):
            text = value.encode() if isinstance(value, str) else bytes(value).split(b"\0")[0]
            parts += [f"attribute {key} text scalar\n".encode(), len(text).to_bytes(8, "little"), text]
        else:
            parts += _attributes(item, [key])
    return b"".join(parts)


def shown(opened, runs=False):
    """The attribute `shown` of /checksums, or of /runs, in an open file."""
    digest, own = hashlib.sha256(), []

    def below(name, item, attributes=None):
        pattern = next((p for p in [*BESIDE, *DEFINED] if re.fullmatch(p, name)), "")
        if attributes is None:
            if not pattern and not re.fullmatch(CONTAINERS, name):
                return
            known = f"{DEFINED.get(pattern, '')} {BESIDE.get(pattern, '')}".split()
            if pattern.endswith("[^/]+") and known and known[0] not in item.attrs:
                return
        else:
            known = attributes
        inside = (name + "/").startswith("/runs/") == runs
        if isinstance(item, h5py.Dataset):
            if inside:
                digest.update(head_of(name, item, known))
                own.append(name)
            return
        if inside and pattern and known and attributes is None:
            digest.update(head_of(name, item, known))
        for key in sorted(item, key=str.encode) if name != "/checksums" or attributes else ():
            if isinstance(item.get(key, getlink=True), h5py.HardLink):
                below(f"{name.rstrip('/')}/{key}", item[key], attributes)

    below("/runs" if runs else "/", opened["/runs" if runs else "/"])
    if not runs and "checksums" in opened:
        below("/checksums", opened["checksums"], ["CLASS", "NAME", "root"])
    for name in () if runs else sorted(opened, key=str.encode):
        if not re.fullmatch(SCALES, name) or "CLASS" not in opened[name].attrs:
            continue
        digest.update(head_of(name, opened[name], ["CLASS", "NAME", "root"]))
        if "REFERENCE_LIST" in opened[name].attrs:
            total = 0
            for reference, axis in opened[name].attrs["REFERENCE_LIST"]:
                try:
                    target = opened[reference].name
                except ValueError:  # an object of another program, which has removed it
                    continue
                if target in own:
                    number = int.from_bytes(hashlib.sha256(target.encode()).digest()[:8], "little")
                    total += (number | 1) * (int(axis) + 1)
            digest.update((total % (1 << 64)).to_bytes(8, "little"))
    return digest.hexdigest()
