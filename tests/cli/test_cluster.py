"""Clusterings equal those of scikit-learn's Lloyd algorithm from the same initial centroids and are stored
completely. test_reference.py and test_same_answer.py have further comparisons."""

import json
import os
import re
import shutil
from types import SimpleNamespace

import h5py
import numpy
import pytest

from clusterings import cluster, stored
from conftest import ROOT, check_one_error, run_clpipe

PHOTOS = ROOT / ".." / "shared" / "data" / "photos" / "labelled"
ARRAYS = {"centroids", "labels", "distances", "sizes", "nearest", "inertia_history"}
ATTRIBUTES = {"feature", "k", "seed", "init", "metric", "iterations", "converged", "inertia",
              "parameters", "content"}
VOUCHERS = {"source_bytes", "source_mtime_ns", "source_sample"}  # stored if the file of the rows is at least 2 s old
FOLDERS = {"folders", "purity", "nmi", "ari"}  # stored for images in two or more folders


def bits(path, name="kmeans"):
    arrays, attributes = stored(path, name)
    return {key: value.tobytes() for key, value in arrays.items()} | {
        key: attributes[key] for key in ("iterations", "converged", "inertia")}


def lloyd(rows, initial, iterations=100, tol=0):
    """scikit-learn's result; `rows` and `initial` are already in the space of the metric."""
    from sklearn.cluster import KMeans
    return KMeans(len(initial), init=initial.astype(float), n_init=1, algorithm="lloyd", tol=tol,
                  max_iter=iterations).fit(rows.astype(float))


def unit(rows):
    rows = rows.astype(float)
    return rows / numpy.sqrt((rows ** 2).sum(1, keepdims=True))


def roots(rows):
    return numpy.sqrt(rows.astype(float))


def distances_to(rows, centroids):
    """All squared distances, in float64 and without the cancellation of the expanded square."""
    return numpy.stack([((rows - c.astype(float)) ** 2).sum(1) for c in centroids], 1)


def spherical(rows, centroids, max_iter=100):
    """Spherical k-means of unit vectors (Dhillon and Modha): a row is assigned to the nearest direction, and a
    centroid is the normalised sum of its rows. Stops when scikit-learn does."""
    labels = None
    for iteration in range(1, max_iter + 1):
        before, labels = labels, (rows @ centroids.T).argmax(1)
        sums = numpy.stack([rows[labels == c].sum(0) for c in range(len(centroids))])
        centroids = sums / numpy.linalg.norm(sums, axis=1, keepdims=True)
        if before is not None and (before == labels).all():
            break
    labels = (rows @ centroids.T).argmax(1)
    inertia = ((rows - centroids[labels]) ** 2).sum()
    return SimpleNamespace(labels_=labels, cluster_centers_=centroids, inertia_=inertia,
                           n_iter_=iteration)


def check_against(path, space, wanted, name="kmeans"):
    """Asserts that the stored clustering equals scikit-learn's and is consistent; `space` has the rows in the
    space of the metric."""
    arrays, attributes = stored(path, name)
    k = len(wanted.cluster_centers_)
    assert set(arrays) == ARRAYS and set(attributes) - FOLDERS - VOUCHERS == ATTRIBUTES
    assert numpy.array_equal(arrays["labels"], wanted.labels_)
    assert attributes["inertia"] == pytest.approx(wanted.inertia_, rel=1e-6)
    assert attributes["iterations"] == wanted.n_iter_
    assert attributes["k"] == k
    scale = abs(space).max()
    assert abs(arrays["centroids"] - wanted.cluster_centers_).max() < 1e-6 * scale
    check_consistent(arrays, attributes, space)


def check_consistent(arrays, attributes, space):
    centroids, labels = arrays["centroids"], arrays["labels"]
    n, k = len(space), len(centroids)
    assert labels.dtype == "int32" and labels.shape == (n,)
    assert centroids.dtype == "float32" and centroids.shape == (k, space.shape[1])
    assert arrays["distances"].dtype == "float32" and arrays["distances"].shape == (n,)
    assert arrays["nearest"].shape == (k, 3)
    assert arrays["inertia_history"].shape == (attributes["iterations"],)
    assert arrays["inertia_history"].dtype == "float64"
    exact = ((space - centroids.astype(float)[labels]) ** 2).sum(1)
    assert numpy.allclose(arrays["distances"], exact, rtol=2e-5, atol=1e-10 * (space ** 2).max())
    assert attributes["inertia"] == pytest.approx(exact.sum(), rel=1e-5, abs=1e-9)
    assert numpy.array_equal(arrays["sizes"], numpy.bincount(labels, minlength=k))
    for c in range(k):
        members = numpy.flatnonzero(labels == c)
        first = members[numpy.argsort(arrays["distances"][members], kind="stable")][:3]
        nearest = arrays["nearest"][c]
        assert list(nearest[len(first):]) == [-1] * (3 - len(first))
        # Distances are compared in float64; rows whose float32 distances are equal may swap places.
        assert set(nearest[:len(first)]) <= set(members)
        assert list(arrays["distances"][nearest[:len(first)]]) == list(arrays["distances"][first])


# --- photographs ----------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def photo_file(program, tmp_path_factory):
    """A result of all labelled photographs with a normalised feature and one of raw counts."""
    if not PHOTOS.is_dir():
        pytest.skip("the photographs are not available")
    directory = tmp_path_factory.mktemp("photos")
    result = run_clpipe("ingest", PHOTOS, "-o", "photos.h5", "--feature", "rgb:bins=8x8x8",
                        "--feature", "raw=rgb:bins=32,normalize=none", cwd=directory)
    assert result.returncode == 0, result.stderr
    return directory / "photos.h5"


@pytest.fixture(scope="module")
def photo_rows(photo_file):
    with h5py.File(photo_file, "r") as file:
        return file["features/rgb_8x8x8"][:]


@pytest.mark.variations
@pytest.mark.parametrize("metric, space", [(None, roots), ("hellinger", roots),
                                           ("euclidean", numpy.float64), ("cosine", unit)])
def test_photos_match_scikit_learn(photo_file, photo_rows, tmp_path, metric, space):
    initial = photo_rows[30::67]
    numpy.save(tmp_path / "initial.npy", initial)
    shutil.copy(photo_file, tmp_path / "photos.h5")
    options = ["--metric", metric] if metric else []
    report = cluster("photos.h5", "-k", len(initial), "--feature", "rgb_8x8x8", "--init",
                     "initial.npy", *options, cwd=tmp_path)
    reference = spherical if metric == "cosine" else lloyd
    wanted = reference(space(photo_rows), space(initial))
    check_against(tmp_path / "photos.h5", space(photo_rows), wanted)
    attributes = stored(tmp_path / "photos.h5")[1]
    assert attributes["metric"] == (metric or "hellinger")
    assert attributes["feature"] == "rgb_8x8x8" and attributes["init"].startswith("given-")
    assert attributes["converged"] == 1
    assert report["inertia"] == attributes["inertia"] and report["output"] == "photos.h5"
    # The rest of the file is unchanged.
    with h5py.File(tmp_path / "photos.h5", "r") as new, h5py.File(photo_file, "r") as old:
        assert numpy.array_equal(new["features/raw"][:], old["features/raw"][:])
        assert numpy.array_equal(new["images/digest"][:], old["images/digest"][:])
    assert run_clpipe("verify", "photos.h5", cwd=tmp_path).returncode == 0


def test_counts_are_euclidean_by_default(photo_file, tmp_path):
    with h5py.File(photo_file, "r") as file:
        rows = file["features/raw"][:]
    assert rows.dtype == "uint32"
    numpy.save(tmp_path / "initial.npy", rows[5::111])
    cluster(photo_file, "-k", len(rows[5::111]), "--feature", "raw", "--init", "initial.npy", "-o",
            "own.h5", cwd=tmp_path)
    assert stored(tmp_path / "own.h5")[1]["metric"] == "euclidean"
    check_against(tmp_path / "own.h5", rows.astype(float), lloyd(rows, rows[5::111]))


@pytest.mark.deep
def test_assign_takes_the_nearest(photo_file, photo_rows, tmp_path):
    for metric, space in (("hellinger", roots), ("cosine", unit)):
        shutil.copy(photo_file, tmp_path / "some.h5")
        cluster(photo_file, "-k", 25, "--feature", "rgb_8x8x8", "--metric", metric, "--max-iter", 2,
                "-o", f"{metric}.h5", cwd=tmp_path)
        result = run_clpipe("assign", f"{metric}.h5", "some.h5", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        made, made_attributes = stored(tmp_path / f"{metric}.h5")
        given, attributes = stored(tmp_path / "some.h5")
        distances = distances_to(space(photo_rows), given["centroids"])
        assert numpy.array_equal(given["labels"], distances.argmin(1))
        assert numpy.allclose(given["distances"], distances.min(1), rtol=1e-5, atol=1e-9)
        # The centroids come from the same rows, so this repeats the last assignment.
        for array in ("labels", "distances", "sizes", "nearest", "centroids"):
            assert made[array].tobytes() == given[array].tobytes(), array
        assert attributes["metric"] == metric and attributes["init"] == "assigned"
        assert attributes["inertia"] == pytest.approx(made_attributes["inertia"], rel=1e-6)


# --- a mixture ------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def mixture(program, tmp_path_factory):
    """20,000 rows of 64 values in rows.npy, 40 initial centroids in initial.npy; returns (directory, rows)."""
    directory = tmp_path_factory.mktemp("mixture")
    random = numpy.random.default_rng(11)
    centres = random.normal(0, 1, (40, 64))
    rows = centres[random.integers(0, 40, 20000)] + 1.5 * random.normal(0, 1, (20000, 64))
    rows = rows.astype(numpy.float32)
    numpy.save(directory / "rows.npy", rows)
    numpy.save(directory / "initial.npy", rows[::500])
    return directory, rows


@pytest.fixture(scope="module")
def clustered(mixture):
    directory, _ = mixture
    report = cluster("rows.npy", "-k", 40, "--init", "initial.npy", "-o", "result.h5",
                     cwd=directory)
    return directory / "result.h5", report


@pytest.mark.deep
def test_mixture_matches_scikit_learn(mixture, clustered):
    _, rows = mixture
    path, report = clustered
    wanted = lloyd(rows, rows[::500])
    check_against(path, rows.astype(float), wanted)
    arrays, attributes = stored(path)
    assert attributes["metric"] == "euclidean" and attributes["feature"] == "rows.npy"
    assert attributes["converged"] == 1 and report["converged"] is True
    assert (report["k"], report["n"], report["d"]) == (40, 20000, 64)
    assert report["sizes"] == list(arrays["sizes"])
    assert 0.2 < report["pruned"] < 1
    # The history holds the inertia that each iteration found before moving the centroids; the last one moved none.
    history = arrays["inertia_history"]
    first = distances_to(rows.astype(float), rows[::500]).min(1).sum()
    assert history[0] == pytest.approx(first, rel=1e-6)
    assert (numpy.diff(history) <= 1e-9 * history[0]).all()
    assert history[-1] == pytest.approx(attributes["inertia"], rel=1e-9)
    with h5py.File(path, "r") as file:
        assert set(file) - {"runs"} >= {"clusters"} and "images" not in file
        assert file.attrs["clpipe_format"] == 3


@pytest.mark.deep
@pytest.mark.parametrize("init", ["kmeans++", "kmeans-parallel", "random"])
def test_seeds(mixture, tmp_path, init):
    directory, rows = mixture
    ways = {"a": ("--seed", 5), "b": ("--seed", 5, "--device-memory", "2M", "--threads", 3),
            "c": ("--seed", 6)}
    for name, options in ways.items():
        cluster(directory / "rows.npy", "-k", 25, "--init", init, "--max-iter", 3, *options, "-o",
                f"{name}.h5", cwd=tmp_path)
    one, streamed, other = (bits(tmp_path / f"{name}.h5") for name in "abc")
    assert one == streamed
    assert one["centroids"] != other["centroids"]
    arrays, attributes = stored(tmp_path / "a.h5")
    assert (attributes["init"], attributes["seed"]) == (init, 5)
    check_consistent(arrays, attributes, rows.astype(float))


@pytest.mark.variations
@pytest.mark.parametrize("init", ["kmeans++", "kmeans-parallel", "random"])
def test_initial_centroids_are_different_rows(mixture, tmp_path, init):
    directory, rows = mixture
    cluster(directory / "rows.npy", "-k", 60, "--init", init, "--max-iter", 0, "-o", "r.h5",
            cwd=tmp_path)
    arrays, attributes = stored(tmp_path / "r.h5")
    assert attributes["iterations"] == 0 and attributes["converged"] == 0
    known = {row.tobytes() for row in rows}
    chosen = {row.tobytes() for row in arrays["centroids"]}
    assert len(chosen) == 60 and chosen <= known
    assert numpy.array_equal(arrays["labels"],
                             distances_to(rows.astype(float), arrays["centroids"]).argmin(1))


def test_kmeanspp_finds_separate_groups(tmp_path, program):
    """The seeds include a row of each of forty groups, which are far apart and have 2 to 2,000 rows."""
    random = numpy.random.default_rng(2)
    sizes = numpy.geomspace(2, 2000, 40).astype(int)
    labels = numpy.repeat(numpy.arange(40), sizes)
    rows = 1000 * random.normal(0, 1, (40, 8))[labels] + random.normal(0, 0.01, (len(labels), 8))
    numpy.save(tmp_path / "rows.npy", rows.astype(numpy.float32))
    for init in ("kmeans++", "kmeans-parallel"):
        report = cluster("rows.npy", "-k", 40, "--init", init, "-o", f"{init}.h5", cwd=tmp_path)
        assert sorted(report["sizes"]) == sorted(sizes)


@pytest.mark.deep
def test_n_init_keeps_the_best(mixture, tmp_path):
    directory, rows = mixture
    inertia = {}
    for n_init in (1, 6):
        for name in ("a", "b"):
            report = cluster(directory / "rows.npy", "-k", 40, "--init", "random", "--max-iter", 4,
                             "--n-init", n_init, "-o", f"{n_init}{name}.h5", cwd=tmp_path)
        inertia[n_init] = report["inertia"]
        assert bits(tmp_path / f"{n_init}a.h5") == bits(tmp_path / f"{n_init}b.h5")
    assert inertia[6] < inertia[1]
    check_consistent(*stored(tmp_path / "6a.h5"), rows.astype(float))


@pytest.mark.variations
@pytest.mark.parametrize("iterations", [0, 1, 2])
def test_max_iter(mixture, tmp_path, iterations):
    directory, rows = mixture
    cluster(directory / "rows.npy", "-k", 40, "--init", directory / "initial.npy", "--max-iter",
            iterations, "-o", "r.h5", cwd=tmp_path)
    arrays, attributes = stored(tmp_path / "r.h5")
    assert attributes["iterations"] == iterations == len(arrays["inertia_history"])
    assert attributes["converged"] == 0
    if iterations == 0:
        assert numpy.array_equal(arrays["centroids"], rows[::500])
        wanted = distances_to(rows.astype(float), rows[::500])
        assert numpy.array_equal(arrays["labels"], wanted.argmin(1))
        check_consistent(arrays, attributes, rows.astype(float))
    else:
        check_against(tmp_path / "r.h5", rows.astype(float), lloyd(rows, rows[::500], iterations))


def test_the_longest_name_is_stored_whole(tmp_path):
    numpy.save(tmp_path / "rows.npy", numpy.arange(20, dtype="f4").reshape(10, 2))
    name = "n" * 63
    cluster("rows.npy", "-k", 2, "--name", name, "-o", "r.h5", cwd=tmp_path)
    with h5py.File(tmp_path / "r.h5") as file:
        assert list(file["clusters"]) == [name]


def test_the_only_row_of_a_cluster_is_not_moved_to_an_empty_one(tmp_path):
    """100 is the farthest from its centroid but alone in its cluster, so the empty cluster gets 0."""
    numpy.save(tmp_path / "rows.npy", numpy.array([[0], [1], [2], [100]], "f4"))
    numpy.save(tmp_path / "initial.npy", numpy.array([[1], [60], [1000]], "f4"))
    cluster("rows.npy", "-k", 3, "--init", "initial.npy", "--max-iter", 1, "-o", "r.h5", cwd=tmp_path)
    arrays, _ = stored(tmp_path / "r.h5")
    assert arrays["centroids"].ravel().tolist() == [1.5, 100, 0]
    assert arrays["labels"].tolist() == [2, 0, 0, 1]
    check_one_error(run_clpipe("cluster", "rows.npy", "-k", 3, "--init", "initial.npy", "--n-init", 2, "-o", "s.h5",
                               cwd=tmp_path), 2, "leave out --n-init")


@pytest.mark.parametrize("scale", [1e12, 1e17, 1e25, 1e37])
def test_centroids_far_from_the_rows(tmp_path, scale):
    """Rows get their nearest centroids even where distances in float32 would overflow or be too inexact."""
    random = numpy.random.default_rng(5)
    rows, initial = random.normal(size=(600, 12)), scale * random.normal(size=(16, 12))
    numpy.save(tmp_path / "rows.npy", rows.astype("f4"))
    numpy.save(tmp_path / "initial.npy", initial.astype("f4"))
    cluster("rows.npy", "-k", 16, "--init", "initial.npy", "--max-iter", 1, "-o", "r.h5", cwd=tmp_path)
    arrays, _ = stored(tmp_path / "r.h5")
    distances = distances_to(rows.astype("f4").astype(float), arrays["centroids"])
    assert numpy.array_equal(arrays["labels"], distances.argmin(1))


@pytest.mark.slow
@pytest.mark.parametrize("tol", [1e-2, 0.2])
def test_tol_stops_where_scikit_learn_does(mixture, tmp_path, tol):
    directory, rows = mixture
    cluster(directory / "rows.npy", "-k", 40, "--init", directory / "initial.npy", "--tol", tol,
            "-o", "r.h5", cwd=tmp_path)
    wanted = lloyd(rows, rows[::500], tol=tol)
    assert 1 < wanted.n_iter_ < lloyd(rows, rows[::500]).n_iter_
    check_against(tmp_path / "r.h5", rows.astype(float), wanted)
    assert stored(tmp_path / "r.h5")[1]["converged"] == 1


@pytest.mark.deep
def test_the_default_tolerance_is_that_of_scikit_learn(mixture, tmp_path):
    """For mini-batches it is 0, again as in scikit-learn. With --tol 0, the run ends when no label changes."""
    directory, rows = mixture
    given = (directory / "rows.npy", "-k", 40, "--init", directory / "initial.npy")
    cluster(*given, "-o", "r.h5", cwd=tmp_path)
    default, whole = lloyd(rows, rows[::500], tol=1e-4), lloyd(rows, rows[::500])
    check_against(tmp_path / "r.h5", rows.astype(float), default)
    assert json.loads(stored(tmp_path / "r.h5")[1]["parameters"])["tol"] == 1e-4
    cluster(*given, "--tol", 0, "-o", "zero.h5", cwd=tmp_path)
    check_against(tmp_path / "zero.h5", rows.astype(float), whole)
    found = [stored(tmp_path / name)[1]["inertia"] for name in ("r.h5", "zero.h5")]
    assert found[1] <= found[0] <= 1.001 * found[1]
    cluster(*given, "--mini-batch", 512, "--max-iter", 3, "-o", "mini.h5", cwd=tmp_path)
    assert json.loads(stored(tmp_path / "mini.h5")[1]["parameters"])["tol"] == 0


@pytest.mark.deep
def test_cosine_mixture(mixture, tmp_path):
    directory, rows = mixture
    cluster(directory / "rows.npy", "-k", 40, "--init", directory / "initial.npy", "--metric",
            "cosine", "--max-iter", 20, "-o", "r.h5", cwd=tmp_path)
    check_against(tmp_path / "r.h5", unit(rows), spherical(unit(rows), unit(rows[::500]), 20))
    lengths = numpy.linalg.norm(stored(tmp_path / "r.h5")[0]["centroids"].astype(float), axis=1)
    assert abs(lengths - 1).max() < 1e-6


def test_methods(mixture, tmp_path):
    """Naming the method that the other options imply changes nothing, so the result is up to date. Naming another
    method is refused."""
    run = ["cluster", mixture[0] / "rows.npy", "-k", 3, "-o", "m.h5", "--name"]
    for name, options in ("lloyd", []), ("mini-batch", ["--mini-batch", 100]):
        assert run_clpipe(*run, name, *options, cwd=tmp_path).returncode == 0
        assert "up to date" in run_clpipe(*run, name, *options, "--method", name, cwd=tmp_path).stdout
    for options, why in (["--method", "mini-batch"], "needs --mini-batch N"), \
            (["--method", "lloyd", "--mini-batch", 5], "--method lloyd and --mini-batch exclude each other"), \
            (["--method", "lloid"], "lloyd|mini-batch"):
        check_one_error(run_clpipe(*run, "x", *options, cwd=tmp_path), 2, why)
        check_one_error(run_clpipe("run", tmp_path, "-o", "r.h5", *options, cwd=tmp_path), 2, why)


@pytest.mark.slow
def test_mini_batches(mixture, tmp_path):
    """The inertia is within 2 % of scikit-learn's, and the bits do not depend on the threads or the memory."""
    directory, rows = mixture
    ask = ["cluster", directory / "rows.npy", "-k", 40, "--init", directory / "initial.npy",
           "--mini-batch", 1000, "--max-iter", 100]
    found = []
    for number, machine in enumerate([[], ["--threads", 1], ["--memory", "4M"]]):
        result = run_clpipe(*ask, *machine, "-o", f"{number}.h5", cwd=tmp_path)
        assert result.returncode == 0 and "100 batches of 1000 rows" in result.stdout
        found.append(bits(tmp_path / f"{number}.h5"))
    assert found[1] == found[0] and found[2] == found[0]
    arrays, attributes = stored(tmp_path / "0.h5")
    assert attributes["iterations"] == 100 and len(arrays["inertia_history"]) == 100
    peer = pytest.importorskip("sklearn.cluster").MiniBatchKMeans(
        40, init=rows[::500], n_init=1, batch_size=1000, max_iter=5, max_no_improvement=None,
        random_state=0, reassignment_ratio=0).fit(rows)
    assert attributes["inertia"] < 1.02 * peer.inertia_
    # The labels match the stored centroids.
    distances = numpy.linalg.norm(rows[:, None].astype(float)[:500]
                                  - arrays["centroids"].astype(float), axis=2) ** 2
    assert (distances.argmin(1) == arrays["labels"][:500]).all()


def test_force_replaces(mixture, clustered, tmp_path):
    directory, _ = mixture
    shutil.copy(clustered[0], tmp_path / "r.h5")
    ask = ["cluster", directory / "rows.npy", "-k", 3, "-o", "r.h5"]
    refused = run_clpipe(*ask, cwd=tmp_path)
    assert refused.returncode == 2 and "k: the file has 40; the command asks for 3" in refused.stderr
    assert bits(tmp_path / "r.h5") == bits(clustered[0])
    cluster(*ask[1:], "--force", cwd=tmp_path)
    arrays, attributes = stored(tmp_path / "r.h5")
    assert attributes["k"] == 3 and arrays["centroids"].shape == (3, 64)
    assert os.listdir(tmp_path) == ["r.h5"]


# --- progress -------------------------------------------------------------------------------------

@pytest.mark.deep
def test_every_phase_shows_progress(program, tmp_path):
    """In this test, reading and seeding take longer than the iterations."""
    from test_run import in_terminal
    random = numpy.random.default_rng(1)
    numpy.save(tmp_path / "rows.npy", random.normal(size=(80000, 32)).astype(numpy.float32))
    seen = {}
    for init in ("kmeans++", "kmeans-parallel"):
        code, output = in_terminal("cluster", "rows.npy", "-k", 100, "--init", init, "--max-iter", 2,
                                   "-o", f"{init}.h5", "--device-memory", "4M", columns=120,
                                   cwd=tmp_path)
        assert code == 0, output
        lines = re.findall(r"\r\033\[K\033\[\?7l(.*?)\033\[\?7h", output)
        assert all(len(line) < 120 for line in lines)
        seen[init] = "\n".join(lines)
        assert re.search(r"\[[=> ]{24}\]  [\d,]+/80,000 rows read", seen[init])
        assert re.search(r"k-means: iteration 1 of at most 2  80,000 moved  inertia \S+  \S+ s each  "
                         r"at most \S+ s left  0 % pruned", seen[init])
        order = [seen[init].index(words) for words in ("rows read", "first centroids", "iteration")]
        assert order == sorted(order)
    assert re.search(r"first centroids: \d+\n", seen["kmeans-parallel"])
    assert re.search(r"\[[=> ]{24}\]  \d+/100 first centroids  \d+ s left", seen["kmeans++"])
