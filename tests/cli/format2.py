"""Rewrites a file of format 3 as format 2 with h5py, for the tests of tools/convert."""

import hashlib
import re

import h5py
import numpy

DEFINED = {
    "/": "clpipe_format list_count list_digest parameters preset"
         " shard_count shard_first shard_index shard_last",
    "/images/(path|width|height|orientation|channels|source|bytes|mtime_ns|digest|format|code|sources|key|cls|json|txt)": "",
    "/failures/(path|reason|message|bytes|errno|source|mtime_ns)": "",
    "/(images|failures)/path_raw/(row|end|bytes)": "",
    "/features/[^/]+": "spec kind bins grid normalize decode_scale imported_from imported_digest zero scale",
    "/codebooks/[^/]+": "digest spec",
    "/codebooks/[^/]+/[^/]+": "",
    "/clusters/[^/]+": "feature metric init parameters content k iterations seed converged inertia "
                       "folders purity nmi ari fitted_rows space",
    "/clusters/[^/]+/.*": "",
    "/neighbours/[^/]+": "content feature metric n squared",
    "/neighbours/[^/]+/(rows|distances)": "",
}
NEW = ("inode", "ctime_ns", "directories")
VARIABLE = h5py.string_dtype("utf-8")


def bytes_of(text):
    return re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), text)


def text_of(name):
    """The text that format 2 stores for a name."""
    text = name.decode("utf-8", "surrogateescape")
    return re.sub("[\udc80-\udcff]", lambda byte: f"\\x{ord(byte[0]) - 0xdc00:02x}", text)


def type_name(dtype):
    text = h5py.check_string_dtype(dtype)
    return dtype.name if not text else "text" if text.length is None else f"bytes{text.length}"


def value_bytes(dtype, values):
    if type_name(dtype) != "text":
        return numpy.asarray(values).astype(dtype.newbyteorder("<")).tobytes()
    texts = [t.encode() if isinstance(t, str) else t for t in numpy.ravel(values)]
    return b"".join(len(t).to_bytes(8, "little") + t for t in texts)


def leaves(item):
    values = value_bytes(item.dtype, item[...])
    return [hashlib.sha256(values[at:at + (1 << 20)]).digest() for at in range(0, len(values), 1 << 20)]


def root(name, item):
    pattern = next((p for p in DEFINED if re.fullmatch(p, name)), None)
    axes = ",".join(d[0].name[1:] if len(d) else "-" for d in item.dims)
    digest = hashlib.sha256(f"dataset {name} {type_name(item.dtype)} {','.join(map(str, item.shape))} {axes}\n".encode())
    for key in sorted(set(DEFINED.get(pattern, "").split()) & set(item.attrs), key=str.encode):
        kind = item.attrs.get_id(key).dtype
        digest.update(f"attribute {key} {type_name(kind)} scalar\n".encode() + value_bytes(kind, item.attrs[key]))
    for leaf in leaves(item):
        digest.update(leaf)
    return f"tree1-{digest.hexdigest()[:58]}"


def scale(file, data, *names):
    for axis, name in enumerate(names):
        if name not in file:
            file.create_dataset(name, (data.shape[axis],), ">f4").make_scale(
                f"This is a netCDF dimension but not a netCDF variable. {data.shape[axis]:10d}")
        data.dims[axis].attach_scale(file[name])


def texts(file, group, name, values, axis):
    data = group.create_dataset(name, (len(values),), VARIABLE)
    data[...] = numpy.array(values, object)
    scale(file, data, axis)


def table(new, old, kind):
    group = new[kind] if kind in new else new.create_group(kind)
    axis = {"images": "image", "failures": "failure"}[kind]
    for name, item in old[kind].items():
        if name in NEW:
            continue
        if isinstance(item, h5py.Group):  # json, txt
            ends, data = [0, *item["end"][:]], item["data"][:].tobytes()
            texts(new, group, name, [data[a:b].decode() for a, b in zip(ends, ends[1:])], axis)
        elif name in ("format", "reason") and not item.is_virtual:
            data = group.create_dataset(name, data=item[:].astype({"format": "S8", "reason": "S16"}[name]))
            scale(new, data, axis)
        elif item.dtype.kind == "S" and not item.is_virtual:
            own = "source" if name == "sources" else axis
            names = [text_of(bytes_of(text)) if name != "message" else text.decode() for text in item[:]]
            texts(new, group, name, names, own)
        else:
            number(new, old, f"{kind}/{name}", item)
    raw = [(row, bytes_of(text)) for row, text in enumerate(old[kind]["path"][:])]
    raw = [(row, name) for row, name in raw if text_of(name) != name.decode("utf-8", "replace")]
    if raw:
        group.create_group("path_raw")
        for name, values, axes in (("row", [row for row, _ in raw], f"{axis}_path_raw"),
                                   ("end", numpy.cumsum([len(name) for _, name in raw]), f"{axis}_path_raw"),
                                   ("bytes", numpy.frombuffer(b"".join(name for _, name in raw), "u1"),
                                    f"{axis}_path_raw_byte")):
            data = group["path_raw"].create_dataset(name, data=numpy.array(values, "u1" if name == "bytes" else "u8"))
            scale(new, data, axes)


def number(new, old, name, item):
    if item.is_virtual:
        layout = h5py.VirtualLayout(item.shape, item.dtype)
        at = 0
        for source in item.virtual_sources():
            with h5py.File(f"{new.filename.rpartition('/')[0]}/{source.file_name}") as part:
                shape, dtype = part[name].shape, part[name].dtype
            layout[at:at + shape[0]] = h5py.VirtualSource(source.file_name, source.dset_name, shape, dtype=dtype)
            at += shape[0]
        made = new.create_virtual_dataset(name, layout)
    else:
        old.copy(item, new, name, without_attrs=True)
        made = new[name]
    scale(new, made, *(axis[0].name[1:] for axis in item.dims))
    copy_attributes(item, made)


def copy_attributes(old, new):
    for key, value in old.attrs.items():
        if key not in ("DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME", "root", "identity"):
            new.attrs.create(key, value, dtype=None if isinstance(value, str) else old.attrs.get_id(key).dtype)


def write(path, target):
    """Writes the file at `path` to `target` in format 2. The parts of a merged file must be written first."""
    with h5py.File(path) as old, h5py.File(target, "w", libver=("earliest", "v110")) as new:
        copy_attributes(old, new)
        new.attrs.create("clpipe_format", 2, dtype="i4")

        def visit(name, item):
            if name.split("/")[0] in ("images", "failures", "checksums", "runs", "parts") or "/" not in name and \
                    isinstance(item, h5py.Dataset):
                return
            if isinstance(item, h5py.Group):
                copy_attributes(item, new.require_group(name))
            else:
                number(new, old, name, item)
        old.visititems(visit)
        for kind in {"images", "failures"} & set(old):
            table(new, old, kind)
        if "runs" in old:
            old.copy("runs", new)
        if "parts" in old:
            names = old["parts/path"].asstr()[:].tolist()
            parts = [h5py.File(f"{new.filename.rpartition('/')[0]}/{name}") for name in names]
            new.create_group("parts")
            texts(new, new["parts"], "path", names, "part")
            texts(new, new["parts"], "identity", [part["checksums"].attrs["identity"].decode() for part in parts], "part")
            for name, values in (("rows", [len(part["images/width"]) for part in parts]),
                                 ("thumbnail_bytes", [len(part["thumbnails/data"]) if "thumbnails" in part else 0
                                                      for part in parts]),
                                 ("bytes", [part.id.get_filesize() for part in parts])):
                data = new["parts"].create_dataset(name, data=numpy.array(values, "u8"))
                scale(new, data, "part")
            for part in parts:
                part.close()
    with h5py.File(target) as new:  # virtual datasets can be read only while all files are open read-only
        roots = {name: root(f"/features/{name}", item) for name, item in new.get("features", {}).items()}
    with h5py.File(target, "r+") as new:
        for item in new.get("clusters", {}).values():
            if item.attrs["feature"] in roots:
                item.attrs["content"] = roots[item.attrs["feature"]]
        sums = new.create_group("checksums")
        found = []
        new.visititems(lambda name, item: found.append((name, item)) if isinstance(item, h5py.Dataset) and "/" in name
                       and not name.startswith("runs/") else None)
        for name, item in found:
            own = leaves(item) if not item.is_virtual else [b"a part's".ljust(32)]
            data = sums.create_dataset(name, data=numpy.frombuffer(b"".join(own), "u1").reshape(-1, 32))
            data.attrs["root"] = numpy.bytes_(roots.get(name[9:], "tree1-").encode() if name.startswith("features/")
                                              else b"tree1-")
        sums.attrs["identity"] = numpy.bytes_(b"0" * 64)
