"""The file as other programs see it, compared with docs/file-format.md; kills, updates and locks."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import h5py
import numpy
import pytest

from conftest import CLPIPE, FEATURE, ROOT, check_one_error, digest, draw_photos, log_bytes, run_clpipe

DOCS = (ROOT / "docs" / "file-format.md").read_text()

COLUMNS = {
    "images": {"path": "S", "width": "<u4", "height": "<u4", "orientation": "|u1",
               "channels": "|u1", "source": "<u2", "bytes": "<u8", "mtime_ns": "<i8", "inode": "<u8",
               "ctime_ns": "<i8", "digest": "<u8", "format": "|S8", "code": "|u1"},
    "failures": {"path": "S", "reason": "|S16", "message": "S", "bytes": "<u8", "errno": "<i4",
                 "source": "<u2", "mtime_ns": "<i8", "inode": "<u8", "ctime_ns": "<i8"},
}
PARTS = {"centroids": "<f4", "labels": "<i4", "distances": "<f4", "sizes": "<u8",
         "nearest": "<i8", "inertia_history": "<f8"}


def code_blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", DOCS, re.DOTALL)


@pytest.fixture(scope="module")
def identity():
    """A function that computes the identity of a file, or the root of a dataset, with tools/identity.py."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import identity
    finally:
        sys.path.pop(0)

    def compute(path, name=None):
        if name is None:
            return identity.identity(path)
        with h5py.File(path) as file:
            return identity.root(name, file[name], identity.attributes_that_count(name))
    return compute


# --- contents ---------------------------------------------------------------------------------

def test_datasets(finished):
    with h5py.File(finished, "r") as f:
        counts = {"images": len(f["images/path"]), "failures": len(f["failures/path"])}
        assert counts == {"images": 13, "failures": 5}
        for group, columns in COLUMNS.items():
            assert set(f[group]) - {"sources", "directories"} == set(columns)
            for name, dtype in columns.items():
                column = f[group][name]
                width = max(len(text) for text in column) if dtype == "S" else ""
                assert column.dtype.str.lstrip("|") == f"{dtype.lstrip('|')}{width}"
                assert column.shape[1:] == {"digest": (2,), "code": (32,)}.get(name, ())
                assert len(column) == counts[group]
                assert column.chunks is None
                if column.dtype.kind == "S":
                    assert h5py.check_string_dtype(column.dtype).encoding == "utf-8"
                    assert column.id.get_type().get_strpad() == h5py.h5t.STR_NULLPAD
        assert f["images/sources"].shape == f["images/directories"].shape == (1,)
        assert f["features/rgb_8x8x8"].dtype == "<f4" and f["features/counts"].dtype == "<u4"
        assert f["features/rgb_8x8x8"].shape == (13, 512) and f["features/counts"].shape == (13, 100)
        attributes = dict(f["features/counts"].attrs)
        assert attributes.pop("DIMENSION_LIST") is not None
        assert attributes == {"spec": "gray:bins=100,grid=1x1,normalize=none", "kind": "gray",
                              "bins": "100", "grid": "1x1", "normalize": "none",
                              "decode_scale": 1}
        clusters = f["clusters/kmeans"]
        assert {name: part.dtype.str for name, part in clusters.items()} == PARTS
        assert clusters["centroids"].shape == (3, 512) and clusters["nearest"].shape == (3, 3)
        assert len(clusters["inertia_history"]) == clusters.attrs["iterations"]
        assert set(clusters.attrs) == {"feature", "metric", "init", "parameters", "content", "k",
                                       "iterations", "seed", "converged", "inertia",
                                       "folders", "purity", "nmi", "ari"}
        assert set(f.attrs) == {"clpipe_format", "clpipe_version", "created", "parameters"}
        assert isinstance(f.attrs["parameters"], str) and f.attrs["clpipe_format"] == 3
        assert set(f["runs/0"].attrs) == {"command", "details", "host", "device", "driver",
                                          "clpipe_version", "finished", "seconds"}


def test_every_axis_has_its_scale(finished):
    expected = {"images": ["image", "digest_word"], "images/code": ["image", "code_byte"], "failures": ["failure"],
                "images/sources": ["source"], "images/directories": ["source"], "features/counts": ["image", "feature_counts"],
                "clusters/kmeans/centroids": ["cluster_kmeans", "feature_rgb_8x8x8"],
                "clusters/kmeans/nearest": ["cluster_kmeans", "rank"],
                "clusters/kmeans/labels": ["image"], "clusters/kmeans/distances": ["image"],
                "clusters/kmeans/sizes": ["cluster_kmeans"],
                "clusters/kmeans/inertia_history": ["iteration_kmeans"],
                "features/rgb_8x8x8": ["image", "feature_rgb_8x8x8"]}

    def check(name, item):
        if isinstance(item, h5py.Dataset) and name.startswith("checksums/"):
            assert [axis[0].name for axis in item.dims] == [f"/piece_{len(item)}", "/checksum_byte"]
        elif isinstance(item, h5py.Dataset) and "/" in name:
            scales = expected.get(name) or expected[name.split("/")[0]]
            assert [axis[0].name for axis in item.dims] == \
                ["/" + scale for scale in scales[:item.ndim]]
            assert item.shape == tuple(axis[0].shape[0] for axis in item.dims)

    with h5py.File(finished, "r") as f:
        f.visititems(check)


def test_readable_by_hdf5_1_8_and_without_times(finished):
    """The objects of the file have no modification times, so its bytes do not depend on when it was written."""
    with h5py.File(finished, "r") as f:
        assert f.id.get_create_plist().get_version()[0] == 0
        for name in ("images/path", "features/counts", "clusters/kmeans/labels"):
            assert h5py.h5g.get_objinfo(f.id, name.encode()).mtime == 0
        # Feature rows can be read without HDF5.
        feature = f["features/rgb_8x8x8"]
        rows, offset = feature[:], feature.id.get_offset()
    stored = numpy.fromfile(finished, "<f4", rows.size, offset=offset)
    assert (stored.reshape(rows.shape) == rows).all()


@pytest.mark.deep
def test_identity_as_documented(clpipe, finished, photos, tmp_path, identity):
    assert identity(finished) == digest(finished)
    with h5py.File(finished, "r") as f:
        assert f["clusters/kmeans"].attrs["content"] == identity(finished, "/features/rgb_8x8x8")
    # A file with only clusters, names that are not UTF-8, and a table with a single failure.
    numpy.save(tmp_path / "x.npy", numpy.random.default_rng(1).random((40, 5), "f4"))
    assert clpipe("cluster", "x.npy", "-k", 2, "-o", "r.h5").returncode == 0
    assert identity(tmp_path / "r.h5") == digest(tmp_path / "r.h5")
    os.mkdir(tmp_path / "odd")
    for name in (b"odd/\xff.jpg", "odd/é.jpg".encode(), b"odd/a\\xff.jpg"):
        shutil.copy(photos / "red" / "03.jpg", os.fsencode(tmp_path) + b"/" + name)
    (tmp_path / "odd" / "z.png").write_bytes(b"")
    assert clpipe("ingest", "odd", "-o", "odd.h5").returncode == 1
    assert identity(tmp_path / "odd.h5") == digest(tmp_path / "odd.h5")
    assert clpipe("verify", "odd.h5").returncode == 0
    names = {}
    exec("import re\n\n\ndef name_bytes" + next(
        block for block in code_blocks("python") if "def name_bytes" in block).split("def name_bytes")[1], names)
    with h5py.File(tmp_path / "odd.h5", "r") as f:
        texts = f["images/path"].asstr()[:].tolist()
    assert texts == ["a\\x5cxff.jpg", "é.jpg", "\\xff.jpg"]
    assert [names["name_bytes"](text) for text in texts] == [b"a\\xff.jpg", "é.jpg".encode(), b"\xff.jpg"]


def move_a_label(f):
    labels = f["clusters/kmeans/labels"]
    labels[0] = (labels[0] + 1) % 3


@pytest.mark.deep
def test_identity_sees_every_change(finished, tmp_path, identity):
    copy = tmp_path / "copy.h5"
    for change in (move_a_label,
                   lambda f: f["features/counts"].__setitem__((0, 0), 7777),
                   lambda f: f["images/path"].__setitem__(0, b"blue/x.jpg"),
                   lambda f: f.attrs.modify("parameters", "{}"),
                   lambda f: f["features/counts"].attrs.modify("spec", "gray:bins=99"),
                   lambda f: f["images/width"].dims[0].detach_scale(f["image"])):
        shutil.copy(finished, copy)
        with h5py.File(copy, "r+") as f:
            change(f)
        assert digest(copy) == identity(copy) != digest(finished)
    shutil.copy(finished, copy)
    with h5py.File(copy, "r+") as f:
        f.attrs.modify("created", "another time")
        f["runs/0"].attrs["more"] = 1
        f["extra"] = [1.0, 2.0]
        f["features/own"] = [[1.0]]
        f["features/counts"].attrs["remark"] = "checked"
        f["features/link"] = h5py.SoftLink("/features/counts")
    assert digest(copy) == identity(copy) == digest(finished)


# --- other programs ---------------------------------------------------------------------------

@pytest.mark.parametrize("number", range(len(code_blocks("python"))))
def test_python_in_the_documentation(finished, tmp_path, number):
    block = code_blocks("python")[number]
    for module in re.findall(r"^import (\w+)", block, re.MULTILINE):
        pytest.importorskip(module)
    if "h5netcdf" in block:
        pytest.importorskip("h5netcdf")
    shutil.copy(finished, tmp_path / "clpipe.h5")
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        exec(block, {})
    finally:
        os.chdir(here)


def test_r_in_the_documentation(finished, tmp_path):
    if not shutil.which("Rscript") or subprocess.run(
            ["Rscript", "-e", "library(rhdf5)"], capture_output=True).returncode:
        pytest.skip("R with rhdf5 is not installed")
    shutil.copy(finished, tmp_path / "clpipe.h5")
    block, = code_blocks("r")
    result = subprocess.run(["Rscript", "-e", block], cwd=tmp_path, text=True, capture_output=True)
    assert result.returncode == 0, result.stderr
    assert "green/01.jpg" in result.stdout


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_xarray(finished, engine):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip({"netcdf4": "netCDF4"}.get(engine, engine))
    with h5py.File(finished, "r") as f:
        with xarray.open_dataset(finished, group="features", engine=engine) as features:
            assert features["counts"].dims == ("image", "feature_counts")
            assert (features["counts"].values == f["features/counts"][:]).all()
        with xarray.open_dataset(finished, group="images", engine=engine) as images:
            paths = images["path"].str.decode("utf-8") if images["path"].dtype.kind == "S" else images["path"]
            assert paths.values.tolist() == f["images/path"].asstr()[:].tolist()
            assert images["digest"].dims == ("image", "digest_word")
        with xarray.open_dataset(finished, group="clusters/kmeans", engine=engine) as clusters:
            assert clusters["centroids"].dims == ("cluster_kmeans", "feature_rgb_8x8x8")
            assert clusters.attrs["metric"] == "hellinger"
        for group in (None, "failures", "clusters", "runs", "runs/0"):
            xarray.open_dataset(finished, group=group, engine=engine).close()


def test_h5dump(finished):
    if not shutil.which("h5dump"):
        pytest.skip("h5dump is not installed")
    result = subprocess.run(["h5dump", finished], text=True, capture_output=True)
    assert result.returncode == 0 and result.stderr == ""
    for part in ("rgb_8x8x8", "green/01.jpg", "not-an-image", "unknown-format"):
        assert part in result.stdout


def test_repacked(clpipe, finished, tmp_path):
    if not shutil.which("h5repack"):
        pytest.skip("h5repack is not installed")
    copy = tmp_path / "copy.h5"
    subprocess.run(["h5repack", finished, copy], check=True)
    assert digest(copy) == digest(finished)
    assert clpipe("verify", copy).returncode == 0
    packed = tmp_path / "packed.h5"
    subprocess.run(["h5repack", "-f", "/features/rgb_8x8x8:GZIP=6", copy, packed], check=True)
    with h5py.File(packed, "r") as f:
        assert f["features/rgb_8x8x8"].compression == "gzip"
    assert digest(packed) == digest(finished)
    result = clpipe("verify", packed)
    assert result.returncode == 0, result.stdout + result.stderr


# --- the same file, whatever happens ------------------------------------------------------------

def test_equal_bytes_except_for_runs(clpipe, mixed, tmp_path):
    environment = {"SOURCE_DATE_EPOCH": "1700000000"}
    for name in ("a.h5", "b.h5"):
        result = clpipe("ingest", mixed, "-o", name, "--threads", 1 + (name == "b.h5"),
                        env=environment)
        assert result.returncode == 1, result.stderr
    contents = []
    for name in ("a.h5", "b.h5"):
        with h5py.File(tmp_path / name, "r") as f:
            assert f.attrs["created"] == "2023-11-14T22:13:20Z"
            runs = h5py.h5o.get_info(f["runs"].id).addr
        contents.append((runs, (tmp_path / name).read_bytes()))
    assert contents[0][0] == contents[1][0]
    # Before /runs, only the size of the file differs, which is in the superblock.
    first, second = (numpy.frombuffer(content[:runs], "u1") for runs, content in contents)
    different = numpy.flatnonzero(first != second)
    assert ((different >= 40) & (different < 48)).all()


@pytest.fixture(scope="module")
def hundreds(tmp_path_factory):
    """Three hundred pictures, some of them broken."""
    directory = tmp_path_factory.mktemp("hundreds")
    draw_photos(directory / "0", 30)
    for copy in range(1, 10):
        shutil.copytree(directory / "0", directory / str(copy))
        (directory / str(copy) / "cut.jpg").write_bytes(
            (directory / "0" / "green" / "01.jpg").read_bytes()[:400 + copy])
    return directory


def test_killed_again_and_again(program, hundreds, tmp_path):
    environment = dict(os.environ, SOURCE_DATE_EPOCH="1700000000")
    command = [CLPIPE, "ingest", *FEATURE, hundreds, "-o", "killed.h5", "-q"]
    result = run_clpipe("ingest", hundreds, "-o", "whole.h5", cwd=tmp_path, env=environment)
    assert result.returncode == 1, result.stderr
    kills = 0
    for attempt in range(40):
        process = subprocess.Popen(command, cwd=tmp_path, env=environment,
                                   stderr=subprocess.DEVNULL)
        try:
            code = process.wait(timeout=0.05 + 0.03 * attempt if attempt < 12 else 120)
            assert code in (0, 1)  # 0: only cleaning up was left to do
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            kills += process.wait() == -signal.SIGKILL
    assert kills > 0
    assert sorted(os.listdir(tmp_path)) == ["killed.h5", "whole.h5"]
    assert digest(tmp_path / "killed.h5") == digest(tmp_path / "whole.h5")


def test_update_equals_a_new_file(clpipe, tmp_path, identity):
    draw_photos(tmp_path / "photos")
    photos = tmp_path / "photos"
    assert clpipe("run", "--no-report", "photos", "-k", 2, "-o", "updated.h5").returncode == 0
    (photos / "red" / "copy of 00.png").unlink()
    (photos / "blue" / "02.jpg").write_bytes((photos / "red" / "03.jpg").read_bytes())
    (photos / "new.jpg").write_bytes((photos / "green" / "07.jpg").read_bytes())
    (photos / "cut.jpg").write_bytes((photos / "green" / "07.jpg").read_bytes()[:500])
    result = clpipe("ingest", "photos", "-o", "updated.h5", "--json", "-")
    assert result.returncode == 1
    assert "clusters kmeans are continued" in result.stderr
    assert '"images_unchanged": 11' in result.stdout and '"images_ok": 13' in result.stdout
    assert clpipe("ingest", "photos", "-o", "fresh.h5").returncode == 1
    assert identity(tmp_path / "updated.h5") == digest(tmp_path / "updated.h5")
    assert clpipe("verify", "updated.h5").returncode == 0
    assert clpipe("remove", "updated.h5", "clusters/kmeans").returncode == 0
    assert digest(tmp_path / "updated.h5") == digest(tmp_path / "fresh.h5")
    assert clpipe("verify", "updated.h5").returncode == 0
    with h5py.File(tmp_path / "updated.h5", "r") as f:
        assert list(f["runs"]) == ["0", "1"]


# --- one at a time ------------------------------------------------------------------------------

def test_second_run_is_refused(clpipe, photos, tmp_path):
    work = tmp_path / "out.h5.partial"
    work.mkdir()
    with open(work / "lock", "w") as lock:
        lock.write("4321 elsewhere\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        check_one_error(clpipe("ingest", photos, "-o", "out.h5"), 3, "out.h5",
                        "process 4321 on elsewhere")
    # The lock has been released, and the files that a killed run leaves behind are no obstacle.
    result = clpipe("ingest", photos, "-o", "out.h5")
    assert result.returncode == 0, result.stderr
    assert os.listdir(tmp_path) == ["out.h5"]


@pytest.mark.parametrize("command", ["ingest", "cluster"])
def test_files_left_by_a_run_on_another_machine(clpipe, photos, finished, tmp_path, command):
    """The text in a lock file does not exclude other runs. If the run that wrote it is still working, it notices
    that its directory was taken over."""
    (tmp_path / "out.h5.partial").mkdir()
    (tmp_path / "out.h5.partial" / "lock").write_text("4321 elsewhere 00000000-aaaa\n")
    arguments = (photos,) if command == "ingest" else (finished, "-k", 2, "--feature", "counts")
    result = clpipe(command, *arguments, "-o", "out.h5", "-q")
    assert (result.returncode, result.stderr) == (0, "")
    assert os.listdir(tmp_path) == ["out.h5"]


def test_the_lock_names_the_process(program, hundreds, tmp_path):
    """A run that ends with unfinished work replaces the line with "-"."""
    process = subprocess.Popen([CLPIPE, "ingest", hundreds, *FEATURE, "-o", "out.h5", "-q"], cwd=tmp_path)
    work = tmp_path / "out.h5.partial"
    while process.poll() is None and log_bytes(work) == 0:
        time.sleep(0.002)
    process.send_signal(signal.SIGSTOP)
    if process.poll() is not None:
        pytest.skip("the run ended before its lock could be read")
    line = (work / "lock").read_text().split()
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    assert line[0] == str(process.pid)
    assert line[2] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    if process.wait() == 4 and work.exists():
        assert (work / "lock").read_text() == "-\n"


def test_unfinished_work_of_other_options(program, hundreds, tmp_path):
    process = subprocess.Popen([CLPIPE, "ingest", hundreds, *FEATURE, "-o", "out.h5", "-q"], cwd=tmp_path)
    while process.poll() is None and log_bytes(tmp_path / "out.h5.partial") == 0:
        time.sleep(0.005)
    process.kill()
    if process.wait() != -signal.SIGKILL:
        pytest.skip("the run ended before it could be killed")
    other = ("ingest", hundreds, "-o", "out.h5", "--alpha", "black")
    check_one_error(run_clpipe(*other, cwd=tmp_path), 2, "unfinished work", "alpha", "--fresh")
    assert run_clpipe(*other, "--fresh", cwd=tmp_path).returncode == 1
    assert os.listdir(tmp_path) == ["out.h5"]
