"""Clustering on several devices gives the same bits as on one, even if a device fails during the run. PoCL
provides the CPU as any number of devices."""

import json
import os
import subprocess
import time

import h5py
import numpy
import pytest
from PIL import Image

from conftest import CLPIPE, check_one_error, digest, run_clpipe

FAULTS = CLPIPE.parent / "tests" / "faults.so"
CASES = {
    "euclidean": ["-k", 24, "--metric", "euclidean"],
    "cosine": ["-k", 24, "--metric", "cosine", "--init", "kmeans-parallel"],
    "hellinger": ["-k", 24, "--metric", "hellinger", "--init", "random", "--n-init", 2],
    "weights": ["-k", 24, "--weights", "weights.npy"],
    "weights, kmeans-parallel": ["-k", 24, "--weights", "weights.npy", "--init", "kmeans-parallel"],
    "sweep": ["-k", "2:5:3", "--max-iter", 4, "--weights", "weights.npy"],
    "empty clusters": ["-k", 9, "--init", "same.npy"],
    "levels": ["--levels", "24,5", "--resample", "20:2", "--weights", "weights.npy"],
    "split": ["--split", "6x5", "--metric", "cosine"],
    "split, mini-batch": ["--split", "6x5", "--mini-batch", "300", "--max-iter", "9"],
}
STREAMED = ["--device-memory", "256K"]


@pytest.fixture(scope="module")
def place(tmp_path_factory, program):
    """A directory with positive rows, of which the last block is incomplete, and with weights and centroids."""
    place = tmp_path_factory.mktemp("devices")
    random = numpy.random.default_rng(3)
    rows = random.normal(0, 0.5, (7000, 21)) + random.uniform(2, 5, (24, 21))[random.integers(0, 24, 7000)]
    rows = numpy.abs(rows).astype("f4")
    numpy.save(place / "rows.npy", rows)
    numpy.save(place / "weights.npy", (10 ** random.uniform(-2, 2, 7000)).astype("f4"))
    numpy.save(place / "same.npy", numpy.vstack([rows[:3], numpy.full((6, 21), 1e4)]).astype("f4"))
    return place


@pytest.fixture(scope="module")
def several(program):
    for name in ("pthread", "cpu"):
        env = {count: {"POCL_DEVICES": " ".join([name] * count)} for count in (1, 2, 3)}
        listed = run_clpipe("devices", "--json", "-", env=env[3])
        if len(json.loads(listed.stdout or "[]")) == 3:
            return env
    pytest.skip("PoCL does not provide several devices")


def cluster(place, output, *args, env, code=0):
    """Clusters rows.npy on all devices. Removes the output first, since an existing result would only be reported."""
    output.unlink(missing_ok=True)
    result = run_clpipe("cluster", "rows.npy", "-o", output, "--device", "all", *args, cwd=place,
                        env=env, timeout=60)
    assert result.returncode == code, result.stderr
    return result


@pytest.mark.variations
@pytest.mark.parametrize("case", CASES)
def test_same_bits(place, several, tmp_path, case):
    cluster(place, tmp_path / "one.h5", *CASES[case], env=several[1])
    wanted = digest(tmp_path / "one.h5")
    ways = [(2, STREAMED), (3, [])] + ([(2, []), (3, STREAMED)] if case == "euclidean" else [])
    for count, memory in ways:
        report = cluster(place, tmp_path / "x.h5", *CASES[case], *memory, "--json", "-",
                         env=several[count]).stdout
        assert json.loads(report)["device"].count(" + ") == count - 1
        assert digest(tmp_path / "x.h5") == wanted
    with h5py.File(tmp_path / "x.h5") as file:
        assert file["clusters/kmeans/inertia_history"].size > 2 or case == "sweep"


@pytest.mark.deep
def test_assign(place, several, tmp_path):
    """Assigning the same images on several devices gives the labels of the clustering."""
    random = numpy.random.default_rng(5)
    (tmp_path / "album").mkdir()
    for i in range(600):
        Image.fromarray(random.integers(0, 1 + i % 255, (4, 5, 3), dtype="uint8")).save(
            tmp_path / "album" / f"{i}.bmp")
    for name in ("a.h5", "b.h5"):
        assert run_clpipe("ingest", "album", "-o", name, cwd=tmp_path).returncode == 0
    assert run_clpipe("cluster", "a.h5", "-k", 7, cwd=tmp_path).returncode == 0
    result = run_clpipe("assign", "a.h5", "b.h5", "--device", "all", "--json", "-", cwd=tmp_path,
                        env=several[3])
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["device"].count(" + ") == 2
    with h5py.File(tmp_path / "a.h5") as a, h5py.File(tmp_path / "b.h5") as b:
        for name in ("labels", "distances"):
            assert numpy.array_equal(a["clusters/kmeans"][name], b["clusters/kmeans"][name])


def test_mini_batches_use_one_device(place, several, tmp_path):
    arguments = ["-k", 9, "--mini-batch", 500, "--max-iter", 5]
    cluster(place, tmp_path / "one.h5", *arguments, env=several[1])
    result = cluster(place, tmp_path / "x.h5", *arguments, "--json", "-", env=several[3])
    assert "is used, although 3 devices were chosen" in result.stderr
    assert " + " not in json.loads(result.stdout)["device"]
    assert digest(tmp_path / "x.h5") == digest(tmp_path / "one.h5")


@pytest.fixture(scope="module")
def large(several, tmp_path_factory):
    """Rows in two parts of 2.3 MB each. One part has only three distinct rows and therefore three clusters."""
    place = tmp_path_factory.mktemp("large")
    random = numpy.random.default_rng(6)
    rows = numpy.vstack([random.normal(0, 1, (9000, 64)), 50 + numpy.eye(3, 64)[random.integers(0, 3, 9000)]])
    numpy.save(place / "rows.npy", rows[random.permutation(len(rows))].astype("f4"))
    cluster(place, place / "one.h5", "--split", "2x5", env=several[1])
    with h5py.File(place / "one.h5") as file:
        assert sorted(numpy.bincount(file["clusters/kmeans/parents"])) == [3, 5]
    return place, digest(place / "one.h5")


@pytest.mark.deep
def test_parts_beyond_memory(large, several, tmp_path):
    for count in (1, 3):
        cluster(large[0], tmp_path / "x.h5", "--split", "2x5", "--memory", "1M", env=several[count])
        assert digest(tmp_path / "x.h5") == large[1]


@pytest.mark.deep
def test_a_device_fails_with_parts_beyond_memory(large, several, tmp_path):
    if not FAULTS.exists():
        pytest.skip(f"{FAULTS} is not built")
    failed = 0
    for nth in (300, 600, 900):
        env = {**several[2], "LD_PRELOAD": FAULTS, "CLPIPE_FAULT": f"launch * {nth} -5",
               "CLPIPE_FAULT_NOTE": tmp_path / "note"}
        result = cluster(large[0], tmp_path / "x.h5", "--split", "2x5", "--memory", "1M", env=env)
        failed += "the other devices continue" in result.stderr
        assert digest(tmp_path / "x.h5") == large[1]
    assert failed > 0


def size_of(path):
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@pytest.mark.deep
@pytest.mark.parametrize("arguments, kept", ((["-k", 40, "--n-init", 12], 1), (["--split", "60x40"], 50000)))
def test_continues_with_other_devices(place, several, tmp_path, arguments, kept):
    """One device continues from a checkpoint of two. For a split, the checkpoint holds many of the 60 parts."""
    cluster(place, tmp_path / "whole.h5", *arguments, env=several[1])
    command = [CLPIPE, "cluster", place / "rows.npy", "-o", "x.h5", "--device", "all", *arguments,
               "--checkpoint", "0.001", "--progress", "never"]
    checkpoint = tmp_path / "x.h5.kmeans.checkpoint"
    for _ in range(10):  # on a slow disk, checkpoints are rare
        (tmp_path / "x.h5").unlink(missing_ok=True)
        process = subprocess.Popen([str(part) for part in command], cwd=tmp_path,
                                   stderr=subprocess.DEVNULL, env={**os.environ, **several[2]})
        while process.poll() is None and size_of(checkpoint) < kept:
            time.sleep(0.002)
        if process.poll() is None:
            break
    process.kill()
    process.wait()
    result = cluster(place, tmp_path / "x.h5", *arguments, env=several[1])
    assert "resuming after" in result.stderr
    assert digest(tmp_path / "x.h5") == digest(tmp_path / "whole.h5")


@pytest.fixture(scope="module")
def restarts(place, several):
    arguments = ["-k", 24, "--n-init", 2]
    cluster(place, place / "one.h5", *arguments, env=several[1])
    return arguments, digest(place / "one.h5")


@pytest.mark.deep
@pytest.mark.parametrize("case", ("levels", "split"))
def test_a_device_fails_at_a_level(place, several, tmp_path, case):
    """The other device keeps the finished work and does the rest, even in the middle of a level."""
    if not FAULTS.exists():
        pytest.skip(f"{FAULTS} is not built")
    cluster(place, tmp_path / "one.h5", *CASES[case], env=several[1])
    failed = resumed = 0
    for nth in (60, 300, 400, 500, 700, 1000):
        env = {**several[2], "LD_PRELOAD": FAULTS, "CLPIPE_FAULT": f"launch * {nth} -5",
               "CLPIPE_FAULT_NOTE": tmp_path / "note"}
        result = cluster(place, tmp_path / "x.h5", *CASES[case], "--json", tmp_path / "x.json", env=env)
        failed += "the other devices continue" in result.stderr
        for line in [line for line in result.stderr.splitlines() if "resuming after" in line]:
            resumed += int(line.split()[3]) == json.loads((tmp_path / "x.json").read_text())["iterations_resumed"] > 0
        assert digest(tmp_path / "x.h5") == digest(tmp_path / "one.h5")
    assert failed > 0 and (resumed > 0 or case == "split")


@pytest.mark.deep
@pytest.mark.parametrize("call", ("launch", "transfer", "event", "buffer", "queue", "kernel"))
def test_a_device_fails(place, several, restarts, tmp_path, call):
    """The other device continues from the same point, and a notice names the device that failed."""
    if not FAULTS.exists():
        pytest.skip(f"{FAULTS} is not built")
    failed = 0
    for nth in (40, 400) if call in ("launch", "transfer", "event") else (2,):
        env = {**several[2], "LD_PRELOAD": FAULTS, "CLPIPE_FAULT": f"{call} * {nth} -5",
               "CLPIPE_FAULT_NOTE": tmp_path / "note"}
        result = cluster(place, tmp_path / "x.h5", *restarts[0], env=env)
        assert digest(tmp_path / "x.h5") == restarts[1], nth
        if (tmp_path / "note").exists():
            (tmp_path / "note").unlink()
            (notice,) = [line for line in result.stderr.splitlines() if "the other" in line]
            assert "CL_OUT_OF_RESOURCES" in notice and "device " in notice
            failed += 1
        assert not (tmp_path / "x.h5.kmeans.checkpoint").exists()
    assert failed > 0


@pytest.mark.parametrize("call", ("context", "queue", "launch"))
def test_all_fail(place, several, tmp_path, call):
    if not FAULTS.exists():
        pytest.skip(f"{FAULTS} is not built")
    env = {**several[2], "LD_PRELOAD": FAULTS, "CLPIPE_FAULT": f"{call} * 1+ -5"}
    result = cluster(place, tmp_path / "x.h5", "-k", 5, env=env, code=3)
    assert result.stderr.splitlines()[-1].startswith("clpipe: ")
    assert not (tmp_path / "x.h5").exists()


def test_refused_rows_are_not_a_device_failure(place, several, tmp_path):
    rows = numpy.load(place / "rows.npy")
    rows[6500, 3] = numpy.nan
    numpy.save(tmp_path / "rows.npy", rows)
    result = run_clpipe("cluster", "rows.npy", "-k", 3, "-o", "x.h5", "--device", "all", cwd=tmp_path,
                        env=several[3])
    check_one_error(result, 3, "row 6500", "NaN in column 3")
