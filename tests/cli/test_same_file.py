"""Files whose size and time have not changed: their bytes are compared if the inode or the change time differs."""

import json
import os
import shutil
import tarfile

import h5py
import numpy
import pytest

from conftest import FEATURE, NOBODY, draw_photos, run_clpipe


@pytest.fixture
def place(tmp_path, monkeypatch, program):
    """The working directory, in which q has a.ppm to e.ppm with the same size and time, and the invalid bad.jpg."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    os.mkdir("q")
    random = numpy.random.default_rng(3)
    for name in "abcde":
        write(f"q/{name}.ppm", b"P6 8 8 255\n" + random.bytes(192))
    write("q/bad.jpg", b"\xff\xd8\xff\xe0 is no picture")
    return tmp_path


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)
    os.utime(path, ns=(10**18, 10**18))


def ingest(*args, output="x.h5", code=0):
    result = run_clpipe("ingest", *args, "-o", output, "--allow-failures", "9", "--json", "-")
    assert result.returncode == code, result.stderr
    report = json.loads(result.stdout)
    return report["files_compared"], report["files_differ"], report["images_unchanged"]


def stamp(path="x.h5"):
    state = os.stat(path)
    return state.st_ino, state.st_mtime_ns


def equal_to_fresh(*args):
    ingest(*args, "--fresh", output="fresh.h5")
    with h5py.File("x.h5") as a, h5py.File("fresh.h5") as b:
        assert a["checksums"].attrs["identity"] == b["checksums"].attrs["identity"]


def test_nothing_has_changed(place):
    ingest("q")
    before = stamp()
    assert ingest("q") == (0, 0, 5)
    assert stamp() == before


def test_exchanged_names(place):
    ingest("q")
    os.rename("q/a.ppm", "q/x")
    os.rename("q/b.ppm", "q/a.ppm")
    os.rename("q/x", "q/b.ppm")
    assert ingest("q") == (2, 2, 3)
    equal_to_fresh("q")


def test_stat_changes_alone_write_nothing(place):
    """If only inodes, links and permissions change, the bytes are read, but the result is not written."""
    ingest("q")
    before = stamp()
    for name in "ab":
        shutil.copy2(f"q/{name}.ppm", "q/copy")
        os.rename("q/copy", f"q/{name}.ppm")
    os.chmod("q/c.ppm", 0o600)
    os.link("q/d.ppm", "d")
    assert ingest("q") == (4, 0, 5)
    assert stamp() == before
    result = run_clpipe("ingest", "q", "-o", "x.h5", "--allow-failures", "9")
    assert "compared    4 files of the same size and time read again: 0 changed" in result.stdout


def test_other_changes_store_new_inodes(place):
    """If the file is written for another reason, the new inodes are stored, and later runs do not compare again."""
    ingest("q")
    for name in "bd":
        shutil.copy2(f"q/{name}.ppm", "q/copy")
        os.rename("q/copy", f"q/{name}.ppm")
    write("q/aa.ppm", open("q/a.ppm", "rb").read())
    assert ingest("q") == (2, 0, 5)
    assert ingest("q") == (0, 0, 6)
    with h5py.File("x.h5") as file:
        for path, inode, ctime in zip(*(file["images"][name] for name in ("path", "inode", "ctime_ns"))):
            state = os.stat(b"q/" + path)
            assert (inode, ctime) == (state.st_ino, state.st_ctime_ns)


def test_a_restored_file_with_other_bytes(place):
    """This includes a file that was damaged before, because failures have no digest."""
    ingest("q")
    data = open("q/c.ppm", "rb").read()
    write("q/new", data[:-1] + bytes([data[-1] ^ 1]))
    os.rename("q/new", "q/c.ppm")
    write("q/new", (b"P6 1 1 255\nabc" + b"#" * 30)[:os.path.getsize("q/bad.jpg")])
    os.rename("q/new", "q/bad.jpg")
    assert ingest("q") == (2, 1, 4)
    equal_to_fresh("q")
    with h5py.File("x.h5") as file:
        assert len(file["images/path"]) == 6 and not len(file["failures/path"])


@pytest.mark.deep
def test_unreadable_files_are_kept(place):
    """Changing permissions changes the change time. If the file is unreadable, size and time decide, so that
    no image is lost."""
    ingest("q")
    before = stamp()
    os.chmod("q/a.ppm", 0)
    user = {"user": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    for path in ".", "x.h5":
        os.chmod(path, 0o777)
    result = run_clpipe("ingest", "q", "-o", "x.h5", "--allow-failures", "9", "--json", "-", **user)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["images_unchanged"] == 5
    assert stamp() == before


def test_all_bytes(place):
    """With --checksum the bytes are read even if nothing in stat() differs."""
    ingest("q")
    before = stamp()
    assert ingest("q", "--checksum") == (5, 0, 5)
    assert stamp() == before
    with h5py.File("x.h5", "r+") as file:
        for table in "images", "failures":
            file[table]["inode"][:] = file[table]["ctime_ns"][:] = 0
        del file["checksums"]
    os.rename("q/a.ppm", "q/x")
    os.rename("q/b.ppm", "q/a.ppm")
    os.rename("q/x", "q/b.ppm")
    assert ingest("q") == (0, 0, 5)
    assert ingest("q", "--checksum") == (5, 2, 3)


def test_isolated_decoders(place):
    ingest("q")
    os.rename("q/a.ppm", "q/x")
    os.rename("q/b.ppm", "q/a.ppm")
    os.rename("q/x", "q/b.ppm")
    os.chmod("q/c.ppm", 0o600)
    assert ingest("q", "--isolate") == (3, 2, 3)
    equal_to_fresh("q")


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["w", "w:gz"])
def test_archives(place, kind):
    """Members have the inode of their archive: a replaced archive is read again completely."""
    def pack(order):
        with tarfile.open("new.tar", kind) as archive:
            for name, source in zip("abcde", order):
                archive.add(f"q/{source}.ppm", f"{name}.ppm")
        os.utime("new.tar", ns=(10**18, 10**18))

    pack("abcde")
    shutil.copy2("new.tar", "p.tar.gz" if kind == "w:gz" else "p.tar")
    name = "p.tar.gz" if kind == "w:gz" else "p.tar"
    size = os.path.getsize(name)
    ingest(name)
    before = stamp()
    assert ingest(name) == (0, 0, 5)
    shutil.copy2(name, "copy")
    os.rename("copy", name)
    assert ingest(name) == (5, 0, 5)
    assert stamp() == before
    pack("bacde")
    if os.path.getsize("new.tar") == size:
        os.rename("new.tar", name)
        assert ingest(name) == (5, 2, 3)
        equal_to_fresh(name)


@pytest.mark.deep
def test_lists(place):
    with open("l", "w") as file:
        file.writelines(f"q/{name}.ppm\n" for name in "edcba")
    ingest("@l")
    os.rename("q/a.ppm", "q/x")
    os.rename("q/b.ppm", "q/a.ppm")
    os.rename("q/x", "q/b.ppm")
    assert ingest("@l") == (2, 2, 3)
    equal_to_fresh("@l")


@pytest.mark.deep
def test_an_interrupted_run(place):
    """Rows of an unfinished run's log are compared like those of a file."""
    draw_photos("p", 60)
    write("q/z.ppm", b"P6 8 8 255\n")
    started = run_clpipe("ingest", "q", "p", *FEATURE, "-o", "x.h5", "--strict", "--threads", "1")
    assert started.returncode == 1 and os.path.exists("x.h5.partial"), started.stderr
    os.rename("q/a.ppm", "q/x")
    os.rename("q/b.ppm", "q/a.ppm")
    os.rename("q/x", "q/b.ppm")
    ingest("q", "p")
    equal_to_fresh("q", "p")
