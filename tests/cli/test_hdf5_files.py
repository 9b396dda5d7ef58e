"""HDF5 files of other programs: missing objects, objects in a newer format, and files that others have open."""

import os
import shutil
import struct
import subprocess
import sys

import h5py
import numpy
import pytest

from conftest import check_one_error

HELD = "another program has it open for writing; close it there, and run the command again"
LEFT_OPEN = "did not close it, or still has it open; if none has, h5clear -s makes it readable"


@pytest.fixture(scope="module")
def rows():
    return numpy.random.default_rng(3).normal(size=(13, 4)).astype("f4")


@pytest.fixture
def ask(clpipe):
    def run(path, *more):
        return clpipe("cluster", path, "-k", 2, "-o", "r.h5", *more)
    return run


def python(code, *arguments, cwd):
    """Runs code in another process, which may end without closing its files."""
    head = "import sys, os, h5py, numpy; a = sys.argv\n"
    subprocess.run([sys.executable, "-c", head + code, *map(str, arguments)], cwd=cwd, check=True)


# --- problems that HDF5 reports in 25 lines, or not at all -----------------------------------------

def with_unknown_filter(path, rows, name="m", plain=0):
    """Writes chunks of 5 rows with an unknown filter; the first `plain` chunks are stored without it."""
    with h5py.File(path, "w") as file:
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_chunk((5, rows.shape[1]))
        made.set_filter(32019, h5py.h5z.FLAG_OPTIONAL, (1,))
        dataset = h5py.h5d.create(file.id, name.encode(), h5py.h5t.IEEE_F32LE,
                                  h5py.h5s.create_simple(rows.shape), made)
        for i in range(0, len(rows), 5):
            chunk = numpy.zeros((5, rows.shape[1]), "f4")
            chunk[:len(rows[i:i + 5])] = rows[i:i + 5]
            dataset.write_direct_chunk((i, 0), chunk.tobytes(), filter_mask=int(i // 5 < plain))


@pytest.mark.deep
@pytest.mark.parametrize("plain", [0, 2])
def test_missing_filter(clpipe, finished, tmp_path, rows, plain):
    with_unknown_filter(tmp_path / "x.h5", rows, plain=plain)
    shutil.copy(finished, tmp_path / "f.h5")
    for arguments in (["cluster", "x.h5:/m", "-k", 2, "-o", "r.h5"], ["import", "f.h5", "x=x.h5:/m"],
                      ["cluster", "x.h5:/m", "-k", 2, "-o", "r.h5", "--mini-batch", 4]):
        check_one_error(clpipe(*arguments), 3, "cannot read rows", "of x.h5",
                        "a filter that this HDF5 library lacks")


def test_newer_format(ask, tmp_path, rows):
    """Objects that this library cannot read do not hide others."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"], file["b"] = rows, rows
        where = struct.pack("<QQ", file["a"].id.get_offset(), rows.nbytes)
    content = (tmp_path / "x.h5").read_bytes()
    assert content.count(b"\3\1" + where) == 1
    (tmp_path / "x.h5").write_bytes(content.replace(b"\3\1" + where, b"\5\1" + where))
    check_one_error(ask("x.h5:/a"), 3, "cannot read x.h5: it is in a newer format")
    check_one_error(ask("x.h5:/none"), 3, "its matrices: /b")
    check_one_error(ask("x.h5"), 2, "as in x.h5:/b")
    assert ask("x.h5:/b").returncode == 0
    with h5py.File(tmp_path / "x.h5", "r+") as file:
        del file["b"]
    check_one_error(ask("x.h5:/none"), 3, "cannot read x.h5: it is in a newer format")


def virtual(path, rows, sources, name="m", each=None):
    """Creates a virtual dataset with `each` rows of each source, given as (file, dataset)."""
    each = each or len(rows) // len(sources)
    layout = h5py.VirtualLayout(shape=(each * len(sources), rows.shape[1]), dtype="f4")
    for i, (file, dataset) in enumerate(sources):
        layout[i * each:(i + 1) * each] = h5py.VirtualSource(file, dataset, shape=(each, rows.shape[1]))
    with h5py.File(path, "a", libver="latest") as file:
        file.create_virtual_dataset(name, layout)


@pytest.mark.deep
def test_virtual_datasets(ask, clpipe, finished, tmp_path, rows):
    """A virtual dataset is refused if one of its sources is missing or too short; HDF5 would return zeros."""
    os.mkdir(tmp_path / "d")
    for name, part in (("one", rows[:6]), ("two", rows[6:12])):
        with h5py.File(tmp_path / "d" / f"{name}.h5", "w") as file:
            file["m"], file["weights"] = part, numpy.ones((6, 1), "f4")
    both = [("one.h5", "m"), ("two.h5", "m")]
    virtual(tmp_path / "d" / "v.h5", rows, both)
    virtual(tmp_path / "d" / "v.h5", rows, [(str(tmp_path / "d" / "one.h5"), "m"), ("two.h5", "m")], "absolute")
    virtual(tmp_path / "d" / "v.h5", rows, [(".", "m")], "own", each=12)
    virtual(tmp_path / "d" / "nested.h5", rows, [("v.h5", "m")], each=12)
    virtual(tmp_path / "d" / "w.h5", rows[:, :1], [("one.h5", "weights"), ("two.h5", "weights")])
    whole = ("v.h5:/m", "v.h5:/absolute", "v.h5:/own", "nested.h5:/m")
    for name in whole:
        result = ask(f"d/{name}", "--force", "--weights", "d/w.h5:/m")
        assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path / "r.h5", "r+") as file:
        sizes = file["clusters/kmeans/sizes"][:]
        assert sizes.sum() == 12
    for made, words in (([("one.h5", "m"), ("gone.h5", "m")], "gone.h5:/m, which is missing"),
                        ([("one.h5", "m"), ("two.h5", "gone")], "two.h5:/gone, which is missing")):
        (tmp_path / "d" / "bad.h5").unlink(missing_ok=True)
        virtual(tmp_path / "d" / "bad.h5", rows, made)
        check_one_error(ask("d/bad.h5:/m"), 3, "cannot read d/bad.h5", words, "fill values")
    with h5py.File(tmp_path / "d" / "two.h5", "w") as file:
        file["m"], file["weights"] = rows[6:11], numpy.ones((6, 1), "f4")
    for name in whole:
        check_one_error(ask(f"d/{name}"), 3, "two.h5:/m, which has fewer")
    (tmp_path / "d" / "two.h5").unlink()
    for name in whole:
        check_one_error(ask(f"d/{name}"), 3, "two.h5:/m, which is missing")
    check_one_error(ask("d/one.h5:/m", "--weights", "d/w.h5:/m"), 3, "two.h5:/weights, which is missing")
    shutil.copy(finished, tmp_path / "f.h5")
    before = (tmp_path / "f.h5").read_bytes()
    check_one_error(clpipe("import", "f.h5", "x=d/v.h5:/m"), 3, "two.h5:/m, which is missing")
    assert (tmp_path / "f.h5").read_bytes() == before


def test_nested_virtual_datasets(ask, tmp_path, rows):
    """A chain of 16 datasets leads to the rows; a longer chain is refused as a cycle, like a real cycle."""
    with h5py.File(tmp_path / "n.h5", "w") as file:
        file["0"] = rows
    for i in range(1, 17):
        virtual(tmp_path / "n.h5", rows, [(".", str(i - 1))], str(i))
    virtual(tmp_path / "n.h5", rows, [(".", "there")], "here")
    virtual(tmp_path / "n.h5", rows, [(".", "here")], "there")
    assert ask("n.h5:/15").returncode == 0
    for name in ("16", "here"):
        check_one_error(ask(f"n.h5:/{name}", "--force"), 3, "takes them from there in a cycle")


def test_external_files(ask, tmp_path, rows, monkeypatch):
    """HDF5 would return zeros for the missing end of an external file."""
    monkeypatch.chdir(tmp_path)
    with h5py.File("x.h5", "w") as file:
        file.create_dataset("m", data=rows, external=[("x.raw", 0, rows.nbytes)])
    assert ask("x.h5:/m").returncode == 0
    os.truncate("x.raw", rows.nbytes - 1)
    check_one_error(ask("x.h5:/m"), 3, "x.raw, which has fewer")
    os.unlink("x.raw")
    check_one_error(ask("x.h5:/m"), 3, "cannot read rows", "unable to open external raw data file")


# --- files that another program has open -----------------------------------------------------------

COMMANDS = ([["info"], ["verify"], ["export", "--what", "images"], ["similar", "row:1"], ["evaluate"],
             ["cluster", "-k", 2], ["cluster", "-k", 2, "--name", "x", "-o", "r.h5"], ["duplicates"],
             ["remove", "clusters/kmeans"], ["report", "-o", "pages"], ["assign", "other.h5"],
             ["merge", "other.h5", "-o", "all.h5"], ["import", "x=x.npy"]])


def test_left_open_by_a_writer(clpipe, ask, finished, tmp_path, rows):
    """Every command gives the same message, whatever role the file has in it."""
    shutil.copy(finished, tmp_path / "other.h5")
    numpy.save(tmp_path / "x.npy", rows)
    python("f = h5py.File(a[2], 'w', libver='latest'); s = h5py.File(a[1])\n"
           "for k, v in s.attrs.items(): f.attrs[k] = v\n"
           "for k in s: s.copy(k, f)\n"
           "f['m'] = numpy.ones((13, 4)); f.flush(); os._exit(0)", finished, "f.h5", cwd=tmp_path)
    before = (tmp_path / "f.h5").read_bytes()
    for command, *more in COMMANDS:
        check_one_error(clpipe(command, "f.h5", *more), 3, "cannot read f.h5", LEFT_OPEN)
    for arguments in (["cluster", "f.h5:/m", "-k", 2, "-o", "r.h5"], ["import", "other.h5", "x=f.h5:/m"],
                      ["assign", "other.h5", "f.h5:/m", "-o", "r.h5"],
                      ["merge", "other.h5", "f.h5", "-o", "all.h5"],
                      ["cluster", "x.npy", "-k", 2, "-o", "f.h5"]):
        check_one_error(clpipe(*arguments), 3, "cannot read f.h5", LEFT_OPEN)
    assert (tmp_path / "f.h5").read_bytes() == before


@pytest.mark.deep
def test_held_by_a_writer(clpipe, mixed, finished, tmp_path, rows):
    """A file that another program has open for writing is not replaced; a reader is no obstacle."""
    shutil.copy(finished, tmp_path / "f.h5")
    shutil.copy(finished, tmp_path / "other.h5")
    numpy.save(tmp_path / "x.npy", rows)
    changes = (["cluster", "f.h5", "-k", 2, "--name", "x", "--feature", "counts"], ["import", "f.h5", "x=x.npy"],
               ["similar", "f.h5", "--all", "--feature", "counts"], ["assign", "other.h5", "f.h5", "--force"],
               ["rename", "f.h5", "kmeans", "y"],
               ["ingest", mixed, "-o", "f.h5", "--retry-failed"], ["ingest", mixed, "-o", "f.h5", "--fresh"])
    holding = h5py.File(tmp_path / "f.h5", "r+")
    before = (tmp_path / "f.h5").read_bytes()
    for arguments in changes:
        check_one_error(clpipe(*arguments), 3, "cannot write f.h5", HELD)
    assert (tmp_path / "f.h5").read_bytes() == before
    holding.close()
    with h5py.File(tmp_path / "f.h5", "r"):
        for arguments in changes:
            assert clpipe(*arguments).returncode < 2


def test_matrix_that_is_being_written(ask, tmp_path, rows):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["m"] = rows
        file.flush()
        check_one_error(ask("x.h5:/m"), 3, "cannot read x.h5", HELD)
    assert ask("x.h5:/m").returncode == 0
