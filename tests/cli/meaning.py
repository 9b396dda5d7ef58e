"""Recomputes values of a file in numpy and checks that they are consistent; `clpipe verify` only compares
checksums. conftest.run_clpipe calls check() for every small file that passes verify."""

import os

import h5py
import numpy

MOST_WORK = 50_000_000  # rows x centroids x dimensions; larger clusterings are not checked
COUNTED = {"rgb", "gray", "hsv", "lab", "lbp", "oplbp"}


def space(rows, metric):
    rows = numpy.asarray(rows, "f8")
    if metric == "hellinger":
        return numpy.sqrt(numpy.maximum(rows, 0))
    if metric == "cosine":
        lengths = numpy.linalg.norm(rows, axis=1, keepdims=True)
        return numpy.divide(rows, lengths, out=rows.copy(), where=lengths > 0)
    return rows


def check_feature(name, data):
    """The histogram of each cell adds up to 1 (or its squares do), so each row adds up to a whole number."""
    if data.attrs.get("kind") not in COUNTED or data.dtype != "f4" or data.size > MOST_WORK:
        return
    values = data[:].astype("f8")
    assert ((values >= 0) & (values <= 1)).all(), f"{name}: values outside the range 0 to 1"
    sums = (values if data.attrs["normalize"] == "l1" else values ** 2).sum(axis=1)
    assert (abs(sums - sums.round()) < 1e-4).all(), f"{name}: histograms that do not add up to 1"


def check_clusters(file, name, group):
    labels, distances = group["labels"][:], group["distances"][:].astype("f8")
    centroids = group["centroids"][:].astype("f8")
    fitted = "fitted_rows" not in group.attrs
    weights = group["weights"][:].astype("f8") if "weights" in group else numpy.ones(len(labels))
    if fitted:
        compared = labels >= 0
        total = (weights * distances)[compared].sum()
        room = 1e-6 * total + 2.0 ** -40 * weights.max(initial=0) * distances[compared].sum()
        assert abs(total - group.attrs["inertia"]) <= room, f"{name}: the inertia is not the sum {total}"
        for cluster, nearest in enumerate(group["nearest"][:]):
            wanted = numpy.sort(distances[labels == cluster])[:len(nearest)]
            found = distances[nearest[nearest >= 0]]
            assert numpy.array_equal(found, wanted), f"{name}: cluster {cluster} has nearer rows than `nearest`"
    feature = file.get(f"features/{group.attrs['feature']}")
    if feature is None or "mean" in group or feature.dtype not in ("f4", "f2", "u4"):
        return
    if len(labels) * centroids.size > MOST_WORK or feature.shape[1] != centroids.shape[1]:
        return
    points = space(feature[:], group.attrs["metric"])
    squared = ((points[:, None, :] - centroids[None]) ** 2).sum(axis=2)
    scale = (points ** 2).sum(axis=1) + (centroids ** 2).sum(axis=1).max()
    rows = numpy.flatnonzero(labels >= 0)
    own = squared[rows, labels[rows]]
    wrong = (abs(own - distances[rows]) > 1e-5 * scale[rows]) | (own - squared[rows].min(axis=1) > 1e-5 * scale[rows])
    assert not wrong.any(), f"{name}: row {rows[wrong.argmax()]} does not match its label or distance"


def check_graph(file, name, group):
    feature = file.get(f"features/{name}")
    if feature is None or feature.dtype != "f4":
        return
    sample = numpy.linspace(0, len(feature) - 1, min(len(feature), 64)).astype(int)
    for row in sample:
        nearest, squared = group["rows"][row], group["distances"][row]
        nearest, squared = nearest[nearest >= 0], squared[:(nearest >= 0).sum()]
        points = space(feature[:][numpy.append(nearest, row)], group.attrs["metric"])
        again = ((points[:-1] - points[-1]) ** 2).sum(axis=1)
        room = 1e-5 * ((points[:-1] ** 2).sum(axis=1) + (points[-1] ** 2).sum())
        assert (abs(again - squared) <= room).all(), f"/neighbours/{name}: row {row} has wrong distances"


def check(path):
    """Raises AssertionError if the values of a file are inconsistent."""
    if os.path.getsize(path) > 64 << 20:
        return
    with h5py.File(path, "r") as file:
        for name, data in file.get("features", {}).items():
            if isinstance(data, h5py.Dataset):
                check_feature(name, data)
        for name, group in file.get("clusters", {}).items():
            if isinstance(group, h5py.Group) and "centroids" in group:
                check_clusters(file, name, group)
        for name, group in file.get("neighbours", {}).items():
            if isinstance(group, h5py.Group) and "rows" in group and "distances" in group:
                check_graph(file, name, group)
