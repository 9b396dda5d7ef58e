"""Weights of rows: the result of scikit-learn's sample_weight, with the same bits in all ways of computing;
and errors."""

import h5py
import numpy
import pytest

from clusterings import cluster, stored
from conftest import check_one_error, run_clpipe


def bits(path, name="kmeans", without=()):
    arrays, attributes = stored(path, name)
    return {key: value.tobytes() for key, value in arrays.items() if key not in without} | {
        key: attributes[key] for key in ("iterations", "converged")}


@pytest.fixture(scope="module")
def data(tmp_path_factory, program):
    """Rows, weights over six orders of magnitude (some of them 0), and first centroids."""
    place = tmp_path_factory.mktemp("weights")
    random = numpy.random.default_rng(11)
    rows = random.normal(0, 1, (3000, 21)) + random.integers(0, 6, (3000, 1)) * 1.5
    weights = 10 ** random.uniform(-3, 3, 3000)
    weights[random.integers(0, 3000, 200)] = 0
    numpy.save(place / "rows.npy", rows.astype("f4"))
    numpy.save(place / "weights.npy", weights.astype("f4"))
    numpy.save(place / "first.npy", rows[:8].astype("f4"))
    return place


def lloyd(rows, weights, initial, iterations):
    from sklearn.cluster import KMeans
    return KMeans(len(initial), init=initial.astype(float), n_init=1, algorithm="lloyd", tol=0,
                  max_iter=iterations).fit(rows.astype(float), sample_weight=weights.astype(float))


@pytest.mark.parametrize("iterations", [1, 4, 200])
def test_equals_scikit_learn(data, tmp_path, iterations):
    rows, weights, first = (numpy.load(data / f"{name}.npy")
                            for name in ("rows", "weights", "first"))
    report = cluster(data / "rows.npy", "-k", "8", "--init", data / "first.npy", "--weights",
                     data / "weights.npy", "--max-iter", iterations, "--tol", 0, "-o", "r.h5", cwd=tmp_path)
    arrays, attributes = stored(tmp_path / "r.h5")
    wanted = lloyd(rows, weights, first, iterations)
    assert numpy.array_equal(arrays["labels"], wanted.labels_)
    assert abs(arrays["centroids"] - wanted.cluster_centers_).max() < 1e-5
    assert attributes["inertia"] == pytest.approx(wanted.inertia_, rel=1e-6)
    assert attributes["iterations"] == wanted.n_iter_
    assert numpy.array_equal(arrays["sizes"], numpy.bincount(arrays["labels"], minlength=8))
    # Each value of the history refers to the centroids at the start of an iteration.
    before = first.astype(float)
    for value in arrays["inertia_history"][:3]:
        squares = ((rows[:, None].astype(float) - before) ** 2).sum(2)
        assert value == pytest.approx((weights * squares.min(1)).sum(), rel=1e-6)
        labels = squares.argmin(1)
        before = numpy.stack([numpy.average(rows[labels == c], axis=0, weights=weights[labels == c])
                              for c in range(8)])
    assert report["inertia"] == attributes["inertia"]
    assert run_clpipe("verify", "r.h5", cwd=tmp_path).returncode == 0


def test_cosine(data, tmp_path):
    """Centroids are directions of weighted sums; rows of weight 0 are labelled, too."""
    rows, weights = (numpy.load(data / f"{name}.npy").astype(float)
                     for name in ("rows", "weights"))
    cluster(data / "rows.npy", "-k", "5", "--metric", "cosine", "--weights", data / "weights.npy",
            "--tol", 0, "-o", "r.h5", cwd=tmp_path)
    arrays, _ = stored(tmp_path / "r.h5")
    unit = rows / numpy.linalg.norm(rows, axis=1, keepdims=True)
    for c in range(5):
        total = (unit * weights[:, None])[arrays["labels"] == c].sum(0)
        assert abs(arrays["centroids"][c] - total / numpy.linalg.norm(total)).max() < 1e-5
    assert numpy.array_equal(arrays["labels"], (unit @ arrays["centroids"].T).argmax(1))


SEEDINGS = ["kmeans++", "kmeans-parallel", "random"]
WAYS = [["--threads", "1"], ["--memory", "1M", "--device-memory", "300K"], ["--threads", "3"]]


@pytest.mark.deep
@pytest.mark.parametrize("more", [["--init", name] for name in SEEDINGS] +
                         [["--mini-batch", "500", "--max-iter", "20"]])
def test_the_same_bits(data, tmp_path, more):
    """With any number of threads, streamed or not."""
    first = None
    for i, way in enumerate(WAYS):
        cluster(data / "rows.npy", "-k", "12", "--weights", data / "weights.npy", *more, *way,
                "--n-init", "2", "-o", f"{i}.h5", cwd=tmp_path)
        found = bits(tmp_path / f"{i}.h5")
        first = first or found
        assert found == first, way


@pytest.mark.variations
@pytest.mark.parametrize("more", [["--init", name] for name in SEEDINGS] +
                         [["--mini-batch", "500", "--max-iter", "20"]])
def test_equal_weights_equal_none(data, tmp_path, more):
    numpy.save(tmp_path / "w.npy", numpy.full(3000, 0.3))
    command = [data / "rows.npy", "-k", "6", *more, "--seed", "3"]
    cluster(*command, "-o", "none.h5", cwd=tmp_path)
    cluster(*command, "-o", "equal.h5", "--weights", "w.npy", cwd=tmp_path)
    units = ("inertia_history", "weights")  # values in units of the weights
    assert bits(tmp_path / "none.h5", without=units) == bits(tmp_path / "equal.h5",
                                                               without=units)
    factor = float(numpy.float32(0.3))
    none, equal = (stored(tmp_path / name)[1]["inertia"] for name in ("none.h5", "equal.h5"))
    assert equal == pytest.approx(none * factor, rel=1e-12)


def test_only_proportions_matter(data, tmp_path):
    numpy.save(tmp_path / "w.npy", numpy.load(data / "weights.npy") * numpy.float32(0.125))
    for name, weights in (("a.h5", data / "weights.npy"), ("b.h5", "w.npy")):
        cluster(data / "rows.npy", "-k", "9", "--weights", weights, "-o", name, cwd=tmp_path)
    units = ("inertia_history", "weights")  # values in units of the weights
    assert bits(tmp_path / "a.h5", without=units) == bits(tmp_path / "b.h5", without=units)


def test_repeated_rows(data, tmp_path):
    """A row of weight 3 counts as three rows."""
    rows, first = numpy.load(data / "rows.npy"), numpy.load(data / "first.npy")
    times = numpy.random.default_rng(2).integers(1, 5, len(rows))
    numpy.save(tmp_path / "repeated.npy", numpy.repeat(rows, times, axis=0))
    numpy.save(tmp_path / "times.npy", times)
    given = ["-k", "8", "--init", data / "first.npy"]
    cluster(data / "rows.npy", *given, "--weights", "times.npy", "-o", "w.h5", cwd=tmp_path)
    cluster("repeated.npy", *given, "-o", "r.h5", cwd=tmp_path)
    (weighted, about), (repeated, _) = stored(tmp_path / "w.h5"), stored(tmp_path / "r.h5")
    assert numpy.array_equal(numpy.repeat(weighted["labels"], times), repeated["labels"])
    assert abs(weighted["centroids"] - repeated["centroids"]).max() < 1e-6
    assert about["inertia"] == pytest.approx(stored(tmp_path / "r.h5")[1]["inertia"], rel=1e-7)


@pytest.mark.deep
@pytest.mark.parametrize("init", SEEDINGS)
def test_first_centroids_have_positive_weight(tmp_path, init, program):
    """Rows of weight 0 are never drawn, and heavy rows far more often."""
    numpy.save(tmp_path / "rows.npy", numpy.arange(1000, dtype="f4")[:, None])
    weights = numpy.zeros(1000)
    weights[::10] = 1
    weights[500:600:10] = 1000
    numpy.save(tmp_path / "w.npy", weights)
    heavy = 0
    for seed in range(10):
        cluster("rows.npy", "-k", "3", "--init", init, "--weights", "w.npy", "--max-iter", "0",
                "--seed", seed, "-o", "r.h5", "--force", cwd=tmp_path)
        drawn = stored(tmp_path / "r.h5")[0]["centroids"][:, 0].astype(int)
        assert (drawn % 10 == 0).all() and len(set(drawn)) == 3
        heavy += ((drawn >= 500) & (drawn < 600)).sum()
    assert heavy >= (27 if init == "random" else 10)


def test_empty_clusters_get_rows_of_positive_weight(tmp_path, program):
    """With distant first centroids, rows of weight 0 cannot fill the empty clusters."""
    random = numpy.random.default_rng(4)
    rows = random.normal(0, 1, (400, 5)).astype("f4")
    rows[:50] *= 30
    weights = numpy.ones(400)
    weights[:50] = 0
    weights[50] = 2
    first = numpy.full((6, 5), 1e6, "f4") * numpy.arange(6)[:, None]
    for name, values in (("rows", rows), ("w", weights), ("first", first)):
        numpy.save(tmp_path / f"{name}.npy", values)
    cluster("rows.npy", "-k", "6", "--init", "first.npy", "--weights", "w.npy", "--tol", 0, "-o",
            "r.h5", cwd=tmp_path)
    arrays, _ = stored(tmp_path / "r.h5")
    for c in range(6):
        members = arrays["labels"] == c
        assert weights[members].sum() > 0
        assert arrays["centroids"][c] == pytest.approx(
            numpy.average(rows[members], axis=0, weights=weights[members]), abs=1e-5)


@pytest.mark.deep
def test_hdf5_and_shapes(data, tmp_path):
    weights = numpy.load(data / "weights.npy")
    with h5py.File(tmp_path / "w.h5", "w") as file:
        file["of/rows"] = weights.astype("f8")
        file["column"] = weights[:, None]
    numpy.save(tmp_path / "column.npy", weights[:, None].astype(">f8"))
    wanted = None
    for i, source in enumerate([data / "weights.npy", "w.h5:/of/rows", "w.h5:/column",
                                "column.npy"]):
        cluster(data / "rows.npy", "-k", "4", "--weights", source, "-o", f"{i}.h5", cwd=tmp_path)
        wanted = wanted or bits(tmp_path / f"{i}.h5")
        assert bits(tmp_path / f"{i}.h5") == wanted
    # Weights are parameters of the result.
    result = run_clpipe("cluster", data / "rows.npy", "-k", "4", "-o", "0.h5", cwd=tmp_path)
    assert result.returncode == 2 and "weights: the file has" in result.stderr
    again = cluster(data / "rows.npy", "-k", "4", "--weights", "column.npy", "-o", "0.h5",
                    cwd=tmp_path)
    assert again["iterations"] == stored(tmp_path / "0.h5")[1]["iterations"]


@pytest.mark.variations
@pytest.mark.parametrize("values, code, said", [
    (numpy.ones(2999), 2, "holds 2999 weights, but there are 3000 rows"),
    (numpy.ones((3000, 2)), 3, "has 3000 rows of 2 columns; expected one row or one column"),
    (numpy.r_[numpy.ones(2999), -1], 3, "the weight of row 2999 is -1"),
    (numpy.r_[numpy.nan, numpy.ones(2999)], 3, "the weight of row 0 is nan"),
    (numpy.r_[numpy.ones(2999), 1e300], 3, "the weight of row 2999 is inf"),
    (numpy.zeros(3000), 3, "the weight of every row is 0"),
    (numpy.r_[numpy.zeros(2998), 1, 2], 3, "k is 3, larger than the number of rows with a weight above 0 (2)"),
    (numpy.ones(3000) > 0, 3, "holds values of type"),
], ids=["short", "columns", "negative", "nan", "infinite", "zeros", "few", "bool"])
def test_refused(data, tmp_path, values, code, said):
    numpy.save(tmp_path / "w.npy", values)
    result = run_clpipe("cluster", data / "rows.npy", "-k", "3", "--weights", "w.npy", "-o", "r.h5",
                        cwd=tmp_path)
    check_one_error(result, code, said)


def test_misused(data, tmp_path):
    result = run_clpipe("cluster", data / "rows.npy", "-k", "2", "--weights", "absent.npy", "-o",
                        "r.h5", cwd=tmp_path)
    assert result.returncode == 2 and "there is no file absent.npy" in result.stderr


# --- in the file ----------------------------------------------------------------------------------

def test_verify_checks_weights(data, tmp_path):
    """A changed weight and an invalid weight."""
    cluster(data / "rows.npy", "-k", "5", "--weights", data / "weights.npy", "-o", "r.h5",
            cwd=tmp_path)
    whole = (tmp_path / "r.h5").read_bytes()
    assert numpy.array_equal(stored(tmp_path / "r.h5")[0]["weights"],
                             numpy.load(data / "weights.npy"))

    def verified(change):
        (tmp_path / "r.h5").write_bytes(whole)
        with h5py.File(tmp_path / "r.h5", "r+") as file:
            change(file["clusters/kmeans"])
        result = run_clpipe("verify", "r.h5", cwd=tmp_path)
        return result.returncode, result.stdout

    def weight(group):
        group["weights"][17] += 100

    def negative(group):
        group["weights"][17] = -1

    code, said = verified(weight)
    assert code == 1 and "/clusters/kmeans/weights: something in rows" in said
    code, said = verified(negative)
    assert code == 1 and "has an invalid weight" in said and "17" in said
    assert verified(lambda group: None)[0] == 0


@pytest.mark.deep
def test_weights_stay_with_their_clusters(photos, tmp_path):
    assert run_clpipe("ingest", photos, "-o", "p.h5", cwd=tmp_path).returncode == 0
    weights = numpy.arange(1, 14, dtype="f4") / 4
    numpy.save(tmp_path / "w.npy", weights)
    cluster("p.h5", "-k", "2:3", "--weights", "w.npy", cwd=tmp_path)
    added = run_clpipe("ingest", photos, "-o", "p.h5", "--add", "--feature", "gray", cwd=tmp_path)
    assert added.returncode == 0, added.stderr
    with h5py.File(tmp_path / "p.h5", "r") as file:
        kept = file["clusters/kmeans/weights"]
        assert numpy.array_equal(kept[:], weights) and kept.dims[0][0].name == "/image"
    assert run_clpipe("verify", "p.h5", cwd=tmp_path).returncode == 0
    cluster("p.h5", "-k", "3", "--feature", "gray_256", "--force", cwd=tmp_path)
    assert "weights" not in stored(tmp_path / "p.h5")[0]
    assert run_clpipe("verify", "p.h5", cwd=tmp_path).returncode == 0


# --- choosing k -----------------------------------------------------------------------------------

MEASURES = ["inertia", "silhouette", "simplified_silhouette", "davies_bouldin",
            "calinski_harabasz"]


def sweep(place, *more):
    """The columns of a weighted sweep, and centroids and labels of each k alone."""
    cluster("rows.npy", "-k", "2:6", "--weights", "w.npy", *more, "-o", "sweep.h5", cwd=place)
    with h5py.File(place / "sweep.h5", "r") as file:
        group = file["clusters/kmeans"]
        columns = {key: group["sweep"][key][:] for key in group["sweep"]}
        columns["sample"] = group["sweep"].attrs["sample"]
        chosen = group.attrs["k"]
    alone = []
    for k in range(2, 7):
        cluster("rows.npy", "-k", k, "--weights", "w.npy", *more, "-o", f"{k}.h5", cwd=place)
        arrays, attributes = stored(place / f"{k}.h5")
        assert attributes["inertia"] == columns["inertia"][k - 2]
        assert attributes["converged"] == 1
        alone.append(arrays)
    assert chosen == 2 + columns["silhouette"].argmax()
    assert run_clpipe("verify", "sweep.h5", cwd=place).returncode == 0
    return columns, alone


def groups(random, n):
    """A few overlapping groups, and one row far from all others."""
    rows = random.normal(0, 1, (n, 5)) + 2.5 * random.integers(0, 2, (n, 5))
    rows[7] = 60
    return rows.astype("f4")


@pytest.mark.deep
@pytest.mark.parametrize("times", ["mixed", "one", "three"])
def test_measures_of_copies(tmp_path, program, times):
    """A row of weight w counts as w rows: the measures equal scikit-learn's for repeated rows. The isolated
    row counts as 0 in silhouettes, or as its own neighbour."""
    from sklearn import metrics
    from test_sweep import simplified
    random = numpy.random.default_rng(8)
    rows = groups(random, 300)
    weights = {"mixed": random.integers(0, 6, 300), "one": numpy.ones(300, int),
               "three": numpy.full(300, 3)}[times]
    weights[7] = weights[8]
    numpy.save(tmp_path / "rows.npy", rows)
    numpy.save(tmp_path / "w.npy", weights)
    columns, alone = sweep(tmp_path)
    assert columns["sample"] == (weights > 0).sum()
    space = numpy.repeat(rows.astype(float), weights, axis=0)
    lonely = 0
    for i, arrays in enumerate(alone):
        labels = numpy.repeat(arrays["labels"], weights)
        lonely += (numpy.bincount(labels) == weights[7]).any()
        centroids = arrays["centroids"].astype(float)
        wanted = {
            "inertia": ((space - centroids[labels]) ** 2).sum(),
            "silhouette": metrics.silhouette_score(space, labels),
            "simplified_silhouette": simplified(space, centroids, labels),
            "davies_bouldin": metrics.davies_bouldin_score(space, labels),
            "calinski_harabasz": metrics.calinski_harabasz_score(space, labels),
        }
        assert {key: columns[key][i] for key in MEASURES} == pytest.approx(wanted, rel=1e-6,
                                                                           abs=1e-7)
    assert lonely


def weighted_measures(space, arrays, weights, sample, times):
    """The measures as defined in docs/clustering.md; row sample[i] counts times[i] times in the silhouette."""
    labels, centroids = arrays["labels"], arrays["centroids"].astype(float)
    k = len(centroids)
    whole = numpy.bincount(labels, weights, minlength=k)
    lengths = numpy.sqrt(((space[:, None] - centroids) ** 2).sum(2))
    own = lengths[numpy.arange(len(space)), labels]
    inertia = (weights * own ** 2).sum()
    lengths[numpy.arange(len(space)), labels] = numpy.inf
    other = lengths.min(1)
    single = numpy.where(whole[labels] - numpy.minimum(weights, 1) > 0,
                         (other - own) / numpy.maximum(other, own), 0)
    spread = numpy.bincount(labels, weights * own) / whole
    apart = numpy.sqrt(((centroids[:, None] - centroids) ** 2).sum(2))
    numpy.fill_diagonal(apart, numpy.inf)
    mean = numpy.average(space, axis=0, weights=weights)
    between = (whole * ((centroids - mean) ** 2).sum(1)).sum()
    count = numpy.maximum(weights, 1)[weights > 0].sum()
    some, mine = space[sample], labels[sample]
    pairs = numpy.sqrt(((some[:, None] - some) ** 2).sum(2))
    member = times[:, None] * (mine[:, None] == numpy.arange(k))
    sums, sizes = pairs @ member, member.sum(0)
    at = numpy.arange(len(some))
    others = sizes[mine] - numpy.minimum(times, 1)
    a = sums[at, mine] / numpy.where(others > 0, others, 1)
    means = numpy.where(sizes > 0, sums / numpy.where(sizes > 0, sizes, 1), numpy.inf)
    means[at, mine] = numpy.inf
    b = means.min(1)
    silhouettes = numpy.where(others > 0, (b - a) / numpy.maximum(a, b), 0)
    return {
        "inertia": inertia,
        "silhouette": numpy.average(silhouettes, weights=times),
        "simplified_silhouette": numpy.average(single, weights=weights),
        "davies_bouldin": ((spread[:, None] + spread) / apart).max(1).mean(),
        "calinski_harabasz": between / (k - 1) / (inertia / (count - k)),
    }


@pytest.mark.deep
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_measures_of_fractions(tmp_path, program, metric):
    random = numpy.random.default_rng(9)
    rows = groups(random, 500)
    weights = (10 ** random.uniform(-3, 1, 500)).astype("f4")
    weights[random.integers(0, 500, 60)] = 0
    numpy.save(tmp_path / "rows.npy", rows)
    numpy.save(tmp_path / "w.npy", weights)
    columns, alone = sweep(tmp_path, "--metric", metric)
    sample = numpy.flatnonzero(weights)
    assert columns["sample"] == len(sample)
    weights, space = weights.astype(float), rows.astype(float)
    if metric == "cosine":
        space /= numpy.linalg.norm(space, axis=1, keepdims=True)
    for i, arrays in enumerate(alone):
        wanted = weighted_measures(space, arrays, weights, sample, weights[sample])
        assert {key: columns[key][i] for key in MEASURES} == pytest.approx(wanted, rel=1e-6,
                                                                           abs=1e-7)


@pytest.mark.deep
def test_a_sample_is_drawn_by_weight(tmp_path, program):
    from test_sweep import SAMPLE, drawn
    random = numpy.random.default_rng(10)
    rows, weights = groups(random, 4000), 10 ** random.uniform(-3, 3, 4000).astype("f4")
    weights[::3] = 0
    numpy.save(tmp_path / "rows.npy", rows)
    numpy.save(tmp_path / "w.npy", weights)
    columns, alone = sweep(tmp_path, "--seed", 4)
    reached = numpy.cumsum(weights.astype(float))
    chosen = [numpy.searchsorted(reached, drawn(4, 0xffffffff, i) * reached[-1], side="right")
              for i in range(SAMPLE)]
    sample, times = numpy.unique(chosen, return_counts=True)
    assert columns["sample"] == len(sample) < SAMPLE and weights[sample].min() > 0
    for i, arrays in enumerate(alone):
        wanted = weighted_measures(rows.astype(float), arrays, weights.astype(float), sample,
                                   times.astype(float))
        assert {key: columns[key][i] for key in MEASURES} == pytest.approx(wanted, rel=1e-6,
                                                                           abs=1e-7)
    # All ways of computing give the same bits.
    wanted = run_clpipe("info", "sweep.h5", "--digest", cwd=tmp_path).stdout
    for i, way in enumerate(WAYS):
        cluster("rows.npy", "-k", "2:6", "--weights", "w.npy", "--seed", 4, *way, "-o",
                f"way{i}.h5", cwd=tmp_path)
        assert run_clpipe("info", f"way{i}.h5", "--digest", cwd=tmp_path).stdout == wanted
