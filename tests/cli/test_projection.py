"""Projection on principal components: as numpy computes it, stored, applied to other files, and kept by updates."""

import shutil

import h5py
import numpy
import pytest

from clusterings import cluster, stored
from conftest import check_one_error, digest, draw_photos, run_clpipe
from test_evaluate import evaluate, folder, measures


@pytest.fixture(scope="module")
def file(tmp_path_factory, program):
    place = tmp_path_factory.mktemp("projection")
    (place / "photos").mkdir()
    draw_photos(place / "photos", 90)
    result = run_clpipe("ingest", "photos", "-o", "x.h5", "--feature", "a=rgb:bins=4x4x4", "--feature",
                        "b=gray:bins=16,grid=2x2", cwd=place)
    assert result.returncode == 0, result.stderr
    return place / "x.h5"


def rows_of(path, names=("a",)):
    with h5py.File(path) as f:
        return numpy.hstack([f["features"][name][:] for name in names])


def roots(rows):
    return numpy.sqrt(rows.astype("f8")).astype("f4").astype("f8")


def project(points, mean, components=None):
    y = points - mean
    if components is not None:
        y = y @ components.astype("f8").T
    length = numpy.linalg.norm(y, axis=1, keepdims=True)
    return numpy.where(length > 0, y / numpy.where(length > 0, length, 1), 0).astype("f4")


def components_of(points, n, whiten):
    mean = points.mean(axis=0).astype("f4")
    centred = points - mean
    values, vectors = numpy.linalg.eigh(centred.T @ centred)
    values, vectors = values[::-1][:n], vectors[:, ::-1].T[:n]
    keep = values > 1e-12 * values[0]
    values, vectors = values[keep], vectors[keep]
    vectors *= numpy.sign(vectors[numpy.arange(len(vectors)), numpy.abs(vectors).argmax(axis=1)])[:, None]
    return mean, vectors * ((values / values[0]) ** (-whiten / 2))[:, None], values


def check_labels(arrays, rows):
    d = ((rows.astype("f8")[:, None] - arrays["centroids"].astype("f8")) ** 2).sum(axis=2)
    assert (d.argmin(axis=1) == arrays["labels"]).all()
    assert numpy.abs(d.min(axis=1) - arrays["distances"]).max() < 1e-6


@pytest.mark.parametrize("n, whiten, feature, names", [
    (5, 0.5, "a", ("a",)), (3, 1, "a+b", ("a", "b")), (256, 0, "b", ("b",))])
def test_components_equal_numpy(file, tmp_path, n, whiten, feature, names):
    path = shutil.copy(file, tmp_path / "x.h5")
    cluster(path, "-k", 4, "--feature", feature, "--pca", n, "--whiten", whiten, cwd=tmp_path)
    arrays, attributes = stored(path)
    points = roots(rows_of(path, names))
    mean, components, values = components_of(points, n, whiten)
    assert (attributes["metric"], attributes["space"]) == ("euclidean", "hellinger")
    assert numpy.abs(arrays["mean"] - mean).max() <= 1e-7
    apart = 0
    while apart + 1 < len(values) and values[apart + 1] < 0.999 * values[apart]:
        apart += 1
    assert arrays["components"].shape[1] == points.shape[1] and apart >= 2
    assert abs(len(arrays["components"]) - len(components)) <= 2 and len(arrays["components"]) <= n
    scale = numpy.linalg.norm(components[:apart], axis=1)[:, None]
    apart = min(apart, 10)
    assert (numpy.abs(arrays["components"][:apart] - components[:apart]) / scale[:apart]).max() < 1e-5
    check_labels(arrays, project(points, arrays["mean"], arrays["components"]))
    assert run_clpipe("verify", path).returncode == 0


def test_same_bits_everywhere(file, tmp_path):
    digests = set()
    for i, way in enumerate((["--threads", 1], ["--threads", 3, "--memory", "1M", "--device-memory", "1M"])):
        path = shutil.copy(file, tmp_path / f"{i}.h5")
        cluster(path, "-k", 3, "--feature", "a", "--pca", 8, "--whiten", 0.5, *way, cwd=tmp_path)
        digests.add(digest(path))
    assert len(digests) == 1


def test_center_only(file, tmp_path):
    path = shutil.copy(file, tmp_path / "x.h5")
    cluster(path, "-k", 3, "--feature", "a", "--center", "--metric", "euclidean", cwd=tmp_path)
    arrays, attributes = stored(path)
    points = rows_of(path).astype("f8")
    assert "components" not in arrays and attributes["space"] == "euclidean"
    check_labels(arrays, project(points, arrays["mean"]))
    assert run_clpipe("verify", path).returncode == 0


@pytest.mark.deep
def test_assign_update_rename_and_remove(file, tmp_path):
    path = shutil.copy(file, tmp_path / "x.h5")
    shutil.copytree(file.parent / "photos", tmp_path / "photos")
    cluster(path, "-k", 3, "--feature", "a+b:0.5", "--pca", 6, "--whiten", 0.5, cwd=tmp_path)
    arrays, _ = stored(path)
    (tmp_path / "new").mkdir()
    names = draw_photos(tmp_path / "new", 20)
    assert run_clpipe("ingest", "new", "-o", "new.h5", "--feature", "a=rgb:bins=4x4x4", "--feature",
                      "b=gray:bins=16,grid=2x2", cwd=tmp_path).returncode == 0
    result = run_clpipe("assign", path, "new.h5", cwd=tmp_path)
    assert result.returncode == 0, result.stderr

    def points(where):
        rows = rows_of(where, ("a", "b"))
        rows[:, 64:] *= numpy.float32(0.5)
        return roots(rows)
    labelled, _ = stored(tmp_path / "new.h5")
    assert (labelled["mean"] == arrays["mean"]).all()
    check_labels(labelled, project(points(tmp_path / "new.h5"), arrays["mean"], arrays["components"]))
    assert run_clpipe("verify", tmp_path / "new.h5").returncode == 0
    # New images of an update are labelled in the same way.
    for name in names[:5]:
        shutil.copy(tmp_path / "new" / name, tmp_path / "photos" / f"z{name.replace('/', '-')}")
    assert run_clpipe("ingest", "photos", "-o", path, "--relocate", "photos", cwd=tmp_path).returncode == 0
    continued, _ = stored(path)
    assert len(continued["labels"]) == len(arrays["labels"]) + 5 and continued["labels"].min() >= 0
    check_labels(continued, project(points(path), arrays["mean"], arrays["components"]))
    assert run_clpipe("verify", path).returncode == 0
    assert run_clpipe("rename", path, "kmeans", "other").returncode == 0
    assert (stored(path, "other")[0]["components"] == arrays["components"]).all()
    assert run_clpipe("verify", path).returncode == 0
    assert run_clpipe("remove", path, "clusters/other").returncode == 0
    with h5py.File(path) as f:
        assert "column_other" not in f and "dimension_other" not in f
    assert run_clpipe("verify", path).returncode == 0


def test_rows_of_other_programs(tmp_path):
    """Constant columns, equal rows, fewer rows than components; and a matrix whose rows are all equal."""
    random = numpy.random.default_rng(3)
    rows = random.normal(size=(12, 300)).astype("f4")
    rows[:, 7] = 3
    rows[1] = rows[0]
    numpy.save(tmp_path / "x.npy", rows)
    cluster("x.npy", "-k", 4, "-o", "x.h5", "--pca", 40, "--whiten", 1, cwd=tmp_path)
    arrays, _ = stored(tmp_path / "x.h5")
    assert arrays["components"].shape == (10, 300)
    assert numpy.abs(arrays["components"][:, 7]).max() < 1e-6
    check_labels(arrays, project(rows.astype("f8"), arrays["mean"], arrays["components"]))
    numpy.save(tmp_path / "same.npy", numpy.ones((5, 4), "f4"))
    check_one_error(run_clpipe("cluster", "same.npy", "-k", 2, "-o", "y.h5", "--pca", 2, "-q",
                               cwd=tmp_path), 3, "all rows are equal")


def with_variances(variances, rows, columns):
    random = numpy.random.default_rng(7)
    left = numpy.linalg.qr(random.normal(size=(rows, len(variances))))[0]
    right = numpy.linalg.qr(random.normal(size=(columns, len(variances))))[0]
    return (left * numpy.sqrt(variances)) @ right.T


SPECTRA = {
    "noise": lambda: numpy.random.default_rng(1).normal(size=(400, 150)),
    "few rows": lambda: with_variances(1 / numpy.arange(1, 121.0), 121, 300),
    "equal": lambda: with_variances(numpy.r_[numpy.ones(30), numpy.linspace(0.5, 0.01, 100)], 300, 130),
    "outlier": lambda: with_variances(numpy.r_[1e6, 1 / numpy.arange(1, 100.0)], 260, 140),
    "far from 0": lambda: numpy.random.default_rng(2).normal(size=(200, 160)) + 1000,
    "ones": lambda: numpy.eye(150),
}


@pytest.mark.deep
@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("n", [20, 120])
def test_eigenvalues_equal_numpy(tmp_path, spectrum, n):
    """The lengths of whitened components are the inverse square roots of the eigenvalues."""
    rows = SPECTRA[spectrum]().astype("f4")
    numpy.save(tmp_path / "x.npy", rows)
    cluster("x.npy", "-k", 2, "-o", "x.h5", "--pca", n, "--whiten", 1, "--max-iter", 1, cwd=tmp_path)
    arrays, _ = stored(tmp_path / "x.h5")
    components = arrays["components"].astype("f8")
    centred = rows.astype("f8") - arrays["mean"]
    wanted = numpy.linalg.svd(centred, full_matrices=False)
    values, vectors = wanted[1] ** 2 / wanted[1][0] ** 2, wanted[2]
    length = numpy.linalg.norm(components, axis=1)
    assert len(components) == min(n, (values > 1e-12).sum())
    assert length ** -2 == pytest.approx(values[:len(components)], rel=1e-6)
    gaps = numpy.r_[1, values[:-1] - values[1:], values[-1]]
    apart = numpy.minimum(gaps[:-1], gaps[1:])[:len(components)] > 1e-4
    assert apart.any() or spectrum in ("equal", "ones")
    for axis, vector in zip((components / length[:, None])[apart], vectors[:len(components)][apart]):
        assert axis[numpy.abs(axis).argmax()] > 0
        assert min(numpy.abs(axis - vector).max(), numpy.abs(axis + vector).max()) < 1e-6


def test_rankings_of_components(file):
    [one] = evaluate(file, "--feature", "a", "--pca", 6, "--whiten", 0.5)["features"]
    points = roots(rows_of(file))
    mean, components, _ = components_of(points, 6, 0.5)
    with h5py.File(file) as f:
        classes = [folder(p.decode()) for p in f["images/path"][:]]
    wanted = measures(project(points, mean, components.astype("f4")).astype("f8"), classes)
    assert (one["values"], one["metric"], one["pca"]) == (6, "hellinger", 6)
    assert {key: one[key] for key in wanted} == pytest.approx(wanted, abs=1e-4)


def test_refusals(file):
    for args, say in ((["--whiten", 0.5], "--whiten requires --pca N"),
                      (["--pca", 4, "--whiten", 1.5], "from 0 to 1"),
                      (["--pca", 2, "--init", "x.npy"], "cannot be projected")):
        check_one_error(run_clpipe("cluster", file, "-k", 3, "--feature", "a", *args), 2, say)
