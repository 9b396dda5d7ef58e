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
    """The names and attributes of the object with this absolute name."""
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
    """The identity of an open h5py.File; known: roots of datasets by their absolute names."""
    digest = hashlib.sha256()
    _serialise(digest.update, "/", opened["/"], known)
    return digest.hexdigest()


def identity(file: Union[str, "os.PathLike[str]"]) -> str:
    """What `clpipe info --digest` prints: all values are read."""
    with h5py.File(file, "r") as opened:
        return identity_of(opened)
