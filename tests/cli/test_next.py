"""Objects that the format defines, but that no command writes yet; made by hand. See docs/file-format.md,
"Planned objects"."""

import sys

import h5py
import numpy
import pytest

from conftest import ROOT, digest, draw_photos, run_clpipe
from shown import shown

INGEST = ["--feature", "rgb:bins=8x8x8", "--device", "cpu", "-q"]


@pytest.fixture(scope="module")
def identity():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import identity
    finally:
        sys.path.pop(0)
    return identity


def scaled(file, name, values, *axes):
    values = numpy.asarray(values)
    kind = h5py.string_dtype("utf-8", values.dtype.itemsize) if values.dtype.kind == "S" else values.dtype
    data = file.create_dataset(name, values.shape, kind)
    data[...] = values.astype(kind)
    for axis, name in enumerate(axes):
        if name not in file:
            file.create_dataset(name, (values.shape[axis],), ">f4").make_scale(
                f"This is a netCDF dimension but not a netCDF variable. {values.shape[axis]:10d}")
        data.dims[axis].attach_scale(file[name])
    return data


@pytest.fixture
def file(tmp_path, identity):
    """A file with all of these objects, and with checksums."""
    draw_photos(tmp_path / "photos")
    for words in (["ingest", "photos", "-o", "f.h5", *INGEST],
                  ["cluster", "f.h5", "--feature", "rgb_8x8x8", "-k", 3, "--device", "cpu", "-q"],
                  ["cluster", "f.h5", "--feature", "rgb_8x8x8", "-k", 2, "--name", "coarse", "--device", "cpu", "-q"]):
        result = run_clpipe(*words, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path / "f.h5", "r+") as f:
        rows = len(f["images/width"])
        f["features/rgb_8x8x8"].attrs.update({"model_digest": "ab" * 32, "model_runtime": "a library 1.0"})
        scaled(f, "classes/rgb_8x8x8/name", [b"cat", "\u00e9tang".encode()], "class_rgb_8x8x8")
        scaled(f, "classes/rgb_8x8x8/matrix", numpy.ones((2, 512), "i1"), "class_rgb_8x8x8", "feature_rgb_8x8x8")
        for name in "scale", "offset":
            scaled(f, f"classes/rgb_8x8x8/{name}", numpy.ones(2, "f4"), "class_rgb_8x8x8")
        f["classes/rgb_8x8x8"].attrs["model_digest"] = "ab" * 32
        scaled(f, "clusters/kmeans/parents", numpy.array([0, 1, 1], "i4"), "cluster_kmeans")
        f["clusters/kmeans"].attrs["parent"] = "coarse"
        f["clusters/kmeans"].attrs.create("level", 1, dtype="u4")
        flags = scaled(f, "images/flags", numpy.arange(rows, dtype="u4"), "image")
        flags.attrs.update({"names": "dark blurry", "parameters": "{}"})
        scaled(f, "selections/train/rows", numpy.array([3, 1], "i8"), "selection_train")
        scaled(f, "selections/train/reason", [b"near", b"far away"], "selection_train")
        scaled(f, "selections/train/omitted", numpy.array([2], "i8"), "omitted_train")
        scaled(f, "selections/train/kept", numpy.array([3], "i8"), "omitted_train")
        scaled(f, "selections/train/cosine", numpy.array([0.9], "f4"), "omitted_train")
        f["selections/train"].attrs.update({"method": "balanced", "content": "", "parameters": "{}"})
        f["selections/train"].attrs.create("seed", 7, dtype="i8")
        names = [name[10:] for name in datasets(f) if name.startswith("checksums/")] + \
            [name for name in datasets(f) if name.split("/")[0] in ("classes", "selections") or
             name in ("images/flags", "clusters/kmeans/parents")]
        text = h5py.string_dtype("ascii", 64)
        for name in names:
            leaves = list(identity.leaves(f[name]))
            if f"checksums/{name}" in f:
                del f[f"checksums/{name}"]
            data = scaled(f, f"checksums/{name}", numpy.frombuffer(b"".join(leaves), "u1").reshape(-1, 32),
                          f"piece_{len(leaves)}", "checksum_byte")
            data.attrs.create("root", identity.root(f"/{name}", f[name], identity.attributes_that_count(
                f"/{name}")).encode(), dtype=text)
        # The clusterings are marked as made from the changed feature.
        for name in "kmeans", "coarse":
            f[f"clusters/{name}"].attrs["content"] = f["checksums/features/rgb_8x8x8"].attrs["root"].decode()
        for name in "identity", "shown":
            del f["checksums"].attrs[name]
        f["checksums"].attrs.create("identity", identity.identity_of(f).encode(), dtype=text)
        f["checksums"].attrs["shown"] = shown(f)
    return tmp_path / "f.h5"


def datasets(f):
    found = []
    f.visititems(lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) and "/" in name else None)
    return found


@pytest.mark.deep
def test_planned_objects_are_read_and_counted(clpipe, file, identity):
    verified = clpipe("verify", file)
    assert verified.returncode == 0, verified.stdout
    assert digest(file) == identity.identity(file)
    before = digest(file)
    with h5py.File(file, "r+") as f:
        f["selections/train/rows"][0] = 4
    changed = clpipe("verify", file)
    assert changed.returncode == 1 and "/selections/train/rows: something in rows 0 to 1" in changed.stdout
    assert digest(file) != before


def test_commands_keep_planned_objects(clpipe, file, identity):
    result = clpipe("cluster", file, "--feature", "rgb_8x8x8", "-k", 2, "--name", "other", "--device", "cpu")
    assert result.returncode == 0, result.stderr
    with h5py.File(file) as f:
        assert f["selections/train/reason"].asstr()[:].tolist() == ["near", "far away"]
        assert f["clusters/kmeans/parents"][:].tolist() == [0, 1, 1]
    assert clpipe("verify", file).returncode == 0
    assert digest(file) == identity.identity(file)


@pytest.mark.deep
def test_an_update_drops_data_that_it_cannot_move(clpipe, file, tmp_path, identity):
    (tmp_path / "photos" / "a new one.jpg").write_bytes((tmp_path / "photos" / "red" / "03.jpg").read_bytes())
    result = clpipe("ingest", "photos", "-o", file, "--device", "cpu")
    assert result.returncode == 0, result.stderr
    assert "notice: /images/flags is removed" in result.stderr, result.stderr
    with h5py.File(file) as f:
        assert "flags" not in f["images"]
        # There is a new first row.
        assert f["selections/train/rows"][:].tolist() == [4, 2]
        assert f["selections/train/reason"].asstr()[:].tolist() == ["near", "far away"]
        assert f["selections/train/omitted"][:].tolist() == [3] and f["selections/train/kept"][:].tolist() == [4]
        assert f["classes/rgb_8x8x8/name"].asstr()[:].tolist() == ["cat", "\u00e9tang"]
        assert f["classes/rgb_8x8x8/matrix"].dims[1][0].name == "/feature_rgb_8x8x8"
        assert f["clusters/kmeans/parents"][:].tolist() == [0, 1, 1]
        assert f["clusters/kmeans/parents"].dims[0][0].name == "/cluster_kmeans"
        assert f["clusters/kmeans"].attrs["parent"] == "coarse" and f["clusters/kmeans"].attrs["level"] == 1
    verified = clpipe("verify", file)
    assert verified.returncode == 0, verified.stdout
    assert digest(file) == identity.identity(file)
