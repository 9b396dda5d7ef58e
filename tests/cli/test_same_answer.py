"""Clustering gives the same result on any device: `info --digest`, which covers labels, centroids, distances
and history, is the same for any number of threads, size of tiles and device, with or without streaming, and
after a kill."""

import json
import os
import subprocess
import time
from pathlib import Path

import numpy
import pytest

import matrices
from conftest import CLPIPE, LONG, run_clpipe

OCLGRIND = Path("/usr/lib/oclgrind/liboclgrind-rt-icd.so")
# Input and options of each clustering; each of them skips work in a different way.
KINDS = {
    "noise": ["-k", "16", "--n-init", "2", "--max-iter", "6"],
    "near ties": ["-k", "32", "--init", "first.npy"],
    "mixture": ["-k", "20", "--init", "kmeans-parallel", "--metric", "cosine"],
}
ROWS = 12000
TILES = [256, 512, 1024, 2048]


@pytest.fixture(scope="module", params=KINDS)
def task(request, tmp_path_factory, program):
    """A directory with rows.npy, the arguments of the command, and the digest of its result."""
    directory = tmp_path_factory.mktemp("rows")
    rows, first = matrices.make(request.param, directory)
    random = numpy.random.default_rng(3)
    if request.param == "near ties":
        rows, first = matrices.near_ties(random, ROWS)[:2]
    else:
        rows = numpy.concatenate([rows] * (ROWS // len(rows)))
        rows += numpy.float32(0.1) * random.normal(0, 1, rows.shape).astype("f4")
    numpy.save(directory / "rows.npy", rows.astype("f4"))
    numpy.save(directory / "first.npy", first.astype("f4"))
    arguments = ["cluster", "rows.npy", *KINDS[request.param], "--progress", "never", "-o"]
    return directory, arguments, answer(directory, arguments, "wanted.h5")


def answer(directory, arguments, output, *more, **kwargs):
    result = run_clpipe(*arguments, output, *more, cwd=directory, **kwargs)
    assert result.returncode == 0, result.stderr
    digest = run_clpipe("info", output, "--digest", cwd=directory)
    assert digest.returncode == 0, digest.stderr
    return digest.stdout.strip()


@pytest.mark.variations
@pytest.mark.parametrize("options", [("--threads", 1), ("--threads", 2), ("--threads", 7),
                                     ("--memory", "1M"), ("--memory", "3M", "--threads", 7)],
                         ids=lambda options: " ".join(map(str, options)))
def test_threads_and_memory(task, options):
    """Rows that exceed --memory are streamed if the device shares the host's memory."""
    directory, arguments, wanted = task
    assert answer(directory, arguments, f"{options}.h5", *options) == wanted


@pytest.mark.deep
def test_tiles(task):
    """Five tile sizes: one tile that stays on the device, and four sizes that are read again in each pass.
    Norms of rows are computed once per tile."""
    directory, arguments, wanted = task
    columns = numpy.load(directory / "rows.npy").shape[1]
    counts = []
    for rows in [*TILES, ROWS]:
        # Three slots may use half of the memory; rows are padded to 16 values.
        memory = "1G" if rows == ROWS else 6 * rows * 4 * -(-columns // 16 * 16)
        found = answer(directory, arguments, f"{rows} rows.h5", "--device-memory", memory,
                       "--profile", "trace.json")
        assert found == wanted, rows
        trace = json.loads((directory / "trace.json").read_text())
        counts.append(sum(event["name"] == "row norms" for event in trace["traceEvents"]))
    # k-means|| has tiles of candidates, too.
    assert [count - counts[-1] for count in counts] == [
        -(-ROWS // rows) - 1 for rows in [*TILES, ROWS]]


@pytest.mark.variations
def test_killed(task):
    """The run is killed as soon as it has written a checkpoint."""
    directory, arguments, wanted = task
    output, state = directory / "killed.h5", directory / "killed.h5.kmeans.checkpoint"
    command = [*arguments, "killed.h5", "--checkpoint", "0.001", "--threads", "1"]
    for _ in range(50):
        process = subprocess.Popen([CLPIPE, *command], cwd=directory, stderr=subprocess.DEVNULL)
        while process.poll() is None and not state.exists():
            time.sleep(0.001)
        process.kill()
        if process.wait() != 0:
            break
        output.unlink()  # it finished before the kill
    assert state.exists() and not output.exists()
    result = run_clpipe(*command, cwd=directory)
    assert result.returncode == 0 and "resuming after" in result.stderr, result.stderr
    assert answer(directory, arguments, "killed.h5") == wanted


# --- devices --------------------------------------------------------------------------------------

def vendors_with_oclgrind(directory):
    """An ICD directory with the installed drivers, or those of OCL_ICD_VENDORS, and with Oclgrind."""
    folder = Path(os.environ.get("OCL_ICD_VENDORS", "/etc/OpenCL/vendors"))
    directory.mkdir()
    for file in folder.glob("*.icd"):
        (directory / file.name).write_text(file.read_text())
    if OCLGRIND.exists():
        (directory / "oclgrind.icd").write_text(f"{OCLGRIND}\n")
    return directory


def devices(env):
    listed = run_clpipe("devices", "--json", "-", env=env)
    assert listed.returncode == 0, listed.stderr
    return [device for device in json.loads(listed.stdout) if device["usable"]]


@pytest.mark.parametrize("name", matrices.NAMES if LONG else ["noise", "near ties", "huge"])
def test_devices(name, tmp_path, program):
    """Runs on all available devices. PoCL's single-threaded device could be requested, too, but building the
    kernels for it takes half a minute."""
    env = {"POCL_DEVICES": "basic pthread"} if LONG else {}
    found = devices(env)
    if len(found) < 2:
        pytest.skip("there is one device only")
    matrices.save(name, tmp_path)
    k = len(numpy.load(tmp_path / "first.npy"))
    answers = {}
    for device in found:
        answers[device["name"]] = answer(
            tmp_path, ["cluster", "rows.npy", "-k", k, "--max-iter", 8, "-o"],
            f"{device['index']}.h5", "--device", device["index"], env=env)
    print(name, answers)
    assert len(set(answers.values())) == 1, answers


@pytest.mark.deep
def test_oclgrind(tmp_path, program):
    """Oclgrind interprets each work-item, so it gets little data."""
    if not OCLGRIND.exists():
        pytest.skip("oclgrind is not installed")
    env = {"OCL_ICD_VENDORS": vendors_with_oclgrind(tmp_path / "vendors")}
    rows, first, _, _ = matrices.near_ties(numpy.random.default_rng(9), 320)
    numpy.save(tmp_path / "rows.npy", rows.astype("f4"))
    numpy.save(tmp_path / "first.npy", first.astype("f4"))
    answers = set()
    found = devices(env)
    for device in found:
        answers.add(answer(tmp_path, ["cluster", "rows.npy", "-k", 32, "--init", "first.npy", "-o"],
                           f"{device['index']}.h5", "--device", device["index"], env=env))
    assert any("Oclgrind" in device["platform"] for device in found) and len(found) > 1
    assert len(answers) == 1
