"""cluster and assign with --paths: the rows of a matrix have names."""

import csv
import io
import os
import shutil

import h5py
import numpy
import pytest

from conftest import check_one_error


@pytest.fixture
def matrix(tmp_path, photos):
    """Thirteen rows that identify the folder of each picture; rows and paths are in tmp_path."""
    names = sorted(str(path.relative_to(photos)) for path in photos.rglob("*") if path.is_file())
    folders = sorted({os.path.dirname(name) for name in names})
    random = numpy.random.default_rng(4)
    centres = 8 * random.normal(size=(len(folders), 6))
    rows = numpy.array([centres[folders.index(os.path.dirname(name))] for name in names])
    numpy.save(tmp_path / "m.npy", (rows + random.normal(size=rows.shape)).astype("f4"))
    (tmp_path / "paths.txt").write_text("".join(f"{photos}/{name}\n" for name in names))
    return [f"{photos}/{name}" for name in names]


def test_names_are_kept(clpipe, matrix, photos, tmp_path):
    result = clpipe("cluster", "m.npy", "--paths", "paths.txt", "-k", 3, "-o", "r.h5")
    assert (result.returncode, result.stderr) == (0, "")
    assert "3 clusters of 13 images" in result.stdout
    assert "folders     3: purity 1.000" in result.stdout
    assert "row " not in result.stdout
    with h5py.File(tmp_path / "r.h5") as f:
        assert sorted(f["images"]) == ["directories", "path", "source", "sources"]
        assert list(f["images/path"].asstr()) == matrix
        assert list(f["images/sources"].asstr()) == ["@paths.txt"]
        assert f["clusters/kmeans/labels"].dims[0][0].name == "/image"
        labels = f["clusters/kmeans/labels"][:]
    assert clpipe("verify", "r.h5").returncode == 0
    assert "images    13" in clpipe("info", "r.h5").stdout
    table = list(csv.reader(io.StringIO(clpipe("export", "r.h5", "--what", "labels").stdout)))
    assert [(row[0], int(row[2])) for row in table[1:]] == list(zip(matrix, labels))
    assert clpipe("export", "r.h5", "--what", "images").stdout.splitlines() == \
        ["path,source"] + [f"{path},@paths.txt" for path in matrix]
    assert clpipe("export", "r.h5", "--what", "tree", "--to", "tree").returncode == 0
    found = {os.path.realpath(entry) for entry in (tmp_path / "tree").rglob("*") if entry.is_symlink()}
    assert found == {os.path.realpath(path) for path in matrix}


def test_same_clusters_as_without(clpipe, matrix, tmp_path):
    assert clpipe("cluster", "m.npy", "-k", 3, "-o", "plain.h5").returncode == 0
    assert clpipe("cluster", "m.npy", "--paths", "paths.txt", "-k", 3, "-o", "r.h5").returncode == 0
    with h5py.File(tmp_path / "plain.h5") as plain, h5py.File(tmp_path / "r.h5") as named:
        for part in plain["clusters/kmeans"]:
            assert plain["clusters/kmeans"][part][:].tobytes() == \
                named["clusters/kmeans"][part][:].tobytes()


@pytest.mark.deep
def test_further_clusterings(clpipe, matrix, tmp_path):
    first = ("cluster", "m.npy", "--paths", "paths.txt", "-k", 3, "-o", "r.h5")
    assert clpipe(*first).returncode == 0
    assert "up to date" in clpipe(*first).stdout
    assert clpipe(*first, "--name", "two", "-k", 2).returncode == 0
    with h5py.File(tmp_path / "r.h5") as f:
        assert list(f["clusters"]) == ["kmeans", "two"]
        assert list(f["images/path"].asstr()) == matrix
    before = (tmp_path / "r.h5").read_bytes()
    check_one_error(clpipe("cluster", "m.npy", "-k", 3, "-o", "r.h5", "--name", "x"), 2, "paths")
    (tmp_path / "other.txt").write_text("".join(f"{path}\n" for path in matrix[::-1]))
    check_one_error(clpipe("cluster", "m.npy", "--paths", "other.txt", "-k", 3, "-o", "r.h5",
                           "--name", "x"), 2, "other paths")
    assert clpipe("cluster", "m.npy", "-k", 3, "-o", "plain.h5").returncode == 0
    check_one_error(clpipe("cluster", "m.npy", "--paths", "paths.txt", "-k", 3, "-o", "plain.h5",
                           "--name", "x"), 2, "no paths")
    assert (tmp_path / "r.h5").read_bytes() == before


def test_assign(clpipe, matrix, tmp_path):
    assert clpipe("cluster", "m.npy", "-k", 3, "-o", "r.h5").returncode == 0
    result = clpipe("assign", "r.h5", "m.npy", "--paths", "paths.txt", "-o", "new.h5")
    assert result.returncode == 0 and "13 images" in result.stdout
    with h5py.File(tmp_path / "r.h5") as r, h5py.File(tmp_path / "new.h5") as new:
        assert list(new["images/path"].asstr()) == matrix
        assert (new["clusters/kmeans/labels"][:] == r["clusters/kmeans/labels"][:]).all()
    assert clpipe("verify", "new.h5").returncode == 0


def test_paths_that_are_not_utf8(clpipe, matrix, tmp_path):
    raw = [os.fsencode(path).replace(b"red", b"r\xe9d\n") for path in matrix]
    (tmp_path / "paths.txt").write_bytes(b"\0".join(raw))
    assert clpipe("cluster", "m.npy", "--paths", "paths.txt", "-k", 3, "-o", "r.h5").returncode == 0
    with h5py.File(tmp_path / "r.h5") as f:
        paths = [text.replace(b"\\xe9", b"\xe9") for text in f["images/path"][:]]
    assert paths == raw
    assert clpipe("verify", "r.h5").returncode == 0


def test_refused(clpipe, matrix, finished, tmp_path):
    (tmp_path / "short.txt").write_text("".join(f"{path}\n" for path in matrix[1:]))
    (tmp_path / "twice.txt").write_text("".join(f"{path}\n" for path in matrix[1:] + matrix[1:2]))
    for name, code, *parts in (("short.txt", 3, "12 paths", "13 rows"), ("twice.txt", 3, "twice"),
                               ("none.txt", 2, "no list of paths none.txt")):
        check_one_error(clpipe("cluster", "m.npy", "--paths", name, "-k", 3, "-o", "r.h5"), code, *parts)
    shutil.copy(finished, tmp_path / "f.h5")
    check_one_error(clpipe("cluster", "f.h5", "--feature", "rgb_8x8x8", "--paths", "paths.txt", "-k", 2),
                    2, "f.h5 is a clpipe file", "paths")
    assert not (tmp_path / "r.h5").exists()


def test_report_shows_them(clpipe, matrix, tmp_path):
    """Such rows have only paths, so the files are accepted without comparing size and time."""
    assert clpipe("cluster", "m.npy", "--paths", "paths.txt", "-k", 3, "-o", "r.h5").returncode == 0
    result = clpipe("report", "r.h5", "-o", "pages")
    assert result.returncode == 0, result.stderr
    assert "13 images" in result.stdout and "missing" not in result.stdout


@pytest.mark.parametrize("count, size, filter", [(1024, 32768, None), (1024, 32767, "gzip"), (1023, 9000, None)])
def test_short_texts_are_compressed(clpipe, tmp_path, count, size, filter):
    """Texts of 64 KiB or more are compressed if together they take less than half of the space that the
    longest text requires in each row."""
    short, extra = divmod(size - 64, count - 1)
    names = [f"{i:0{64 if i == 0 else short + (i <= extra)}}" for i in range(count)]
    assert sum(map(len, names)) == size and len(set(names)) == count
    (tmp_path / "paths.txt").write_text("\n".join(names) + "\n")
    numpy.save(tmp_path / "x.npy", numpy.arange(count, dtype="f4")[:, None])
    result = clpipe("cluster", "x.npy", "--paths", "paths.txt", "-k", 1, "-o", "x.h5")
    assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path / "x.h5") as f:
        assert f["images/path"].dtype.itemsize == 64 and f["images/path"].compression == filter
        assert list(f["images/path"].asstr()) == names
