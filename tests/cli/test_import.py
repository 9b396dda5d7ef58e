"""clpipe import stores rows that were computed elsewhere, matched to the images by order or by path."""

import json
import os
import shutil

import h5py
import numpy
import pytest

from conftest import CLPIPE, check_one_error, digest, run_clpipe

DIMENSION = 24


@pytest.fixture
def file(finished, tmp_path):
    """A file of thirteen images, which tests may change."""
    return shutil.copy(finished, tmp_path / "photos.h5")


def paths_of(file):
    with h5py.File(file) as f:
        return [os.fsdecode(path) for path in f["images/path"][:]]


def draw_rows(count, seed=3):
    return numpy.random.default_rng(seed).normal(size=(count, DIMENSION)).astype("f4")


def save(directory, name, rows):
    numpy.save(directory / name, rows)
    return directory / name


def write_list(path, names, separator="\n"):
    path.write_bytes(b"".join(os.fsencode(name) + separator.encode() for name in names))
    return path


def unchanged(file):
    """The bytes of a file and the names in its directory, to compare them before and after."""
    return file.read_bytes(), sorted(os.listdir(file.parent))


def check_refused(clpipe, file, arguments, code, *parts):
    before = unchanged(file)
    check_one_error(clpipe("import", file, *arguments), code, *parts)
    assert unchanged(file) == before


# --- what is stored ------------------------------------------------------------------------------

def test_by_order(clpipe, file, tmp_path):
    rows = draw_rows(13)
    result = clpipe("import", file, f"clip={save(tmp_path, 'clip.npy', rows)}")
    assert (result.returncode, result.stderr) == (0, "")
    assert "24 values for each of 13 images" in result.stdout
    assert "--metric cosine" in result.stdout
    with h5py.File(file) as f:
        feature = f["features/clip"]
        assert (feature.dtype, feature.chunks) == (numpy.float32, None)
        assert feature[:].tobytes() == rows.tobytes()
        attributes = dict(feature.attrs)
        assert (attributes["spec"], attributes["kind"]) == ("imported", "imported")
        assert attributes["imported_from"] == "clip.npy"
        assert attributes["imported_digest"].startswith("rows1-")
        assert [feature.dims[i][0].name for i in (0, 1)] == ["/image", "/feature_clip"]
    assert clpipe("verify", file).returncode == 0
    assert "imported" in clpipe("info", file).stdout


@pytest.mark.parametrize("dtype", ["f2", "f8", ">f4", "i1", "u2", "i8"])
def test_converted(clpipe, file, tmp_path, dtype):
    rows = (draw_rows(13) * 20).astype(dtype)
    result = clpipe("import", file, f"x={save(tmp_path, 'x.npy', rows)}", "--json", "-")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["type"] == numpy.dtype(dtype).name
    assert (report["images"], report["rows"], report["dimension"]) == (13, 13, DIMENSION)
    with h5py.File(file) as f:
        assert f["features/x"][:].tobytes() == rows.astype("f4").tobytes()
        assert f["features/x"].attrs["imported_digest"] == report["digest"]


def test_reports_the_conversion(clpipe, file, tmp_path):
    rows = draw_rows(13).astype("f8")
    text = clpipe("import", file, f"x={save(tmp_path, 'x.npy', rows)}").stdout
    assert "13 rows of float64, stored as float32" in text


def test_dataset(clpipe, file, tmp_path):
    rows = draw_rows(13)
    with h5py.File(tmp_path / "vectors.h5", "w") as f:
        f.create_dataset("model/vectors", data=rows, chunks=(5, 7), compression="gzip")
    result = clpipe("import", file, f"x={tmp_path}/vectors.h5:/model/vectors")
    assert result.returncode == 0, result.stderr
    with h5py.File(file) as f:
        assert f["features/x"][:].tobytes() == rows.tobytes()
        # The directory, which is specific to this machine, is not stored.
        assert f["features/x"].attrs["imported_from"] == "vectors.h5:/model/vectors"


def test_same_digest_by_order_and_by_path(clpipe, file, tmp_path):
    """The digest is that of the matrix, however its rows are matched."""
    matrix = save(tmp_path, "x.npy", draw_rows(13))
    names = write_list(tmp_path / "names", paths_of(file)[::-1])
    found = [json.loads(clpipe("import", file, f"{name}={matrix}", "--json", "-", *more).stdout)
             for name, more in (("a", ()), ("b", ("--paths", names)))]
    assert found[0]["digest"] == found[1]["digest"]


# --- by path -------------------------------------------------------------------------------------

def spelled(file, mixed, how):
    names = paths_of(file)
    if how == "relative":
        return names
    if how == "dots":
        return [f".//{name}" for name in names]
    if how == "source":
        return [f"{mixed}/{name}" for name in names]
    return [os.path.realpath(f"{mixed}/{name}") for name in names]


@pytest.mark.parametrize("how", ["relative", "dots", "source", "absolute"])
@pytest.mark.parametrize("separator", ["\n", "\0"])
def test_by_path(clpipe, file, mixed, tmp_path, how, separator):
    order = numpy.random.default_rng(5).permutation(13)
    rows = draw_rows(13)
    names = spelled(file, mixed, how)
    names = write_list(tmp_path / "names", [names[i] for i in order], separator)
    result = clpipe("import", file, f"x={save(tmp_path, 'x.npy', rows[order])}", "--paths", names)
    assert (result.returncode, result.stderr) == (0, "")
    assert "matched by path" in result.stdout
    with h5py.File(file) as f:
        assert f["features/x"][:].tobytes() == rows.tobytes()


def test_by_path_in_small_memory(clpipe, file, tmp_path):
    """Rows of 1 MiB are gathered in 1 MiB of memory, so there is one block for each image."""
    rows = numpy.arange(13, dtype="f4")[:, None] * numpy.ones((1, 1 << 18), "f4")
    order = numpy.random.default_rng(6).permutation(13)
    names = write_list(tmp_path / "names", [paths_of(file)[i] for i in order])
    result = clpipe("import", file, f"x={save(tmp_path, 'x.npy', rows[order])}", "--paths", names,
                    "--memory", "1M")
    assert result.returncode == 0, result.stderr
    with h5py.File(file) as f:
        assert (f["features/x"][:] == rows).all()


def test_windows_lists(clpipe, file, tmp_path):
    """Line endings and a byte-order mark are not part of the paths."""
    matrix = save(tmp_path, "m.npy", draw_rows(13))
    names = tmp_path / "names"
    names.write_bytes(b"\xef\xbb\xbf" + "".join(f"{path}\r\n" for path in paths_of(file)).encode())
    result = clpipe("import", file, f"x={matrix}", "--paths", names)
    assert result.returncode == 0, result.stderr
    names.write_bytes("\n".join(paths_of(file)).encode("utf-16"))
    check_refused(clpipe, file, [f"y={matrix}", "--paths", names], 3, "UTF-16")


def test_list_on_standard_input(clpipe, file, tmp_path):
    rows = draw_rows(13)
    names = write_list(tmp_path / "names", paths_of(file)[::-1])
    with open(names) as stream:
        result = clpipe("import", file, f"x={save(tmp_path, 'x.npy', rows)}", "--paths", "-",
                        stdin=stream)
    assert result.returncode == 0, result.stderr
    with h5py.File(file) as f:
        assert f["features/x"][:].tobytes() == rows[::-1].tobytes()


@pytest.mark.deep
def test_names_that_are_not_utf8(clpipe, photos, tmp_path):
    directory = tmp_path / "photos"
    shutil.copytree(photos, directory)
    os.rename(directory / "red", os.fsencode(directory) + b"/r\xe9d\nred")
    assert clpipe("ingest", directory, "-o", "f.h5", "--feature", "gray:bins=4").returncode == 0
    names = sorted(os.path.relpath(os.path.join(at, name), os.fsencode(directory))
                   for at, _, files in os.walk(os.fsencode(directory)) for name in files)
    (tmp_path / "names").write_bytes(b"\0".join(names[::-1]))
    rows = draw_rows(13)
    result = clpipe("import", "f.h5", f"x={save(tmp_path, 'x.npy', rows)}", "--paths", "names")
    assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path / "f.h5") as f:
        assert f["features/x"][:].tobytes() == rows[::-1].tobytes()


def test_an_absolute_source_is_not_below_this_directory(clpipe, file, mixed, tmp_path):
    """If a list names the same path below the working directory, it names another file."""
    names = [f"{tmp_path}{mixed}/{name}" for name in paths_of(file)]
    matrix = save(tmp_path, "x.npy", numpy.ones((13, 2), "f4"))
    check_refused(clpipe, file, [f"x={matrix}", "--paths", write_list(tmp_path / "names", names)], 3, "no path in", "belongs to an image")


def test_missing_and_unused(clpipe, file, tmp_path):
    names = paths_of(file)
    rows = draw_rows(14)
    arguments = [f"x={save(tmp_path, 'x.npy', rows)}", "--paths",
                 write_list(tmp_path / "names", names[2:] + ["no/1.jpg", "no/2.jpg", "no/3.jpg"])]
    check_refused(clpipe, file, arguments, 3, "2 images of 13 have no path", names[0], names[1],
                  "--allow-missing")
    result = clpipe("import", file, *arguments, "--allow-missing")
    assert result.returncode == 0
    notices = result.stderr.splitlines()
    assert len(notices) == 2
    assert "2 images have no row" in notices[0] and names[0] in notices[0]
    assert "3 rows belong to no image" in notices[1] and "no/3.jpg" in notices[1]
    with h5py.File(file) as f:
        stored = f["features/x"][:]
    assert numpy.isnan(stored[:2]).all()
    assert stored[2:].tobytes() == rows[:11].tobytes()
    assert clpipe("verify", file).returncode == 0
    clustered = clpipe("cluster", file, "--feature", "x", "-k", 2, "--name", "x")
    check_one_error(clustered, 3, "2 images", "no values", names[0])
    assert clpipe("similar", file, "--all", "--feature", "x", "-n", 2).returncode == 0


# --- errors --------------------------------------------------------------------------------------

BAD_MATRICES = {
    "one row too few": (lambda rows: rows[:-1], "12 rows", "13 images", "--paths"),
    "one row too many": (lambda rows: numpy.vstack([rows, rows[:1]]), "14 rows", "13 images"),
    "one dimension": (lambda rows: rows[0], "1 dimension"),
    "three dimensions": (lambda rows: rows[None], "3 dimensions"),
    "objects": (lambda rows: numpy.array([[None]], object), "numpy.save"),
    "text": (lambda rows: numpy.array([["a"]] * 13), "numpy.save"),
    "no columns": (lambda rows: rows[:, :0], "no columns"),
    "not a number": (lambda rows: numpy.where(rows == rows[7, 3], numpy.nan, rows), "row 7",
                     "column 3", "NaN"),
    "infinite": (lambda rows: numpy.where(rows == rows[7, 3], -numpy.inf, rows), "row 7", "infinite"),
    "too large for float32": (lambda rows: rows.astype("f8") * 1e300, "row 0", "too large"),
}


@pytest.mark.parametrize("what", BAD_MATRICES)
def test_bad_matrix(clpipe, file, tmp_path, what):
    change, *parts = BAD_MATRICES[what]
    matrix = save(tmp_path, "x.npy", change(draw_rows(13)))
    check_refused(clpipe, file, [f"x={matrix}"], 3, "x.npy", *parts)


def test_bad_rows_by_path(clpipe, file, tmp_path):
    """The error names the path of a bad row. Rows that belong to no image are not checked."""
    rows = draw_rows(14)
    rows[4, 1] = rows[13, 0] = numpy.nan
    names = paths_of(file) + ["other.jpg"]
    matrix = save(tmp_path, "x.npy", rows)
    arguments = [f"x={matrix}", "--paths", write_list(tmp_path / "names", names)]
    check_refused(clpipe, file, arguments, 3, f"row 4 ('{names[4]}')", "NaN")
    rows[4, 1] = 0
    save(tmp_path, "x.npy", rows)
    assert clpipe("import", file, *arguments).returncode == 0


def test_bad_lists(clpipe, file, tmp_path):
    names = paths_of(file)
    matrix = f"x={save(tmp_path, 'x.npy', draw_rows(13))}"

    def refused(lines, *parts):
        path = write_list(tmp_path / "names", lines)
        check_refused(clpipe, file, [matrix, "--paths", path], 3, *parts)
    refused(names[:-1], "12 paths", "13 rows")
    refused(names[:-1] + names[:1], "twice", names[0], "rows 0 and 12")
    refused(names[:3] + [""] + names[4:], "path 4 is empty")
    refused([f"{name}.txt" for name in names], "no path", names[0])
    (tmp_path / "names").write_bytes(b"")
    check_refused(clpipe, file, [matrix, "--paths", "names"], 3, "no paths")
    check_refused(clpipe, file, [matrix, "--paths", "none"], 2, "no list of paths none")
    check_refused(clpipe, file, [matrix, "--paths", "."], 2, "directory")


def test_ambiguous(clpipe, photos, tmp_path):
    """Two sources have the same names, so a relative path belongs to two images."""
    for name in ("a", "b"):
        shutil.copytree(photos, tmp_path / name)
    assert clpipe("ingest", "a", "b", "-o", "f.h5", "--feature", "gray:bins=4").returncode == 0
    names = paths_of(tmp_path / "f.h5")
    matrix = f"x={save(tmp_path, 'x.npy', draw_rows(26))}"
    write_list(tmp_path / "names", names[:13] + [f"b/{name}" for name in names[13:]])
    check_refused(clpipe, tmp_path / "f.h5", [matrix, "--paths", "names"], 3, "13 paths", "ambiguous",
                  names[0])
    write_list(tmp_path / "names", [f"b/{name}" for name in names[13:]] +
               [f"{tmp_path}/a/{name}" for name in names[:13]])
    assert clpipe("import", "f.h5", matrix, "--paths", "names").returncode == 0
    with h5py.File(tmp_path / "f.h5") as f:
        rows = draw_rows(26)
        assert f["features/x"][:].tobytes() == numpy.vstack([rows[13:], rows[:13]]).tobytes()


def test_usage(clpipe, file, tmp_path):
    matrix = save(tmp_path, "x.npy", draw_rows(13))
    for argument in ("x.npy", "=x.npy", "x="):
        check_refused(clpipe, file, [argument], 2, "NAME=MATRIX", "import --help")
    check_refused(clpipe, file, [f"a/b={matrix}"], 2, "'a/b'")
    check_refused(clpipe, file, [f"x={matrix}", "--allow-missing"], 2, "--paths")
    check_refused(clpipe, file, ["x=none.npy"], 2, "there is no file none.npy")
    check_refused(clpipe, file, [f"counts={matrix}"], 2, "/features/counts", "another name")
    check_one_error(clpipe("import", matrix, f"x={matrix}"), 3, "not an HDF5 file")


def test_preset_is_the_name_of_joined_features(clpipe, photos, tmp_path):
    """The name is reserved, since clusterings of the preset would be mistaken for those of such a feature."""
    file = tmp_path / "preset.h5"
    for words in (["ingest", photos, "-o", file, "--preset", "color"], ["cluster", file, "-k", 2]):
        assert clpipe(*words, feature=None).returncode == 0
    matrix = save(tmp_path, "x.npy", draw_rows(13))
    check_refused(clpipe, file, [f"preset={matrix}"], 2, "'preset' stands for all features of a preset")
    before = file.read_bytes()
    for more in (["-o", file, "--add"], ["-o", tmp_path / "new.h5"]):
        check_one_error(clpipe("ingest", photos, *more, "--feature", "preset=rgb:bins=2x2x2", feature=None), 2,
                        "'preset' stands for all features of a preset")
    assert file.read_bytes() == before and not (tmp_path / "new.h5").exists()


def test_name_is_taken(clpipe, file, tmp_path):
    first, second = draw_rows(13), draw_rows(13, seed=4)[:, :5]
    assert clpipe("import", file, f"x={save(tmp_path, 'x.npy', first)}").returncode == 0
    for feature in ("x", "x+rgb_8x8x8"):
        assert clpipe("cluster", file, "-k", 2, "--feature", feature, "--name",
                      feature.replace("+", "_")).returncode == 0
    save(tmp_path, "x.npy", second)
    check_refused(clpipe, file, ["x=x.npy"], 2, "imported feature 'x'", "--force")
    result = clpipe("import", file, "x=x.npy", "--force")
    assert result.returncode == 0
    assert result.stderr == "clpipe: notice: 2 clusterings of the earlier 'x' were removed\n"
    with h5py.File(file) as f:
        assert f["features/x"][:].tobytes() == second.tobytes()
        assert list(f["clusters"]) == ["kmeans"]
        assert "cluster_x" not in f and f["feature_x"].shape == (5,)
    assert clpipe("verify", file).returncode == 0


@pytest.mark.deep
@pytest.mark.parametrize("command", [
    ["import", "photos.h5", "x=x.npy"], ["similar", "photos.h5", "--all", "-n", 3, "--feature", "counts"]])
def test_killed_after_the_rename(clpipe, finished, tmp_path, command):
    """Repeating the command then only cleans up."""
    library = CLPIPE.parent / "tests" / "faults.so"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    save(tmp_path, "x.npy", draw_rows(13))
    late = 0
    for nth in range(1, 40):
        shutil.copy(finished, tmp_path / "photos.h5")
        before = (tmp_path / "photos.h5").read_bytes()
        shutil.rmtree(tmp_path / "photos.h5.partial", ignore_errors=True)
        result = clpipe(*command, env={"LD_PRELOAD": library, "CLPIPE_FAULT": f"unlink * {nth} kill"})
        if result.returncode == 0:
            break
        if (tmp_path / "photos.h5").read_bytes() == before:
            continue
        late += 1
        whole = unchanged(tmp_path / "photos.h5")[0]
        result = clpipe(*command)
        assert result.returncode == 0 and "up to date" in result.stdout + result.stderr, result.stderr
        assert unchanged(tmp_path / "photos.h5") == (whole, ["photos.h5", "x.npy"])
    assert late > 0


def test_import_again(clpipe, file, tmp_path):
    """Importing the same rows again, by order or by path, changes nothing and keeps results made
    from them; other rows are refused."""
    rows = draw_rows(13)
    names = write_list(tmp_path / "names", paths_of(file)[::-1])
    assert clpipe("import", file, f"x={save(tmp_path, 'x.npy', rows[::-1])}", "--paths", names).returncode == 0
    assert clpipe("cluster", file, "-k", 2, "--feature", "x", "--name", "x").returncode == 0
    before = unchanged(file)
    for more in ([], ["--force"]):
        report = clpipe("import", file, "x=x.npy", "--paths", names, *more, "--json", "-")
        assert json.loads(report.stdout)["clusterings_removed"] == 0 and unchanged(file) == before
    check_refused(clpipe, file, ["x=x.npy"], 2, "imported feature 'x'", "--force")
    rows[7, 3] = numpy.nextafter(rows[7, 3], numpy.float32(9))
    save(tmp_path, "x.npy", rows[::-1])
    check_refused(clpipe, file, ["x=x.npy", "--paths", names], 2, "imported feature 'x'", "--force")


def test_same_file_after_a_replacement(clpipe, finished, tmp_path):
    """The identity depends on the contents of the file, not on what was replaced before."""
    for name in ("a.h5", "b.h5"):
        shutil.copy(finished, tmp_path / name)
    save(tmp_path, "x.npy", draw_rows(13))
    save(tmp_path, "y.npy", draw_rows(13, seed=9))
    assert clpipe("import", "a.h5", "x=x.npy").returncode == 0
    assert clpipe("import", "b.h5", "x=y.npy").returncode == 0
    assert digest(tmp_path / "a.h5") != digest(tmp_path / "b.h5")
    assert clpipe("import", "b.h5", "x=x.npy", "--force").returncode == 0
    assert digest(tmp_path / "a.h5") == digest(tmp_path / "b.h5")


def test_read_only_directory(clpipe, file, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root can write everywhere")
    matrix = save(tmp_path, "x.npy", draw_rows(13))
    directory = tmp_path / "closed"
    directory.mkdir()
    closed = shutil.move(file, directory / "photos.h5")
    directory.chmod(0o555)
    try:
        check_refused(clpipe, closed, [f"x={matrix}"], 3, "cannot write")
    finally:
        directory.chmod(0o755)


def test_full_disk(clpipe, file, tmp_path):
    """A limit on the size of files simulates a full disk."""
    import resource
    matrix = save(tmp_path, "x.npy", numpy.zeros((13, 1 << 16), "f4"))
    before = unchanged(file)
    limit = file.stat().st_size + (1 << 20)

    def lower():
        import signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    result = clpipe("import", file, f"x={matrix}", preexec_fn=lower)
    check_one_error(result, 3, "photos.h5")
    assert unchanged(file) == before


# --- imported rows in other commands ---------------------------------------------------------------

def test_like_any_feature(clpipe, file, tmp_path):
    """Clusters of imported rows equal those of the same rows in a .npy file; assign and export accept the rows."""
    random = numpy.random.default_rng(8)
    rows = (random.normal(size=(13, DIMENSION)) + 9 * random.integers(0, 2, (13, 1))).astype("f4")
    save(tmp_path, "x.npy", rows)
    assert clpipe("import", file, "x=x.npy").returncode == 0
    assert clpipe("cluster", "x.npy", "-k", 2, "-o", "r.h5").returncode == 0
    result = clpipe("cluster", file, "--feature", "x", "-k", 2, "--name", "x")
    assert result.returncode == 0 and "by x (euclidean)" in result.stdout
    with h5py.File(tmp_path / "r.h5") as expected, h5py.File(file) as f:
        for part in ("labels", "centroids", "distances"):
            assert f["clusters/x"][part][:].tobytes() == \
                expected["clusters/kmeans"][part][:].tobytes()
    exported = clpipe("export", file, "--what", "features", "--feature", "x", "-o", "back.npy")
    assert exported.returncode == 0, exported.stderr
    assert numpy.load(tmp_path / "back.npy").tobytes() == rows.tobytes()
    assert clpipe("export", file, "--what", "tree", "--name", "x", "--to", "tree").returncode == 0
    assert sum(path.is_symlink() for path in (tmp_path / "tree").rglob("*")) == 13
    assert clpipe("assign", "r.h5", file, "--feature", "x").returncode in (0, 2)
    assert clpipe("verify", file).returncode == 0


@pytest.mark.deep
def test_assign_by_the_name(clpipe, file, tmp_path):
    """Only the name of the feature tells which model made the vectors."""
    random = numpy.random.default_rng(8)
    for name in "abc":
        save(tmp_path, f"{name}.npy", random.random((13, DIMENSION), dtype="f4"))
    shutil.copy(file, tmp_path / "other.h5")
    assert clpipe("import", file, "clip=a.npy").returncode == 0
    assert clpipe("import", "other.h5", "clip=b.npy").returncode == 0
    assert clpipe("import", "other.h5", "dino=c.npy").returncode == 0
    assert clpipe("cluster", file, "--feature", "clip", "-k", 2, "--force").returncode == 0
    given = clpipe("assign", file, "other.h5", "--force")
    assert given.returncode == 0 and "whether the same model made them is unknown" in given.stderr
    check_one_error(clpipe("assign", file, "other.h5", "--feature", "dino"), 3, "clip", "dino",
                    "under the same name")


def test_update_moves_the_rows(clpipe, photos, tmp_path):
    """A new image has no values and no label, wherever its row is inserted."""
    shutil.copytree(photos, tmp_path / "photos")
    assert clpipe("ingest", "photos", "-o", "f.h5", "--feature", "gray:bins=4").returncode == 0
    rows = draw_rows(13)
    save(tmp_path, "x.npy", rows)
    assert clpipe("import", "f.h5", "x=x.npy").returncode == 0
    assert clpipe("cluster", "f.h5", "--feature", "x", "-k", 2).returncode == 0
    with h5py.File(tmp_path / "f.h5") as f:
        labels = f["clusters/kmeans/labels"][:]
    shutil.copy(photos / "red" / "00.png", tmp_path / "photos" / "a.png")
    result = clpipe("ingest", "photos", "-o", "f.h5")
    assert result.returncode == 0 and "NaN" in result.stderr
    with h5py.File(tmp_path / "f.h5") as f:
        assert f["images/path"].asstr()[0] == "a.png"
        assert numpy.isnan(f["features/x"][0]).all()
        assert f["features/x"][1:].tobytes() == rows.tobytes()
        assert f["features/x"].attrs["imported_from"] == "x.npy"
        assert list(f["clusters/kmeans/labels"][:]) == [-1, *labels]
    assert clpipe("verify", "f.h5").returncode == 0
    check_one_error(clpipe("cluster", "f.h5", "--feature", "x", "-k", 2, "--name", "y"), 3, "1 image",
                    "a.png")
