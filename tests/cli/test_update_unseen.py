"""An update keeps everything that it cannot read: directories and files without permission, a disk with I/O
errors, a source that is not mounted."""

import os
import shutil

import h5py
import numpy
import pytest

from conftest import CLPIPE, as_nobody, check_one_error, digest, draw_photos, open_to_nobody, run_clpipe

FAULTS = CLPIPE.parent / "tests" / "faults.so"
INGEST = ["ingest", "p1", "p2", "-o", "out/x.h5"]


def clpipe(*args, code=0, **kwargs):
    result = run_clpipe(*args, **kwargs)
    assert result.returncode == code, result.stderr
    return result.stderr


@pytest.fixture
def place(tmp_path, monkeypatch, program):
    """The working directory, with out/x.h5 of p1 (13 images) and p2 (5), labels, an imported feature and
    neighbours, which an unprivileged user may update."""
    open_to_nobody(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    draw_photos("p1")
    draw_photos("p2", 4)
    # In the order of paths, before and after "red/".
    for name in ["p1/red.jpg", "p1/red0.jpg", "p1/!.jpg"]:
        shutil.copy("p1/green/01.jpg", name)
    for name in ["out", "home"]:
        os.mkdir(name)
        os.chmod(name, 0o777)
    clpipe(*INGEST)
    numpy.save("e.npy", numpy.random.default_rng(1).random((21, 4), dtype="f4"))
    clpipe("import", "out/x.h5", "clip=e.npy")
    clpipe("cluster", "out/x.h5", "-k", "3", "--feature", "rgb_8x8x8")
    clpipe("similar", "out/x.h5", "--all", "-n", "4", "--feature", "clip")
    for folder, _, names in os.walk("."):
        for name in names:
            os.chmod(os.path.join(folder, name), 0o666)
    yield tmp_path
    for folder, _, _ in os.walk("p1"):
        os.chmod(folder, 0o755)


def values(path="out/x.h5"):
    """All rows of all datasets."""
    with h5py.File(path) as file:
        return [file[name][:].tolist() for name in ["images/path", "features/clip", "features/rgb_8x8x8",
                                                    "clusters/kmeans/labels", "neighbours/clip/rows"]]


def failures(path="out/x.h5"):
    with h5py.File(path) as file:
        return [text.decode() for text in file["failures/path"][:]]


def check_kept(before, count, said, failed):
    assert values() == before[1] and failures() == failed
    assert f"notice: {count} image{'s' if count > 1 else ''} of out/x.h5 could not be examined" in said
    assert "no problems found" in run_clpipe("verify", "out/x.h5").stdout


@pytest.mark.deep
@pytest.mark.parametrize("mode", [0, 0o444], ids=["closed", "no search"])
def test_directory_without_permission(place, mode):
    """Nothing can be read, or only the names: then each file fails."""
    before = digest("out/x.h5"), values()
    names = sorted("red/" + name for name in os.listdir("p1/red"))
    os.chmod("p1/red", mode)
    if mode == 0:
        shutil.copy("p2/green/01.jpg", "p1/new.jpg")
    first = as_nobody(place, *INGEST)
    assert first.returncode == 1, first.stderr
    if mode == 0:
        # First with new rows, then without.
        assert len(values()[0]) == 22 and "kmeans are continued: 1 new image" in first.stderr
        os.unlink("p1/new.jpg")
        first = as_nobody(place, *INGEST)
        assert first.returncode == 1, first.stderr
        with h5py.File("out/x.h5") as file:
            assert file["failures/reason"][:].tolist() == [b"unreadable"]
    else:
        check_kept(before, len(names), first.stderr, names)
    assert values()[:4] == before[1][:4]
    inode = os.stat("out/x.h5").st_ino
    again = as_nobody(place, *INGEST)
    assert again.returncode == 1 and os.stat("out/x.h5").st_ino == inode, again.stderr
    # A feature that needs all images cannot be made.
    refused = as_nobody(place, *INGEST, "--add", "--feature", "gray")
    check_one_error(refused, 3, "red/", "ermission denied", "once they can be read")
    assert os.stat("out/x.h5").st_ino == inode
    os.chmod("p1/red", 0o755)
    clpipe(*INGEST)
    assert values()[:4] == before[1][:4] and failures() == []


@pytest.mark.deep
@pytest.mark.skipif(not FAULTS.exists(), reason="faults.so is not built in this variant")
def test_disk_errors(place):
    """Any directory that cannot be read to its end, including the sources themselves."""
    before, stayed, failed = (digest("out/x.h5"), values()), 0, set()
    shutil.copy("out/x.h5", "old.h5")
    clpipe(*INGEST, "--dry-run", env={"LD_PRELOAD": FAULTS, "CLPIPE_FAULT_LIST": "sites"})  # reads no kernel cache
    with open("sites") as file:
        site, calls = max((line.split()[1:] for line in file if line.startswith("list ")),
                          key=lambda fields: int(fields[1]))
    for call in range(1, int(calls) + 1, 3):
        said = clpipe(*INGEST, code=1, env={"LD_PRELOAD": FAULTS, "CLPIPE_FAULT": f"list {site} {call} 5"})
        assert values() == before[1] and len(failures()) == 1
        failed.add(failures()[0])
        stayed += "could not be examined" in said
        assert "no problems found" in run_clpipe("verify", "out/x.h5").stdout
        shutil.copy("old.h5", "out/x.h5")
    assert {"./", "red/"} <= failed and stayed > 5
    clpipe(*INGEST)
    assert digest("out/x.h5") == before[0]


@pytest.mark.deep
def test_listed_files(place):
    """Files of a list, which has its own order."""
    with open("list", "w") as file:
        file.write("p1/red/00.png\np1/blue/02.jpg\np1/gone.jpg\np1/red/03.jpg\n")
    os.chmod("list", 0o644)
    clpipe("ingest", "@list", "-o", "out/x.h5", "--fresh", code=1)
    os.chmod("out/x.h5", 0o666)
    with open("list", "w") as file:
        file.write("p1/red/03.jpg\np1/red/00.png\np1/gone.jpg\np1/blue/02.jpg\n")
    os.unlink("p1/blue/02.jpg")
    os.chmod("p1/red", 0)
    result = as_nobody(place, "ingest", "@list", "-o", "out/x.h5")
    assert result.returncode == 1 and "2 images of out/x.h5 could not be examined" in result.stderr
    with h5py.File("out/x.h5") as file:
        assert file["images/path"][:].tolist() == [b"p1/red/03.jpg", b"p1/red/00.png"]
    assert failures() == ["p1/red/03.jpg", "p1/red/00.png", "p1/gone.jpg", "p1/blue/02.jpg"]


def test_source_that_is_not_mounted(place):
    """An empty or missing directory does not count as removed images."""
    before = os.stat("out/x.h5").st_ino
    shutil.move("p2", "away")
    check_one_error(run_clpipe(*INGEST), 2, "no file or directory p2")
    os.mkdir("p2")
    check_one_error(run_clpipe(*INGEST), 2, "5 of 21 images", "all of p2", "not mounted", "--allow-removal")
    assert os.stat("out/x.h5").st_ino == before
    clpipe("ingest", "p1", "-o", "out/x.h5", "--drop-source", "p2")
    assert len(values()[0]) == 16
