"""Labels, iterations and centroids from given first centroids equal those of a plain Lloyd in float64, and
k-means++ reaches an inertia as low as scikit-learn's. CLPIPE_LONG=1 uses more data and more seeds."""

import json

import h5py
import numpy
import pytest

import matrices
from conftest import LONG, run_clpipe



def nearest(rows, centroids):
    """The nearest centroid by the definition; the first one of equals."""
    return numpy.stack([((rows - c) ** 2).sum(1) for c in centroids], 1).argmin(1)


def lloyd(rows, centroids, kept=numpy.float64):
    """Runs Lloyd in float64 until no label changes; returns labels, centroids and the number of iterations.
    `kept` is the type to which centroids are rounded between iterations."""
    rows, centroids = rows.astype(float), centroids.astype(float)
    before, iterations = None, 0
    while True:
        labels = nearest(rows, centroids)
        iterations += 1
        assert numpy.bincount(labels, minlength=len(centroids)).all(), "an empty cluster"
        centroids = numpy.stack([rows[labels == c].mean(0) for c in range(len(centroids))])
        centroids = centroids.astype(kept).astype(float)
        if before is not None and numpy.array_equal(before, labels):
            return labels, centroids, iterations
        before = labels


def check(name, directory, large, kept):
    rows, first = matrices.save(name, directory, large)
    metric = "hellinger" if name == "photographs" else "euclidean"
    result = run_clpipe("cluster", "rows.npy", "-k", len(first), "--init", "first.npy", "--tol",
                        0, "--metric",
                        metric, "--max-iter", 1000, "-o", "r.h5", cwd=directory)
    assert result.returncode == 0, result.stderr
    with h5py.File(directory / "r.h5", "r") as file:
        group = file["clusters/kmeans"]
        labels, centroids, iterations = (group["labels"][:], group["centroids"][:],
                                         group.attrs["iterations"])
    space, first = rows.astype(float), first.astype(float)
    if metric == "hellinger":
        space, first = numpy.sqrt(space), numpy.sqrt(first)
    wanted = lloyd(space, first, kept)
    print(f"{name}: {rows.shape}, {len(first)} centroids, {iterations} iterations")
    assert iterations == wanted[2]
    assert numpy.array_equal(labels, wanted[0])
    # The relative precision of float32 is 1.2e-7, but its absolute precision is limited to 7e-46.
    far = abs(centroids.astype(float) - wanted[1]).max()
    assert far <= 1e-6 * abs(space).max() + 7e-46


@pytest.mark.variations
@pytest.mark.parametrize("name", matrices.NAMES)
def test_equals_plain_lloyd(name, tmp_path, program):
    check(name, tmp_path, False, numpy.float64)


@pytest.mark.skipif(not LONG, reason="only in tools/check --long")
@pytest.mark.parametrize("name", matrices.NAMES)
def test_large_equals_lloyd_with_float32_centroids(name, tmp_path, program):
    """With so many rows and iterations, a few rows are so close to two centroids that rounding the centroids
    to float32, which is part of clpipe's definition, makes a difference."""
    check(name, tmp_path, True, numpy.float32)


def test_near_ties_are_as_constructed(tmp_path, program):
    """The answer of the plain Lloyd is the one for which the integers were constructed."""
    random = numpy.random.default_rng(1)
    rows, first, labels, centres = matrices.near_ties(random, 960)
    assert abs(rows).max() < 2**24
    # Computed in 64-bit integers: only the last few of more than 37 bits decide which centroid is nearer.
    squares = numpy.stack([((rows - c) ** 2).sum(1) for c in first], 1)
    order = numpy.sort(squares, 1)
    near = order[:, 1] - order[:, 0]
    assert set(near[near < 1000]) == {0, 4} and (near < 1000).sum() == 480
    assert order[near < 1000, 0].min() > 2**34
    assert numpy.array_equal(squares.argmin(1), labels)
    found = lloyd(rows, first)
    assert numpy.array_equal(found[0], labels) and numpy.array_equal(found[1], centres)


# --- how low k-means++ ends -----------------------------------------------------------------------

@pytest.mark.slow
def test_inertia_is_no_worse_than_scikit_learn(tmp_path, program):
    """Both use the best of ten runs with their own random numbers, so individual ratios of the two vary by up to 2 %,
    but the mean over seeds and data must be about 1."""
    cluster = pytest.importorskip("sklearn.cluster")
    from threadpoolctl import threadpool_limits
    seeds, step, most = (20, 1, 1.003) if LONG else (3, 4, 1.01)
    means = []
    for name in ("photographs", "mixture", "noise", "duplicates", "integers", "digits"):
        rows = matrices.make(name, tmp_path)[0][::step]
        numpy.save(tmp_path / f"{name}.npy", rows)
        quotients = []
        for seed in range(seeds):
            result = run_clpipe("cluster", f"{name}.npy", "-k", 12, "--n-init", 10, "--tol",
                                0, "--seed", seed,
                                "-o", f"{name} {seed}.h5", "--json", "-", cwd=tmp_path)
            assert result.returncode == 0, result.stderr
            with threadpool_limits(1):
                peer = cluster.KMeans(12, init="k-means++", n_init=10, tol=0, max_iter=100,
                                      random_state=seed).fit(rows.astype(float))
            quotients.append(json.loads(result.stdout)["inertia"] / peer.inertia_)
        means.append(numpy.mean(quotients))
        print(f"{name}: {means[-1]:.5f}, from {min(quotients):.5f} to {max(quotients):.5f}")
    print(f"mean: {numpy.mean(means):.5f}")
    assert numpy.mean(means) <= most
