"""Inputs that can be clustered, and the error line and exit code for those that cannot."""

import hashlib
import json
import os

import h5py
import numpy
import pytest

from conftest import check_one_error
from test_codebooks import murmur3


def save(path, array, version=None):
    with open(path, "wb") as file:
        numpy.lib.format.write_array(file, array, version=version)


def labels_of(path, name="kmeans"):
    with h5py.File(path, "r") as file:
        return file["clusters"][name]["labels"][:]


def centroids_of(path):
    with h5py.File(path, "r") as file:
        return file["clusters/kmeans/centroids"][:]


def nothing_written(directory, *there):
    assert sorted(os.listdir(directory)) == sorted(there)


@pytest.fixture(scope="module")
def rows():
    """300 x 10 integers from 0 to 120, which every type can hold, in four groups."""
    random = numpy.random.default_rng(5)
    centres = random.integers(20, 100, (4, 10))
    return centres[numpy.arange(300) % 4] + random.integers(-4, 5, (300, 10))


@pytest.fixture
def ask(clpipe):
    """Runs `clpipe cluster INPUT -k 4 -o r.h5` with additional options."""
    def run(path, *more):
        more = more if "-k" in more else ("-k", 4, *more)
        return clpipe("cluster", path, "-o", "r.h5", *more)
    return run


# --- .npy -----------------------------------------------------------------------------------------

@pytest.mark.variations
@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2",
                                   "<u4", "<u8"])
def test_types(ask, tmp_path, rows, dtype):
    save(tmp_path / "x.npy", rows.astype(dtype))
    result = ask("x.npy")
    assert result.returncode == 0, result.stderr
    groups = labels_of(tmp_path / "r.h5")
    assert len(set(zip(groups, numpy.arange(300) % 4))) == 4
    means = numpy.stack([rows[groups == c].mean(0) for c in range(4)])
    assert numpy.allclose(centroids_of(tmp_path / "r.h5"), means, rtol=1e-6)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions(ask, tmp_path, rows, version):
    save(tmp_path / "x.npy", rows.astype("f4"), version)
    result = ask("x.npy")
    assert result.returncode == 0, result.stderr


def test_name_does_not_matter(ask, tmp_path, rows):
    save(tmp_path / "vectors of mine", rows.astype("f4"))
    assert ask("vectors of mine").returncode == 0


@pytest.mark.deep
def test_float64_is_rounded_to_float32(ask, tmp_path):
    """As documented, values that differ only beyond the precision of float32 are equal."""
    save(tmp_path / "x.npy", numpy.array([[1.0], [1.0 + 1e-12], [1.0 - 1e-12]]))
    check_one_error(ask("x.npy", "-k", 2), 3, "distinct row")
    save(tmp_path / "x.npy", numpy.array([[1e300], [1.0]]))
    check_one_error(ask("x.npy", "-k", 2), 3, "row 0", "infinity", "float32")


@pytest.mark.parametrize("make, words", [
    (lambda r: r.astype("c8"), ["'<c8'", "float32"]),
    (lambda r: r.astype("S4"), ["'|S4'"]),
    (lambda r: r.astype("?"), ["'|b1'"]),
    (lambda r: r.astype("M8[s]"), ["'<M8[s]'"]),
    (lambda r: r.astype("f4").ravel(), ["1 dimension;", "expected 2"]),
    (lambda r: r.astype("f4").reshape(3, 100, 10), ["3 dimensions;", "expected 2"]),
    (lambda r: numpy.float32(3), ["0 dimensions"]),
    (lambda r: numpy.zeros((5, 2), [("a", "f4")]), ["named fields"]),
    (lambda r: numpy.zeros((0, 10), "f4"), ["no rows"]),
    (lambda r: numpy.zeros((5, 0), "f4"), ["no columns"]),
    (lambda r: numpy.zeros((0, 0), "f4"), ["no rows"]),
], ids=["complex", "strings", "booleans", "dates", "1-d", "3-d", "scalar",
        "records", "no rows", "no columns", "nothing"])
def test_arrays_that_are_not_matrices(ask, tmp_path, rows, make, words):
    save(tmp_path / "x.npy", numpy.asanyarray(make(rows)))
    check_one_error(ask("x.npy"), 3, *words)
    nothing_written(tmp_path, "x.npy")


@pytest.mark.variations
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<f2", ">i2"])
def test_column_by_column(ask, tmp_path, dtype):
    """Fortran order gives the same result as C order, read in pieces and in either byte order."""
    random = numpy.random.default_rng(8)
    values = (random.normal(0, 50, (40000, 3)) + 100 * random.integers(0, 4, (40000, 1)))
    save(tmp_path / "c.npy", values.astype(dtype))
    save(tmp_path / "f.npy", numpy.asfortranarray(values.astype(dtype)))
    assert b"'fortran_order': True" in (tmp_path / "f.npy").read_bytes()[:128]
    found = []
    for name in ("c", "f"):
        assert ask(f"{name}.npy", "-o", f"{name}.h5", "--memory", "16M").returncode == 0
        with h5py.File(tmp_path / f"{name}.h5", "r") as file:
            group = file["clusters/kmeans"]
            found.append(group["labels"][:].tobytes() + group["centroids"][:].tobytes())
    assert found[0] == found[1]


@pytest.mark.variations
@pytest.mark.parametrize("dtype", [">f2", ">f4", ">f8", ">i2", ">i4", ">u8"])
def test_big_endian(ask, tmp_path, dtype):
    values = numpy.arange(60).reshape(20, 3) ** 2 % 101
    for name, kind in (("big", dtype), ("little", dtype.replace(">", "<"))):
        save(tmp_path / f"{name}.npy", values.astype(kind))
        assert ask(f"{name}.npy", "-o", f"{name}.h5").returncode == 0
    assert numpy.array_equal(centroids_of(tmp_path / "big.h5"),
                             centroids_of(tmp_path / "little.h5"))


def test_one_column_in_fortran_order(ask, tmp_path):
    """NumPy considers such an array C-contiguous too and writes it in C order."""
    save(tmp_path / "x.npy", numpy.asfortranarray(numpy.arange(20, dtype="f4").reshape(20, 1)))
    assert ask("x.npy").returncode == 0


def test_broken_files(ask, tmp_path, rows):
    path = tmp_path / "x.npy"
    save(path, rows.astype("f4"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    check_one_error(ask("x.npy"), 3, "truncated", "300 x 10", "12000 bytes", "11999 bytes")
    for size in (0, 3, 6, 9, 11, 60):
        path.write_bytes(whole[:size])
        check_one_error(ask("x.npy"), 3, "x.npy")
    path.write_bytes(whole.replace(b"(300, 10)", b"(9223372036854775807, 10)"))
    check_one_error(ask("x.npy"), 3, "x.npy")
    path.write_bytes(b"neither this nor that " * 10)
    check_one_error(ask("x.npy"), 3, "x.npy", "not a .npy")
    (tmp_path / "rows.txt").write_bytes(b"neither this nor that " * 10)
    check_one_error(ask("rows.txt"), 3, "neither HDF5 nor .npy")
    check_one_error(ask("none.npy"), 2, "no file none.npy")
    (tmp_path / "d").mkdir()
    check_one_error(ask("d"), 3, "directory", "ingest")
    os.mkfifo(tmp_path / "pipe.npy")
    check_one_error(ask("pipe.npy"), 3, "not a regular file")
    nothing_written(tmp_path, "x.npy", "rows.txt", "d", "pipe.npy")
    # Bytes after the array are allowed, as in NumPy.
    path.write_bytes(whole + b"more")
    assert ask("x.npy").returncode == 0


# --- values ---------------------------------------------------------------------------------------

@pytest.mark.variations
@pytest.mark.parametrize("value, word", [(numpy.nan, "NaN"), (numpy.inf, "infinity"),
                                         (-numpy.inf, "infinity")])
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "hellinger"])
def test_values_that_are_not_finite(ask, tmp_path, rows, value, word, metric):
    bad = rows.astype("f4")
    bad[217, 3] = value
    bad[250, 0] = value
    save(tmp_path / "x.npy", bad)
    check_one_error(ask("x.npy", "--metric", metric), 3, "row 217", word, "column 3")
    nothing_written(tmp_path, "x.npy")


def test_values_that_a_metric_does_not_allow(ask, tmp_path, rows):
    bad = rows.astype("f4")
    bad[[99, 150]] = 0
    save(tmp_path / "x.npy", bad)
    check_one_error(ask("x.npy", "--metric", "cosine"), 3, "row 99", "zero", "cosine")
    assert ask("x.npy", "--metric", "euclidean").returncode == 0
    bad[7, 4] = -1
    save(tmp_path / "x.npy", bad)
    check_one_error(ask("x.npy", "--metric", "hellinger", "--force"), 3, "row 7", "negative",
                    "column 4")


def test_cosine_ignores_the_length_of_rows(ask, tmp_path, rows):
    """The rows have lengths of very different magnitudes."""
    save(tmp_path / "x.npy", rows.astype("f8") * numpy.geomspace(1e-36, 1e34, 300)[:, None])
    assert ask("x.npy", "--metric", "cosine").returncode == 0
    scaled = labels_of(tmp_path / "r.h5")
    save(tmp_path / "x.npy", rows.astype("f8"))
    assert ask("x.npy", "--metric", "cosine", "--force").returncode == 0
    assert numpy.array_equal(scaled, labels_of(tmp_path / "r.h5"))


# --- k --------------------------------------------------------------------------------------------

@pytest.mark.deep
def test_k_and_the_number_of_rows(ask, tmp_path, rows):
    some = rows[:12].astype("f4")
    save(tmp_path / "x.npy", some)
    assert ask("x.npy", "-k", 1).returncode == 0
    assert numpy.allclose(centroids_of(tmp_path / "r.h5")[0], some.astype(float).mean(0), rtol=1e-6)
    assert set(labels_of(tmp_path / "r.h5")) == {0}
    for init in ("kmeans++", "kmeans-parallel", "random", "x.npy"):
        result = ask("x.npy", "-k", 12, "--force", "--init", init, "--json", "-")
        assert result.returncode == 0, result.stderr
        report = json.loads(result.stdout)
        assert report["sizes"] == [1] * 12 and report["inertia"] == 0
        assert numpy.array_equal(centroids_of(tmp_path / "r.h5")[labels_of(tmp_path / "r.h5")], some)
    check_one_error(ask("x.npy", "-k", 13, "--force"), 3, "k is 13", "12")
    check_one_error(ask("x.npy", "-k", 0), 2, "-k", "0")
    check_one_error(ask("x.npy", "-k", -3), 2, "-k")
    check_one_error(ask("x.npy", "-k", 2**31), 2, "-k")
    check_one_error(ask("x.npy", "-k", 2**31 - 1, "--force"), 3, "only 12 rows")


@pytest.mark.variations
@pytest.mark.parametrize("init", ["kmeans++", "kmeans-parallel", "random", "given"])
def test_k_and_the_number_of_distinct_rows(ask, tmp_path, rows, init):
    save(tmp_path / "x.npy", numpy.repeat(rows[:9], 30, 0).astype("f4"))
    for k, good in ((9, True), (10, False), (40, False)):
        save(tmp_path / "initial.npy", rows[:k].astype("f4"))
        result = ask("x.npy", "-k", k, "--init", "initial.npy" if init == "given" else init)
        if good:
            assert result.returncode == 0, result.stderr
            labels = labels_of(tmp_path / "r.h5")
            assert (numpy.bincount(labels) == 30).all()
            os.remove(tmp_path / "r.h5")
        else:
            check_one_error(result, 3, f"k is {k}", "distinct row", "smaller k")
            nothing_written(tmp_path, "x.npy", "initial.npy")


@pytest.mark.deep
def test_empty_clusters_get_rows(ask, tmp_path, rows):
    """Clusters whose given centroids are not the nearest of any row are given rows."""
    save(tmp_path / "x.npy", rows.astype("f4"))
    initial = numpy.full((6, 10), 1e6, "f4")
    initial[2] = rows[0]
    save(tmp_path / "initial.npy", initial)
    for name, options in (("a", ()), ("b", ("--device-memory", "1K", "--threads", 5)),
                          ("c", ("--max-iter", 0))):
        result = ask("x.npy", "-k", 6, "--init", "initial.npy", "--name", name, *options)
        assert result.returncode == 0, result.stderr
        assert (numpy.bincount(labels_of(tmp_path / "r.h5", name), minlength=6) > 0).all()
    assert numpy.array_equal(labels_of(tmp_path / "r.h5", "a"), labels_of(tmp_path / "r.h5", "b"))


# --- --init FILE ----------------------------------------------------------------------------------

def test_given_centroids_that_do_not_fit(ask, tmp_path, rows):
    save(tmp_path / "x.npy", rows.astype("f4"))
    initial = lambda array: save(tmp_path / "i.npy", array) or ask("x.npy", "--init", "i.npy")
    check_one_error(initial(rows[:5].astype("f4")), 2, "i.npy", "5 centroids of 10", "4 of 10")
    check_one_error(initial(rows[:4, :9].astype("f4")), 2, "i.npy", "4 centroids of 9", "4 of 10")
    check_one_error(initial(rows[0].astype("f4")), 3, "i.npy", "1 dimension;")
    bad = rows[:4].astype("f4")
    bad[2, 1] = numpy.nan
    check_one_error(initial(bad), 3, "centroid 2", "NaN", "column 1")
    check_one_error(ask("x.npy", "--init", "no.npy"), 2, "no.npy", "kmeans++")
    check_one_error(ask("x.npy", "--init", "farthest"), 2, "farthest", "kmeans++")
    nothing_written(tmp_path, "x.npy", "i.npy")
    # The centroids may have any type that rows may have.
    assert initial(rows[:4].astype("u1")).returncode == 0


# --- how rows are recognised ---------------------------------------------------------------------

def digest_of(values):
    """The digest of rows as defined in docs/file-format.md."""
    values = numpy.ascontiguousarray(values, "<f4")
    step = 1 << max(((1 << 20) // (values.shape[1] * 4)).bit_length() - 1, 0)
    whole = hashlib.sha256(b"rows float32 %d,%d\n" % values.shape)
    for first in range(0, len(values), step):
        for half in murmur3(values[first:first + step].tobytes()):
            whole.update(half.to_bytes(8, "little"))
    return "rows1-" + whole.hexdigest()[:58]


@pytest.mark.deep
@pytest.mark.parametrize("threads", [1, 7])
@pytest.mark.parametrize("columns", [3, 9999])
def test_content(ask, tmp_path, threads, columns):
    """The attribute `content` is the documented digest of the float32 values, whatever type is stored. The digest
    of an earlier version is still recognised."""
    random = numpy.random.default_rng(columns)
    values = random.integers(0, 256, (300000 // columns, columns)).astype("f4")
    save(tmp_path / "x.npy", values.astype(">i2"))
    with h5py.File(tmp_path / "f.h5", "w", userblock_size=512) as file:
        file["plain"], file["half"] = values.astype(">f8"), values.astype("f2")
        file.create_dataset("chunked", data=values.astype("u1"), chunks=(7, 2), shuffle=True,
                            compression=1)
    found = []
    for source in "x.npy", "f.h5:/plain", "f.h5:/half", "f.h5:/chunked":
        result = ask(source, "-k", 2, "--init", "random", "--max-iter", 1, "--force", "--threads", threads)
        assert result.returncode == 0, result.stderr
        with h5py.File(tmp_path / "r.h5") as file:
            found.append(file["clusters/kmeans"].attrs["content"])
    assert set(found) == {digest_of(values)}
    with h5py.File(tmp_path / "r.h5", "r+") as file:
        shape = numpy.array(values.shape, "<u8").tobytes()
        old = murmur3(values.astype("<f4").tobytes() + shape)
        file["clusters/kmeans"].attrs["content"] = "murmur3-%016x%016x" % old
    before = (tmp_path / "r.h5").read_bytes()
    result = ask("f.h5:/chunked", "-k", 2, "--init", "random", "--max-iter", 1)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "r.h5").read_bytes() == before


@pytest.mark.deep
def test_how_rows_are_recognised(ask, tmp_path, rows):
    """Rows are recognised by size, time and the documented sample; --verify-input finds any other change."""
    values, then = rows.astype("f4"), 1_000_000_000_123_456_789

    def put(row, value, time=then):
        changed = values.copy()
        changed[row, 0] = value
        save(tmp_path / "x.npy", changed)
        os.utime(tmp_path / "x.npy", ns=(time, time))
    put(0, 3)
    values[0, 0] = 3
    assert ask("x.npy").returncode == 0
    with h5py.File(tmp_path / "r.h5") as file:
        attributes = dict(file["clusters/kmeans"].attrs)
    sample = hashlib.sha256(numpy.array(values.shape, "<u8").tobytes())
    for i in [*range(0, 63 * ((300 - 1) // 64), (300 - 1) // 64), 299]:
        sample.update(values[i].tobytes())
    assert attributes["source_sample"] == sample.hexdigest()
    assert attributes["source_mtime_ns"] == then
    assert attributes["source_bytes"] == os.path.getsize(tmp_path / "x.npy")
    kept = (tmp_path / "r.h5").read_bytes()
    put(1, 77)
    assert ask("x.npy").returncode == 0
    check_one_error(ask("x.npy", "--verify-input"), 2, "other rows", "--force")
    put(299, 77)
    check_one_error(ask("x.npy"), 2, "other rows", "--force")
    put(0, 3, then + 1)
    assert ask("x.npy", "--verify-input").returncode == ask("x.npy").returncode == 0
    assert (tmp_path / "r.h5").read_bytes() == kept
    save(tmp_path / "x.npy", values)
    assert ask("x.npy", "--name", "young").returncode == 0
    with h5py.File(tmp_path / "r.h5") as file:
        assert "source_bytes" not in file["clusters/young"].attrs


# --- HDF5 -----------------------------------------------------------------------------------------

@pytest.mark.deep
def test_datasets_equal_npy(ask, tmp_path, rows):
    """The result is the same for rows from a dataset and from .npy, in memory and streamed."""
    save(tmp_path / "x.npy", rows.astype("f8") / 7)
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file.create_dataset("a/rows", data=rows.astype("f8") / 7, chunks=(11, 3), compression=4)
        file["nan"] = numpy.full((5, 2), numpy.nan, "f4")
        file["none"] = numpy.zeros((0, 4), "f4")
        file["huge"] = file.create_dataset("big", (2**40, 64), "f4", chunks=(64, 64))
    contents = []
    for name, source, options in (("npy", "x.npy", ()), ("hdf5", "f.h5:/a/rows", ()),
                                  ("streamed", "f.h5:/a/rows", ("--device-memory", "4K"))):
        result = ask(source, "--name", name, *options)
        assert result.returncode == 0, result.stderr
        with h5py.File(tmp_path / "r.h5", "r") as file:
            group = file["clusters"][name]
            contents.append([group[key][:].tobytes() for key in sorted(group)] +
                            [group.attrs["inertia"], group.attrs["content"]])
    assert contents[0] == contents[1] == contents[2]
    check_one_error(ask("f.h5:/nan", "--name", "n"), 3, "row 0", "NaN")
    check_one_error(ask("f.h5:/none", "--name", "n"), 3, "no rows")
    check_one_error(ask("f.h5:/a", "--name", "n"), 3, "/a", "/a/rows")
    # A sparse dataset of 256 TiB gives an error line, not a crash.
    result = ask("f.h5:/huge", "--name", "n", "--max-iter", 0)
    assert result.returncode == 3 and len(result.stderr.splitlines()) == 1, result.stderr


def test_unknown_feature(clpipe, finished, tmp_path):
    for extra in ((), ("-o", "r.h5")):
        check_one_error(clpipe("cluster", finished, "-k", 2, "--feature", "none", *extra), 2,
                        "no feature 'none'", "rgb_8x8x8", "counts")
    check_one_error(clpipe("cluster", f"{finished}:/features/none", "-k", 2, "-o", "r.h5"), 2,
                    "no feature 'none'", "rgb_8x8x8")
    nothing_written(tmp_path)


# --- output ---------------------------------------------------------------------------------------

def test_outputs_that_are_not_overwritten(clpipe, tmp_path, rows):
    save(tmp_path / "x.npy", rows.astype("f4"))
    (tmp_path / "notes.txt").write_text("mine")
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["mine"] = [1]
    for name, code, words in (("notes.txt", 3, "is not an HDF5 file; name another output"),
                              ("foreign.h5", 3, "not a clpipe file; name another output"),
                              ("x.npy", 2, "the file is h5, not npy")):
        before = (tmp_path / name).read_bytes()
        result = clpipe("cluster", "x.npy", "-k", 4, "-o", name, "--force")
        check_one_error(result, code, name, words)
        assert (tmp_path / name).read_bytes() == before
    check_one_error(clpipe("cluster", "x.npy", "-k", 4, "-o", "no/r.h5"), 3, "no/r.h5")
    nothing_written(tmp_path, "x.npy", "notes.txt", "foreign.h5")


def test_more_iterations_than_memory(ask, tmp_path, rows):
    """A limit on iterations that is never reached needs no memory."""
    save(tmp_path / "x.npy", rows.astype("f4"))
    assert ask("x.npy", "--max-iter", 2**32 - 1).returncode == 0
