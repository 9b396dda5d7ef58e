"""tools/python: the package reads clpipe files, and the features that it adds equal those of clpipe import."""

import inspect
import os
import shutil
import subprocess
import sys
import venv

import h5py
import numpy
import pytest

from conftest import CLPIPE, ROOT, run_clpipe

PACKAGE = ROOT / "tools" / "python"
sys.path.insert(0, str(PACKAGE))
import clpipe as package  # noqa: E402


@pytest.fixture(autouse=True)
def program_by_environment(monkeypatch, program):
    monkeypatch.setenv("CLPIPE", str(CLPIPE))


@pytest.fixture
def file(finished, tmp_path):
    return shutil.copy(finished, tmp_path / "photos.h5")


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas")


def table(file, what, *more):
    """Returns the program's own table as text."""
    import csv
    import io
    result = run_clpipe("export", file, "--what", what, *more)
    assert result.returncode == 0, result.stderr
    return list(csv.DictReader(io.StringIO(result.stdout)))


# --- arrays and paths, without pandas ---------------------------------------------------------------

def test_arrays(file, mixed):
    with package.open(file) as f, h5py.File(file) as h5:
        assert (len(f), f.format) == (13, int(h5.attrs["clpipe_format"]))
        assert f.sources == [str(mixed)]
        assert f.feature_names == ["counts", "rgb_8x8x8"] and f.clustering_names == ["kmeans"]
        assert (f.feature("counts") == h5["features/counts"][:]).all()
        assert (f.feature("counts", slice(2, 4)) == h5["features/counts"][2:4]).all()
        assert (f.centroids() == h5["clusters/kmeans/centroids"][:]).all()
        assert f.codes().shape == (13, 32) and f.codes().dtype == numpy.uint8
        assert f.paths() == list(h5["images/path"].asstr())
        assert f.paths(absolute=True) == [f"{mixed}/{path}" for path in f.paths()]
        assert all(os.path.isfile(path) for path in f.paths(absolute=True))
        assert "features" in f.parameters or f.parameters


def test_paths_of_lists_and_files(photos, tmp_path, monkeypatch):
    """Relative sources are looked up in `root`; bytes that are not UTF-8 are kept."""
    shutil.copytree(photos, tmp_path / "photos")
    odd = os.fsencode(tmp_path) + b"/photos/r\xe9d.png"
    shutil.copy(photos / "red" / "00.png", odd)
    (tmp_path / "list").write_text("photos/red/00.png\n")
    result = run_clpipe("ingest", "@list", "photos", "photos/green/01.jpg", "-o", "f.h5", "--feature",
                        "gray:bins=4", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    monkeypatch.chdir("/")
    with package.open(tmp_path / "f.h5", root=tmp_path) as f:
        files = f.paths(absolute=True)
        assert all(os.path.isfile(path) for path in files)
        assert files[0] == f"{tmp_path}/photos/red/00.png"
        assert odd in [os.fsencode(path) for path in files]
        assert files[-1] == f"{tmp_path}/photos/green/01.jpg"


def test_thumbnails(photos, tmp_path):
    made = run_clpipe("ingest", photos, "-o", tmp_path / "f.h5", "--feature", "gray:bins=4",
                      "--thumbnails", 32)
    assert made.returncode == 0, made.stderr
    import io
    from PIL import Image
    with package.open(tmp_path / "f.h5") as f:
        for row in (0, 5, -1):
            assert max(Image.open(io.BytesIO(f.thumbnail(row))).size) == 32
        with pytest.raises(IndexError):
            f.thumbnail(13)


def test_errors(file, tmp_path):
    with pytest.raises(package.Error, match="there is no file"):
        package.open(tmp_path / "none.h5")
    h5py.File(tmp_path / "other.h5", "w").close()
    with pytest.raises(package.Error, match="not a clpipe file"):
        package.open(tmp_path / "other.h5")
    (tmp_path / "text.h5").write_text("text")
    with pytest.raises(package.Error, match="text.h5 is not an HDF5 file"):
        package.open(tmp_path / "text.h5")
    with pytest.raises(package.Error, match="cannot read .*: Is a directory"):
        package.open(tmp_path)
    with h5py.File(file, "r+"), pytest.raises(package.Error, match="open for writing; close it there$"):
        code = f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); import clpipe; clpipe.open({str(file)!r})"
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        raise package.Error(result.stderr.splitlines()[-1])
    with h5py.File(file, "r+") as f:
        f.attrs["clpipe_format"] = numpy.int32(99)
    with pytest.raises(package.Error, match="format 99"):
        package.open(file)


def test_names(file):
    with package.open(file) as f:
        with pytest.raises(package.Error, match="counts, rgb_8x8x8"):
            f.feature()
        with pytest.raises(package.Error, match="'none': there are counts"):
            f.feature("none")
        with pytest.raises(package.Error, match="no thumbnails"):
            f.thumbnail(0)


def test_rows(file):
    """Row numbers in any order, single numbers, masks, reversed slices, and numbers out of range."""
    with package.open(file) as f:
        whole = f.feature("counts")
        for rows in ([7, 2, 2, 5], numpy.array([12, 0]), -1, 3, numpy.int64(4), slice(None, None, -2), slice(1, 99),
                     numpy.arange(13) % 3 == 0, [], range(4, 1, -1)):
            wanted = whole[list(rows) if isinstance(rows, range) else rows]
            assert f.feature("counts", rows).shape == wanted.shape and (f.feature("counts", rows) == wanted).all()
        for rows in (13, -14, [1, 13]):
            with pytest.raises(package.Error, match="has the rows 0 to 12") as error:
                f.feature("counts", rows)
            assert isinstance(error.value, IndexError)


def test_after_close(file):
    f = package.open(file)
    f.close()
    f.close()
    for ask in (f.images, f.paths, f.feature, f.labels, f.codes, f.runs, lambda: len(f), lambda: f.sources,
                lambda: f.preset, lambda: f.feature_names, lambda: f.thumbnail(0), lambda: f.hdf5):
        with pytest.raises(package.Error, match="photos.h5 is closed$"):
            ask()


def test_preset(photos, tmp_path):
    """The joined feature has the name "preset"."""
    made = run_clpipe("ingest", photos, "-o", tmp_path / "f.h5", "--preset", "color", feature=None)
    assert made.returncode == 0, made.stderr
    with package.open(tmp_path / "f.h5") as f:
        assert f.feature_names == [*(part["name"] for part in f.preset["features"]), "preset"]
        whole = f.feature("preset")
        assert (f.feature() == whole).all() and (f.feature("preset", [3, 1]) == whole[[3, 1]]).all()
        assert numpy.allclose(f.feature("preset", 2), whole[2])


def test_merged_file_without_a_part(photos, tmp_path):
    """HDF5 would silently return fill values for its rows."""
    for name, source in (("a.h5", "red"), ("b.h5", "green")):
        assert run_clpipe("ingest", photos / source, "-o", tmp_path / name, "--feature", "gray:bins=4").returncode == 0
    assert run_clpipe("merge", "a.h5", "b.h5", "-o", "all.h5", cwd=tmp_path).returncode == 0
    with package.open(tmp_path / "all.h5") as f:
        assert f.feature().sum() > 0
    (tmp_path / "b.h5").rename(tmp_path / "c.h5")
    with pytest.raises(package.Error, match="all.h5 was merged from .*b.h5, which is missing or has changed"):
        package.open(tmp_path / "all.h5")


def test_docs():
    """docs/python.md documents each public name, except for commands, and the signature of each method."""
    text = (ROOT / "docs" / "python.md").read_text()
    elsewhere = ("FeatureDataset", "ThumbnailDataset", "KMeans", "MiniBatchKMeans", "NearestNeighbors", "features")
    names = {name: None if name in elsewhere else getattr(package, name, None)
             for name in package.__all__ if name not in ("Common", "Error", "Failed", "File", "Report", *package._commands.__all__)}
    names.update((name, value) for name, value in vars(package.File).items() if not name.startswith("_"))
    for name, value in names.items():
        assert f"`{name}" in text, name
        if not callable(value):
            continue
        parameters = [parameter.replace(annotation=parameter.empty) for parameter in
                      inspect.signature(value).parameters.values() if parameter.name != "self"]
        assert f"{name}{str(inspect.Signature(parameters)).replace('()', '(')}" in text, name


def test_without_codes(file):
    with h5py.File(file, "r+") as f:
        for name in ("checksums", "images/code"):
            if name in f:
                del f[name]
    with package.open(file) as f:
        assert f.format == 3 and len(f) == 13 and f.feature("counts").shape == (13, 100)
        with pytest.raises(package.Error, match="add-codes"):
            f.codes()


# --- writing ---------------------------------------------------------------------------------------

@pytest.mark.deep
def test_write_feature(file):
    rows = numpy.random.default_rng(1).normal(size=(13, 7))
    package.write_feature(file, "x", rows)
    with package.open(file) as f:
        names = f.paths()
        assert f.feature("x").tobytes() == rows.astype("f4").tobytes()
        assert f.clustering_names == ["kmeans"]
    package.write_feature(file, "y", rows[::-1], paths=names[::-1])
    with package.open(file) as f:
        assert (f.feature("y") == f.feature("x")).all()
    assert run_clpipe("verify", file).returncode == 0
    before = open(file, "rb").read()
    masked = numpy.ma.masked_array(rows, rows > 1)
    for arguments, code, text in (
            ((file, "x", rows + 1), 2, "already has an imported feature.*replace=True"),
            ((file, "z", masked), 2, "values are masked"), ((file, "z", list(masked)), 2, "values are masked"),
            ((file, "z", rows[1:]), 3, "12 rows"), ((file, "z", rows[0]), 3, "1 dimension"),
            ((file, "z", [[None]]), 2, "objects"), ((file, "a/b", rows), 2, "a/b"),
            (("none.h5", "z", rows), 2, "there is no file")):
        with pytest.raises(package.Error, match=text) as error:
            package.write_feature(*arguments)
        assert error.value.code == code
    assert open(file, "rb").read() == before
    package.write_feature(file, "x", rows + 1, replace=True)
    package.write_feature(file, "w", numpy.ma.masked_array(rows))
    with pytest.raises(package.Error, match="allow_missing=True gives"):
        package.write_feature(file, "z", rows[2:], paths=names[2:])
    assert "--" not in str(pytest.raises(package.Error, package.write_feature, file, "x", rows).value)
    package.write_feature(file, "z", rows[2:], paths=names[2:], allow_missing=True)
    with package.open(file) as f:
        assert numpy.isnan(f.feature("z")[:2]).all() and not numpy.isnan(f.feature("z")[2:]).any()


def test_write_from_a_file(file, tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.ones((13, 2), "f4"))
    package.write_feature(file, "x", tmp_path / "x.npy")
    with package.open(file) as f:
        assert (f.feature("x") == 1).all()


def test_remove_and_rename(file):
    package.rename(file, "kmeans", "by-colour")
    with package.open(file) as f:
        assert f.clustering_names == ["by-colour"]
    package.remove(file, "clusters/by-colour")
    with package.open(file) as f:
        assert f.clustering_names == []
    with pytest.raises(package.Error, match="neither clusterings"):
        package.remove(file, "none")


def test_without_the_program(file, monkeypatch):
    monkeypatch.delenv("CLPIPE")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(package.Error, match="not on the PATH"):
        package.write_feature(file, "x", numpy.ones((13, 2)))


# --- data frames -----------------------------------------------------------------------------------

def test_without_pandas(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with package.open(file) as f, pytest.raises(ImportError, match="pip install pandas"):
        f.images()


def test_images_and_failures(pandas, file, mixed):
    with package.open(file) as f:
        images, failures = f.images(absolute=True), f.failures()
    expected = table(file, "images")
    for column in ("path", "source", "format", "digest"):
        assert list(images[column]) == [row[column] for row in expected]
    for column in ("width", "height", "orientation", "channels", "bytes"):
        assert list(images[column]) == [int(row[column]) for row in expected]
    assert [time.value for time in images["mtime"]] == [int(row["mtime_ns"]) for row in expected]
    assert list(images["file"]) == [f"{mixed}/{row['path']}" for row in expected]
    expected = table(file, "failures")
    for column in ("path", "reason", "message"):
        assert list(failures[column]) == [row[column] for row in expected]


def test_labels_and_clusters(pandas, file):
    with package.open(file) as f:
        labels, clusters, clusterings = f.labels(), f.clusters("kmeans"), f.clusterings()
    expected = table(file, "labels")
    assert list(labels["path"]) == [row["path"] for row in expected]
    assert list(labels["label"]) == [int(row["label"]) for row in expected]
    assert numpy.allclose(labels["distance"], [float(row["distance"]) for row in expected], rtol=1e-6)
    expected = table(file, "clusters")
    assert list(clusters["size"]) == [int(row["size"]) for row in expected]
    assert list(clusters["nearest_1"]) == [row["nearest_1"] for row in expected]
    assert list(clusterings["name"]) == ["kmeans"] and list(clusterings["k"]) == [3]


def test_features_frame(pandas, file):
    with package.open(file) as f:
        frame = f.features("counts")
        assert frame.shape == (13, 100) and list(frame.index) == f.paths()
        assert (frame["counts_3"].to_numpy() == f.feature("counts")[:, 3]).all()


def test_neighbours(pandas, file):
    if run_clpipe("similar", file, "--all", "-n", 3, "--feature", "rgb_8x8x8").returncode != 0:
        pytest.skip("this build has no clpipe similar")
    with package.open(file) as f, h5py.File(file) as h5:
        assert f.neighbour_names == ["rgb_8x8x8"]
        frame = f.neighbours()
        assert len(frame) == 39 and list(frame["rank"][:3]) == [1, 2, 3]
        assert (f.neighbour_rows() == h5["neighbours/rgb_8x8x8/rows"][:]).all()
        assert list(frame["neighbour"]) == list(h5["neighbours/rgb_8x8x8/rows"][:].ravel())
        paths = f.paths()
        assert list(frame["neighbour_path"]) == [paths[row] for row in frame["neighbour"]]
        assert not (frame["row"] == frame["neighbour"]).any()


@pytest.mark.deep
def test_names_that_are_not_utf8(pandas, photos, tmp_path):
    """Such names are correct in all tables, whatever pandas does with text."""
    os.makedirs(tmp_path / "p")
    odd = os.fsencode(tmp_path / "p") + b"/r\xe9d.png"
    shutil.copy(photos / "red" / "00.png", odd)
    shutil.copy(photos / "red" / "00.png", tmp_path / "p" / "a\u202e.png")
    for name in (b"/\xff.png", b"/plain.png"):
        open(os.fsencode(tmp_path / "p") + name, "wb").close()
    assert run_clpipe("ingest", "p", "-o", "f.h5", "--feature", "gray:bins=4", cwd=tmp_path).returncode == 1
    assert run_clpipe("cluster", "f.h5", "-k", 1, cwd=tmp_path).returncode == 0
    assert run_clpipe("similar", "f.h5", "--all", "-n", 1, cwd=tmp_path).returncode == 0
    with package.open(tmp_path / "f.h5", root=tmp_path) as f:
        files = f.paths(absolute=True)
        assert odd in [os.fsencode(path) for path in files]
        for frame in (f.images(True), f.labels(absolute=True)):
            assert list(frame["file"]) == files and frame["path"][1] == "r\\xe9d.png"
        assert [os.fsencode(path)[-5:] for path in f.failures(True)["file"]] == [b"n.png", b"\xff.png"]
        assert list(f.features(absolute=True).index) == files
        assert set(f.clusters(absolute=True)["nearest_1"]) <= set(files)
        assert set(f.clusters(absolute=True)["nearest_3"]) == {None}
        assert list(f.neighbours(absolute=True)["path"]) == files
        assert set(f.neighbours(absolute=True)["neighbour_path"]) <= set(files)
        for what in package._reader.TABLES:
            assert len(f.table(what, absolute=True))


def test_runs(pandas, file):
    with package.open(file) as f:
        assert "ingest" in f.runs()["command"][0]


def test_other_data(pandas, tmp_path):
    """Clusters of a matrix whose rows have paths, and of one without paths."""
    rows = numpy.random.default_rng(3).normal(size=(9, 4)).astype("f4")
    numpy.save(tmp_path / "m.npy", rows)
    (tmp_path / "paths").write_text("".join(f"a/{i}.jpg\n" for i in range(9)))
    for name, more in (("plain.h5", ()), ("named.h5", ("--paths", "paths"))):
        assert run_clpipe("cluster", "m.npy", "-k", 2, "-o", name, *more, cwd=tmp_path).returncode == 0
    with package.open(tmp_path / "plain.h5") as f:
        assert len(f) == 0 and f.paths() == [] and list(f.labels()["row"]) == list(range(9))
        assert f.clusters()["nearest_1"].dtype.kind in "iO"
        with pytest.raises(package.Error, match="clusters of other data"):
            f.images()
    with package.open(tmp_path / "named.h5", root=tmp_path) as f:
        assert list(f.labels(absolute=True)["file"]) == [f"{tmp_path}/a/{i}.jpg" for i in range(9)]
        assert list(f.images().columns) == ["path", "source"]


def test_parquet(pandas, file, tmp_path):
    pytest.importorskip("pyarrow")
    with package.open(file) as f:
        for what, name in (("images", None), ("failures", None), ("labels", "kmeans"),
                           ("clusters", None), ("features", "counts"), ("runs", None)):
            f.to_parquet(tmp_path / "t.parquet", what, name)
            back, wanted = pandas.read_parquet(tmp_path / "t.parquet"), f.table(what, name)
            assert list(back.columns) == list(wanted.columns) and len(back) == len(wanted)
            for column in back.columns:
                assert list(back[column]) == list(wanted[column])
        f.to_parquet(tmp_path / "t.parquet", "labels", absolute=True)
        assert list(pandas.read_parquet(tmp_path / "t.parquet")["file"]) == f.paths(absolute=True)
        with pytest.raises(package.Error, match="there is no table 'none'"):
            f.to_parquet(tmp_path / "none.parquet", "none")
    assert sorted(os.listdir(tmp_path)) == ["photos.h5", "t.parquet"]


# --- the package itself ----------------------------------------------------------------------------

@pytest.mark.slow
def test_types():
    """mypy reports nothing in strict mode."""
    if subprocess.run([sys.executable, "-m", "mypy", "--version"], capture_output=True).returncode != 0:
        pytest.skip("mypy is not installed")
    result = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "clpipe"],
                            cwd=PACKAGE, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


@pytest.mark.slow
def test_installed(file, tmp_path):
    """pip installs the package without network access and with the marker for type checkers."""
    for module in ("setuptools", "wheel"):
        pytest.importorskip(module)
    shutil.copytree(PACKAGE, tmp_path / "source", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    try:
        venv.create(tmp_path / "env", with_pip=True, system_site_packages=True)
    except (subprocess.CalledProcessError, SystemExit):
        pytest.skip("venv cannot be made: python3-venv is not installed")
    python = tmp_path / "env" / "bin" / "python"
    done = subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--no-build-isolation",
                           "--no-deps", tmp_path / "source"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    code = ("import clpipe, pathlib; place = pathlib.Path(clpipe.__file__).parent; "
            "assert (place / 'py.typed').exists() and 'env' in place.parts; "
            f"print(len(clpipe.open({str(file)!r})))")
    result = subprocess.run([python, "-c", code], cwd="/", capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "13\n"), result.stderr
