"""Changing an existing file: adding features, retrying failures, counting copies; and two processes never
write at the same time."""

import json
import os
import shutil
import signal
import subprocess
import time

import h5py
import numpy
import pytest

from conftest import CLPIPE, FEATURE, check_one_error, digest, draw_photos, error_lines, logs_of, run_clpipe, spoil

FIRST = "rgb:bins=8x8x8"
SECOND = "gray:bins=16,grid=2x2"


def ingest(source, output, *options, code):
    result = run_clpipe("ingest", source, "-o", output, *options, "--json", "-")
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout) if result.stdout else result


def without_clusters(path):
    """The identity of a file without its clusterings."""
    copy = f"{path}.plain.h5"
    shutil.copy(path, copy)
    with h5py.File(copy, "r") as file:
        names = [f"clusters/{name}" for name in file.get("clusters", {})]
    if names:
        result = run_clpipe("remove", copy, *names)
        assert result.returncode == 0, result.stderr
    return digest(copy)


# --- adding features --------------------------------------------------------------------------------

@pytest.mark.deep
def test_add(mixed, tmp_path):
    x, both = tmp_path / "x.h5", tmp_path / "both.h5"
    ingest(mixed, both, "--feature", FIRST, "--feature", SECOND, code=1)
    ingest(mixed, x, "--feature", FIRST, code=1)
    assert run_clpipe("cluster", x, "-k", 3).returncode == 0
    with h5py.File(x) as file:
        labels = file["clusters/kmeans/labels"][:]

    # Without --add, the command has different parameters.
    check_one_error(run_clpipe("ingest", mixed, "-o", x, "--feature", SECOND), 2, "x.h5", "feature")
    report = ingest(mixed, x, "--feature", SECOND, "--add", code=1)
    assert (report["images_ok"], report["images_unchanged"]) == (13, 0)
    with h5py.File(x) as file, h5py.File(both) as other:
        for name in ["rgb_8x8x8", "gray_16_2x2"]:
            assert numpy.array_equal(file["features"][name][:], other["features"][name][:])
        # The images are the same, so the clusters are kept.
        assert numpy.array_equal(file["clusters/kmeans/labels"][:], labels)
        assert len(file["runs"]) == 2
    assert run_clpipe("verify", x).returncode == 0
    # Nothing is left to add, with --add or with all features.
    for options in [["--feature", SECOND, "--add"], ["--feature", FIRST, "--feature", SECOND]]:
        assert ingest(mixed, x, *options, code=1)["images_unchanged"] == 13


@pytest.mark.deep
def test_adding_equals_ingesting_both(mixed, tmp_path):
    x, both = tmp_path / "x.h5", tmp_path / "both.h5"
    ingest(mixed, both, "--feature", FIRST, "--feature", SECOND, code=1)
    ingest(mixed, x, "--feature", FIRST, code=1)
    ingest(mixed, x, "--feature", FIRST, "--feature", SECOND, "--add", code=1)
    assert digest(x) == digest(both)
    # A file that does not exist yet gets all features.
    ingest(mixed, tmp_path / "new.h5", "--feature", FIRST, "--feature", SECOND, "--add", code=1)
    assert digest(tmp_path / "new.h5") == digest(both)


@pytest.mark.deep
def test_add_to_changed_sources(mixed, tmp_path, monkeypatch):
    """New images and a new feature at once: clusters are continued and a message says so."""
    shutil.copytree(mixed, tmp_path / "photos")
    os.unlink(tmp_path / "photos" / "red" / "03.jpg")
    monkeypatch.chdir(tmp_path)
    ingest("photos", "x.h5", "--feature", FIRST, code=1)
    assert run_clpipe("cluster", "x.h5", "-k", 3).returncode == 0
    shutil.copy2(mixed / "red" / "03.jpg", tmp_path / "photos" / "red" / "03.jpg")
    result = run_clpipe("ingest", "photos", "-o", "x.h5", "--feature", SECOND, "--add")
    assert result.returncode == 1 and "clusters kmeans are continued: 1 new image" in result.stderr
    ingest("photos", "both.h5", "--feature", FIRST, "--feature", SECOND, code=1)
    assert without_clusters("x.h5") == digest("both.h5")


@pytest.mark.deep
@pytest.mark.parametrize("options, code, parts", [
    (["--feature", SECOND, "--add", "--alpha", "black"], 2, ["x.h5", "alpha"]),
    (["--feature", "rgb_8x8x8=gray", "--add"], 2, ["rgb_8x8x8"]),
    (["--feature", SECOND, "--add", "--fresh"], 2, ["--add", "--fresh"]),
])
def test_invalid_additions(mixed, tmp_path, options, code, parts):
    ingest(mixed, tmp_path / "x.h5", "--feature", FIRST, code=1)
    before = (tmp_path / "x.h5").read_bytes()
    check_one_error(run_clpipe("ingest", mixed, "-o", tmp_path / "x.h5", *options), code, *parts)
    assert (tmp_path / "x.h5").read_bytes() == before
    assert os.listdir(tmp_path) == ["x.h5"]


# --- failures again, and copies -----------------------------------------------------------------------

@pytest.mark.deep
def test_retry_failed(tmp_path):
    photos = tmp_path / "photos"
    draw_photos(photos, 6)
    spoil(photos)
    good = (photos / "green" / "01.jpg").read_bytes()
    cut = photos / "bad" / "cut.jpg"
    stamp = os.stat(cut).st_mtime_ns
    output = tmp_path / "x.h5"
    first = ingest(photos, output, code=1)
    assert first["images_failed"] == 4
    # Failures that depend on the content are not tried again.
    assert ingest(photos, output, code=1)["images_unchanged"] == 7
    same = digest(output)
    again = ingest(photos, output, "--retry-failed", code=1)
    assert again["images_failed"] == 4 and digest(output) == same
    # A file was repaired without changing its size and time.
    content = cut.read_bytes()
    cut.write_bytes(good[:len(content)])
    os.utime(cut, ns=(stamp, stamp))
    assert ingest(photos, output, code=1)["images_failed"] == 4
    cut.write_bytes(good)
    assert ingest(photos, output, "--retry-failed", code=1)["images_failed"] == 3
    assert run_clpipe("verify", output).returncode == 0


def test_copies_are_counted(finished, tmp_path):
    report = json.loads(run_clpipe("info", finished, "--json", "-").stdout)
    assert report["duplicates"] == 1
    assert "same bytes as another" in run_clpipe("info", finished).stdout
    photos = tmp_path / "photos"
    draw_photos(photos, 3)
    for i in range(5):
        shutil.copy(photos / "blue" / "02.jpg", photos / f"copy {i}.jpg")
    ingest(photos, tmp_path / "x.h5", code=0)
    assert json.loads(run_clpipe("info", tmp_path / "x.h5", "--json", "-").stdout)["duplicates"] == 6


# --- two writers ----------------------------------------------------------------------------------

@pytest.fixture
def writing(tmp_path, program):
    """A running ingest to x.h5, paused while it holds the lock."""
    import numpy as np
    from PIL import Image
    photos = tmp_path / "many"
    photos.mkdir()
    pixels = np.random.default_rng(3).integers(0, 256, (1200, 1600, 3), dtype="uint8")
    Image.fromarray(pixels).save(photos / "0.jpg")
    for i in range(1, 400):
        os.link(photos / "0.jpg", photos / f"{i}.jpg")
    shutil.copytree(photos.parent / "many", tmp_path / "few", ignore=lambda _, names:
                    [n for n in names if n not in ("1.jpg", "2.jpg")])
    process = subprocess.Popen([str(CLPIPE), "ingest", *FEATURE, "many", "-o", "x.h5", "-q"], cwd=tmp_path)
    while not logs_of(tmp_path / "x.h5.partial"):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGSTOP)
    yield process
    process.send_signal(signal.SIGCONT)
    process.terminate()
    process.wait(20)


def test_second_writer_is_refused(writing, tmp_path):
    def listing():
        return {name: os.stat(tmp_path / "x.h5.partial" / name).st_size
                for name in os.listdir(tmp_path / "x.h5.partial")}
    before = listing()
    for command in [["ingest", "many", "-o", "x.h5"], ["run", "--no-report", "many", "-o", "x.h5"],
                    ["ingest", "few", "-o", "x.h5", "--fresh"], ["repair", "x.h5"]]:
        result = run_clpipe(*command, cwd=tmp_path)
        assert result.returncode == 3, result.stderr
        assert len(error_lines(result)) == 1
        assert f"is being written by process {writing.pid} " in error_lines(result)[0]
    assert listing() == before and not (tmp_path / "x.h5").exists()


@pytest.mark.deep
def test_second_writer_by_another_name(mixed, tmp_path):
    """A symbolic link to an output stands for that output; unfinished work is next to the target."""
    (tmp_path / "results").mkdir()
    link = tmp_path / "link.h5"
    link.symlink_to("results/x.h5")
    many = tmp_path / "many"
    many.mkdir()
    for i in range(3000):
        os.link(mixed / "green" / "01.jpg", many / f"{i}.jpg")
    process = subprocess.Popen([str(CLPIPE), "ingest", *FEATURE, "many", "-o", "link.h5", "-q"], cwd=tmp_path)
    work = tmp_path / "results" / "x.h5.partial"
    while not logs_of(work):
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGSTOP)
    try:
        for name in ("link.h5", "results/x.h5"):
            result = run_clpipe("ingest", mixed, "-o", name, "--fresh", cwd=tmp_path)
            assert result.returncode == 3, result.stderr
            assert f"{name} is being written by process {process.pid} " in result.stderr
    finally:
        process.send_signal(signal.SIGCONT)
    assert process.wait(60) == 0
    assert link.is_symlink() and os.listdir(tmp_path / "results") == ["x.h5"]
    # Neither the link nor its target is ingested as a picture from the same directory.
    report = ingest(tmp_path, link, "--fresh", code=0)
    assert (report["images_ok"], report["files_not_images"]) == (3000, 0)


@pytest.mark.deep
def test_cluster_refuses_a_file_being_updated(writing, tmp_path, monkeypatch):
    """Clusters cannot be added to a file that is being updated, because they or the images would be lost."""
    writing.send_signal(signal.SIGCONT)
    writing.terminate()
    assert writing.wait(20) == 4
    shutil.rmtree(tmp_path / "x.h5.partial", ignore_errors=True)
    monkeypatch.chdir(tmp_path)
    ingest("few", "x.h5", code=0)
    shutil.copy("x.h5", "c.h5")
    assert run_clpipe("cluster", "c.h5", "-k", 1).returncode == 0
    before = (tmp_path / "x.h5").read_bytes()
    process = subprocess.Popen([str(CLPIPE), "ingest", *FEATURE, "many", "-o", "x.h5", "--fresh", "-q"])
    while not logs_of(tmp_path / "x.h5.partial"):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGSTOP)
    try:
        for command in [["cluster", "x.h5", "-k", "1"], ["assign", "c.h5", "x.h5"]]:
            result = run_clpipe(*command)
            assert result.returncode == 3, result.stderr
            assert f"is being written by process {process.pid} " in error_lines(result)[-1]
        # The file can be read, and clusters can be written to another file.
        assert run_clpipe("info", "x.h5").returncode == 0
        assert run_clpipe("cluster", "x.h5", "-k", 1, "-o", "other.h5").returncode == 0
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(20)
    assert (tmp_path / "x.h5").read_bytes() == before


def test_clusters_keep_unfinished_work(mixed, tmp_path):
    """Clustering a file with an unfinished update does not change the update's log."""
    x = tmp_path / "x.h5"
    ingest(mixed, x, code=1)
    (tmp_path / "x.h5.partial").mkdir()
    (tmp_path / "x.h5.partial" / "log-0123456789abcdef").write_bytes(b"a log of others" * 3)
    assert run_clpipe("cluster", x, "-k", 2).returncode == 0
    assert (tmp_path / "x.h5.partial" / "log-0123456789abcdef").read_bytes() == b"a log of others" * 3


@pytest.mark.variations
@pytest.mark.parametrize("locking", ["TRUE", "FALSE", "BEST_EFFORT", None])
def test_hdf5_file_locking(mixed, tmp_path, locking):
    """Works with any setting of HDF5's file locking."""
    env = {"HDF5_USE_FILE_LOCKING": locking}
    output = tmp_path / "x.h5"
    assert run_clpipe("run", "--no-report", mixed, "-k", 2, "-o", output, env=env).returncode == 1
    assert run_clpipe("verify", output, env=env).returncode == 0
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["data"] = numpy.random.default_rng(1).random((50, 4), dtype="float32")
    assert run_clpipe("cluster", f"{tmp_path}/foreign.h5:/data", "-k", 2, "-o", tmp_path / "c.h5",
                      env=env).returncode == 0
