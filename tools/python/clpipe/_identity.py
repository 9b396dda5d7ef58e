"""The identity of a file, from its values: docs/file-format.md, "Checksums and identity", in h5py."""

from __future__ import annotations

import hashlib
import os
import re
from types import MappingProxyType
from typing import Any, Callable, Iterable, Iterator, List, Mapping, Optional, Union

import h5py
import numpy

# Names, and the attributes that count. A name that ends in [^/]+ is clpipe's if it has the first one.
DEFINED = {
    "/": "clpipe_format list_count list_digest parameters preset shard_count shard_first shard_index shard_last",
    "/images/(path|width|height|orientation|channels|source|bytes|mtime_ns|digest|format|code|sources|key|cls)": "",
    "/images/(json|txt)/(data|end)": "",
    "/images/flags": "names parameters",
    "/failures/(path|reason|message|bytes|errno|source|mtime_ns)": "",
    "/features/[^/]+": "spec kind bins grid normalize decode_scale imported_from imported_digest zero scale"
                       " model_digest model_runtime",
    "/codebooks/[^/]+": "digest spec",
    "/codebooks/[^/]+/[^/]+": "",
    "/classes/[^/]+": "model_digest",
    "/classes/[^/]+/(name|matrix|scale|offset)": "",
    "/clusters/[^/]+": "feature metric init parameters content k iterations seed converged inertia "
                       "folders purity nmi ari fitted_rows space parent level",
    "/clusters/[^/]+/(centroids|labels|distances|sizes|nearest|inertia_history|weights|mean|components|parents)": "",
    "/clusters/[^/]+/sweep": "measure reason sample",
    "/clusters/[^/]+/sweep/(k|iterations|converged|inertia|silhouette|simplified_silhouette"
    "|davies_bouldin|calinski_harabasz|purity|nmi|ari)": "",
    "/neighbours/[^/]+": "content feature metric n squared",
    "/neighbours/[^/]+/(rows|distances)": "",
    "/selections/[^/]+": "method content parameters seed",
    "/selections/[^/]+/(rows|reason|omitted|kept|cosine)": "",
}
# What `shown` covers beside these.
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
CONTAINERS = "/(images(/json|/txt)?|failures|features|codebooks|classes|clusters|neighbours|selections)"


def _pattern(name: str) -> str:
    return next((pattern for pattern in DEFINED if re.fullmatch(pattern, name)), "")


def _type_name(dtype: Any) -> str:
    text = h5py.check_string_dtype(dtype)
    return str(dtype.name) if not text else f"text{text.length or ''}"


def _attributes(item: Any, names: Iterable[str]) -> Iterator[bytes]:
    for key in sorted(set(names) & set(item.attrs), key=str.encode):
        kind, value = item.attrs.get_id(key).dtype, item.attrs[key]
        yield f"attribute {key} {_type_name(kind)} scalar\n".encode()
        if isinstance(value, str):
            yield len(value.encode()).to_bytes(8, "little") + value.encode()
        else:
            yield numpy.asarray(value, kind.newbyteorder("<")).tobytes()


def attributes_that_count(name: str) -> List[str]:
    """Those of an object of this absolute name."""
    return DEFINED.get(_pattern(name), "").split()


def leaves(data: Any) -> Iterator[bytes]:
    """The digests of a dataset's pieces."""
    row = max(1, data.dtype.itemsize * int(numpy.prod(data.shape[1:])))
    piece = 1 << max(0, ((1 << 20) // row).bit_length() - 1)
    for first in range(0, len(data) if data.size else 0, piece):
        values = numpy.asarray(data[first:first + piece], data.dtype.newbyteorder("<"))
        yield hashlib.sha256(values.tobytes()).digest()


def root(name: str, data: Any, attributes: Iterable[str] = (), found: Optional[Iterable[bytes]] = None) -> str:
    """The root of a dataset: `tree3-` and 58 digits. `name` is absolute; `attributes` are those that count;
    found: its leaves, where they are known."""
    axes = ",".join(axis[0].name[1:] if len(axis) else "-" for axis in data.dims)
    shape = ",".join(map(str, data.shape))
    digest = hashlib.sha256(f"dataset {name} {_type_name(data.dtype)} {shape} {axes}\n".encode())
    for part in _attributes(data, attributes):
        digest.update(part)
    for leaf in leaves(data) if found is None else found:
        digest.update(leaf)
    return f"tree3-{digest.hexdigest()[:58]}"


def _serialise(add: Callable[[bytes], Any], name: str, item: Any, known: Mapping[str, str]) -> None:
    pattern, attributes = _pattern(name), attributes_that_count(name)
    if not pattern and not re.fullmatch(CONTAINERS, name):
        return
    if attributes and pattern.endswith("[^/]+") and attributes[0] not in item.attrs:
        return
    if isinstance(item, h5py.Dataset):
        add((known.get(name) or root(name, item, attributes)).encode())
        return
    if attributes:
        add(f"group {name}\n".encode() + b"".join(_attributes(item, attributes)))
    for key in sorted(item, key=str.encode):
        if isinstance(item.get(key, getlink=True), h5py.HardLink):
            _serialise(add, f"{name.rstrip('/')}/{key}", item[key], known)


def identity_of(opened: Any, known: Mapping[str, str] = MappingProxyType({})) -> str:
    """That of an open h5py.File; known: roots of datasets by their absolute names."""
    digest = hashlib.sha256()
    _serialise(digest.update, "/", opened["/"], known)
    return digest.hexdigest()


def _head(name: str, item: Any, attributes: Iterable[str]) -> bytes:
    """What HDF5 says of an object."""
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


def shown(opened: Any, runs: bool = False) -> str:
    """The attribute `shown` of /checksums, or of /runs, of an open file."""
    digest, own = hashlib.sha256(), []

    def below(name: str, item: Any, attributes: Optional[List[str]] = None) -> None:
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
                digest.update(_head(name, item, known))
                own.append(name)
            return
        if inside and pattern and known and attributes is None:
            digest.update(_head(name, item, known))
        for key in sorted(item, key=str.encode) if name != "/checksums" or attributes else ():
            if isinstance(item.get(key, getlink=True), h5py.HardLink):
                below(f"{name.rstrip('/')}/{key}", item[key], attributes)

    below("/runs" if runs else "/", opened["/runs" if runs else "/"])
    if not runs and "checksums" in opened:
        below("/checksums", opened["checksums"], ["CLASS", "NAME", "root"])
    for name in () if runs else sorted(opened, key=str.encode):
        if not re.fullmatch(SCALES, name) or "CLASS" not in opened[name].attrs:
            continue
        digest.update(_head(name, opened[name], ["CLASS", "NAME", "root"]))
        if "REFERENCE_LIST" in opened[name].attrs:
            total = 0
            for reference, axis in opened[name].attrs["REFERENCE_LIST"]:
                try:
                    target = opened[reference].name
                except ValueError:  # of others, who have removed it
                    continue
                if target in own:
                    number = int.from_bytes(hashlib.sha256(target.encode()).digest()[:8], "little")
                    total += (number | 1) * (int(axis) + 1)
            digest.update((total % (1 << 64)).to_bytes(8, "little"))
    return digest.hexdigest()


def identity(file: Union[str, "os.PathLike[str]"]) -> str:
    """What `clpipe info --digest` prints: all values are read."""
    with h5py.File(file, "r") as opened:
        return identity_of(opened)
