"""Files are opened and read ahead of the decode threads, in case the storage is slow."""

import json
import os
import resource

import h5py
import pytest
from PIL import Image

from conftest import CLPIPE, run_clpipe

LIBRARY = CLPIPE.parent / "tests" / "latency.so"
COUNT = 120
LATENCY = 0.02


@pytest.fixture
def source(tmp_path, program):
    directory = tmp_path / "in"
    directory.mkdir()
    for i in range(COUNT):
        Image.new("RGB", (8 + i, 8), (i, 2 * i, 255 - i)).save(directory / f"{i:03}.jpg")
    return directory


def ingest(source, output, *options, **kwargs):
    result = run_clpipe("ingest", source, "-o", output, "-q", *options, **kwargs)
    assert result.returncode == 0, result.stderr
    return run_clpipe("info", output, "--digest").stdout


@pytest.mark.deep
@pytest.mark.skipif(not LIBRARY.exists(), reason="latency.so is not built in this variant")
@pytest.mark.parametrize("options", [[], ["--isolate"]])
def test_several_at_a_time(tmp_path, source, options):
    """If the decode thread waited for each file itself, decoding would take 4.8 s."""
    plain = ingest(source, tmp_path / "plain.h5")
    trace = tmp_path / "trace.json"
    slow = ingest(source, tmp_path / "slow.h5", "--threads", 1, "--profile", trace, *options,
                  env={"LD_PRELOAD": LIBRARY, "CLPIPE_LATENCY_US": int(LATENCY * 1e6)})
    assert slow == plain
    spans = [event for event in json.loads(trace.read_text())["traceEvents"]
             if event["name"] == "decode"]
    assert len(spans) == COUNT
    ends = [(event["ts"] + event["dur"]) * 1e-6 for event in spans]
    assert max(ends) - min(ends) < COUNT * 2 * LATENCY * 0.75


def test_few_descriptors(tmp_path, source):
    """Files opened ahead count towards the limit on descriptors: with a limit of 48, nothing fails."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    plain = ingest(source, tmp_path / "plain.h5")
    assert ingest(source, tmp_path / "few.h5", "--threads", 3, preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_NOFILE, (48, most))) == plain


def test_failures_stay_in_order(tmp_path, source):
    """Files that cannot be opened are listed in order."""
    for i in range(0, COUNT, 3):
        os.rename(source / f"{i:03}.jpg", source / f"{i:03}.png")
        (source / f"{i:03}.jpg").symlink_to("nowhere")
    result = run_clpipe("ingest", source, "-o", tmp_path / "out.h5", "-q", "--threads", 4)
    assert result.returncode == 1, result.stderr
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["images/path"].shape == (COUNT,)
        assert sorted(file["images/path"].asstr()[:]) == list(file["images/path"].asstr()[:])
        assert list(file["failures/path"].asstr()[:]) == [f"{i:03}.jpg" for i in range(0, COUNT, 3)]


def test_the_window_is_full(tmp_path, source):
    """Files are opened faster than images reach the store, so the threads that open files wait for space in
    the window of open files. There is no deadlock."""
    for i in range(COUNT):
        for copy in range(20):
            os.link(source / f"{i:03}.jpg", source / f"{i:03}-{copy:02}.jpg")
    result = run_clpipe("ingest", source, "-o", tmp_path / "out.h5", "-q", "--threads", 12, "--memory",
                        "16M", timeout=60)
    assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["images/path"].shape == (21 * COUNT,)
