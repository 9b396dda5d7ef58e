"""Several devices in one run: PoCL's device with Oclgrind, which is ten thousand times slower, or with PoCL's
single-threaded device. A slow device does not delay a fast one, a broken device is skipped, and the result equals
that of one device."""

import json
import os
from pathlib import Path

import h5py
import numpy
import pytest
from PIL import Image

from conftest import CLPIPE, check_one_error, digest, run_clpipe

OCLGRIND = Path("/usr/lib/oclgrind/liboclgrind-rt-icd.so")
FAULTS = CLPIPE.parent / "tests" / "faults.so"
TWO = {"POCL_DEVICES": "basic pthread"}


@pytest.fixture(scope="module")
def album(tmp_path_factory, program):
    """24 pictures with half a megabyte of pixels each, one with 9 MB, and the digest of their result on one
    device."""
    directory = tmp_path_factory.mktemp("album")
    random = numpy.random.default_rng(3)
    for i in range(25):
        shape = (2000, 1500, 3) if i == 7 else (400, 420, 3)
        Image.fromarray(random.integers(0, 256, shape, dtype="uint8")).save(
            directory / f"{i:02}.bmp")
    one = directory.parent / "one.h5"
    result = run_clpipe("ingest", directory, "-o", one, env={"POCL_DEVICES": "pthread"})
    assert result.returncode == 0, result.stderr
    return directory, digest(one)


@pytest.fixture(scope="module")
def two(program):
    listed = run_clpipe("devices", "--json", "-", env=TWO)
    if len(json.loads(listed.stdout or "[]")) != 2:
        pytest.skip("PoCL does not provide two devices")
    return TWO


@pytest.mark.slow
def test_a_slow_device_does_not_stall_a_fast_one(clpipe, album, tmp_path):
    """Oclgrind would take minutes for one slot of these pictures, so the fast device must not wait for it."""
    if not OCLGRIND.exists():
        pytest.skip("oclgrind is not installed")
    vendors = tmp_path / "vendors"
    vendors.mkdir()
    for file in Path("/etc/OpenCL/vendors").glob("pocl*.icd"):
        (vendors / file.name).write_text(file.read_text())
    (vendors / "oclgrind.icd").write_text(f"{OCLGRIND}\n")
    env = {"OCL_ICD_VENDORS": vendors, "POCL_DEVICES": "pthread"}
    if len(json.loads(clpipe("devices", "--json", "-", env=env).stdout or "[]")) != 2:
        pytest.skip("the OpenCL loader does not list both devices")
    result = clpipe("ingest", album[0], "-o", "x.h5", "--device", "all", "--profile", "trace.json",
                    env={**env, "CLPIPE_CACHE_DIR": tmp_path / "cache"}, timeout=60)
    assert result.returncode == 0, result.stderr
    assert digest(tmp_path / "x.h5") == album[1]
    with h5py.File(tmp_path / "x.h5", "r") as file:
        assert "Oclgrind Simulator + pthread" in file["runs/0"].attrs["device"]
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events
             if event["name"] == "process_name"}
    for event in events:
        if event["ph"] == "X" and names[event["pid"]] != "host":
            times = [event["args"]["queued"], event["args"]["submitted"], event["ts"]]
            assert times == sorted(times)


def test_device_numbers(clpipe, album, two, tmp_path):
    result = clpipe("ingest", album[0], "-o", "x.h5", "--device", "1,0", "--limit", 3, env=two)
    assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path / "x.h5", "r") as file:
        first, second = file["runs/0"].attrs["device"].split(" + ")
        assert first.startswith("pthread") and second.startswith("basic")
    result = clpipe("ingest", album[0], "-o", "y.h5", "--device", "1,1", "--limit", 3, env=two)
    with h5py.File(tmp_path / "y.h5", "r") as file:
        assert " + " not in file["runs/0"].attrs["device"]
    for bad, what in (("0,2", "no device 2"), ("0,", "no device ;"), ("7", "no device 7")):
        check_one_error(clpipe("ingest", album[0], "-o", "z.h5", "--device", bad, env=two), 3, what,
                        "#0 basic", "#1 pthread")


# OpenCL calls that give work to a device.
WORK = ("launch", "transfer", "flush", "callback", "event")


@pytest.mark.deep
@pytest.mark.parametrize("call", WORK)
def test_a_device_fails(clpipe, album, two, tmp_path, call):
    """Whenever a device fails, the other device counts its pictures."""
    if not FAULTS.exists():
        pytest.skip(f"{FAULTS} is not built")
    failed = 0
    for nth in (1, 5, 12, 20, 30):
        env = {**two, "LD_PRELOAD": FAULTS, "CLPIPE_FAULT": f"{call} * {nth} -5",
               "CLPIPE_FAULT_NOTE": tmp_path / "note"}
        result = clpipe("ingest", album[0], "-o", "x.h5", "--fresh", "--device", "all",
                        "--slot-size", "1M", env=env, timeout=60)
        assert result.returncode == 0, f"{nth}: {result.stderr}"
        if (tmp_path / "note").exists():
            notices = [line for line in result.stderr.splitlines() if "notice: " in line]
            failed += len(notices)
            (tmp_path / "note").unlink()
        assert digest(tmp_path / "x.h5") == album[1]
        assert not os.path.exists(tmp_path / "x.h5.partial")
    assert failed > 0


@pytest.mark.variations
@pytest.mark.parametrize("call", ("context", "queue", "buffer", "build", "kernel", "launch",
                                  "transfer", "flush", "event"))
def test_all_devices_fail(clpipe, album, two, tmp_path, call):
    if not FAULTS.exists():
        pytest.skip(f"{FAULTS} is not built")
    env = {**two, "LD_PRELOAD": FAULTS, "CLPIPE_FAULT": f"{call} * 1+ -5"}
    result = clpipe("ingest", album[0], "-o", "x.h5", "--device", "all", env=env, timeout=60)
    assert result.returncode == 3
    last = result.stderr.splitlines()[-1]
    assert last.startswith("clpipe: ") and "notice" not in last
    assert call == "context" or "CL_OUT_OF_RESOURCES" in last
    assert not (tmp_path / "x.h5").exists()


@pytest.mark.variations
@pytest.mark.parametrize("call", ("queue", "buffer", "build", "kernel"))
def test_a_device_that_cannot_be_opened_is_skipped(clpipe, album, two, tmp_path, call):
    if not FAULTS.exists():
        pytest.skip(f"{FAULTS} is not built")
    env = {**two, "LD_PRELOAD": FAULTS, "CLPIPE_FAULT": f"{call} * 1 -5"}
    if call == "build":  # if a cached program does not build, its source would
        env["CLPIPE_NO_CACHE"] = "1"
    result = clpipe("ingest", album[0], "-o", "x.h5", "--device", "all", env=env, timeout=60)
    assert result.returncode == 0, result.stderr
    notices = [line for line in result.stderr.splitlines() if line.startswith("clpipe: notice: ")]
    assert len(notices) == 1
    if call == "buffer":  # smaller slots are tried
        assert "trying slots of" in notices[0]
    elif call == "build":  # another kernel or the host takes over
        assert "instead of 'private'" in notices[0] or "kernel code_slot does not build" in notices[0]
    else:
        assert "CL_OUT_OF_RESOURCES" in notices[0]
    assert digest(tmp_path / "x.h5") == album[1]
