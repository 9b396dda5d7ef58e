"""A log that gives its space back while it becomes the file, as it does where the disk has too little
space for both: killed meanwhile, looked at, finished with and without the pictures."""

import json
import os
import shutil

import h5py
import pytest
from conftest import CLPIPE, check_one_error, draw_photos, run_clpipe

FAULTS = CLPIPE.parent / "tests" / "faults.so"
FEATURES = ["--feature", "rgb:bins=8x8x8", "--feature", "lbp:store=uint8", "--thumbnails", "32", "--device", "cpu"]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory, program):
    if not FAULTS.exists():
        pytest.skip(f"{FAULTS} is not built")
    place = tmp_path_factory.mktemp("handover") / "pictures"
    draw_photos(place, 60)
    return place


def short_of_space(*args, fault=None, **more):
    env = {"LD_PRELOAD": str(FAULTS), "CLPIPE_FAULT_DISK": "full", **({"CLPIPE_FAULT": fault} if fault else {})}
    return run_clpipe(*args, env=env, **more)


def digest(path):
    return run_clpipe("info", "--digest", path).stdout


def blocks(path):
    return os.stat(path).st_blocks * 512


@pytest.fixture(scope="module")
def killed(pictures, tmp_path_factory):
    """A work directory of which a part has moved, and the identity that its file is to have."""
    place = tmp_path_factory.mktemp("killed")
    command = ["ingest", pictures, "-o", "x.h5", *FEATURES]
    assert run_clpipe(*command, cwd=place).returncode == 0
    identity = digest(place / "x.h5")
    # There are two syncs for each of 32 pieces of the log.
    (place / "x.h5").unlink()
    assert short_of_space(*command, cwd=place, fault="sync * 45 kill").returncode == -9
    assert (place / "x.h5.partial" / "handover").exists()
    return place, identity


def copy_of(killed, tmp_path):
    place, identity = killed
    shutil.copytree(place, tmp_path / "place")
    return tmp_path / "place", identity


def test_what_is_said(killed):
    place, _ = killed
    shown = run_clpipe("info", "x.h5", cwd=place)
    state = json.loads(run_clpipe("info", "--json", "-", "x.h5", cwd=place).stdout)["unfinished"]
    assert state["writing_file"] and state["files"] == state["images"] == 61
    assert "61 files done: 61 images" in shown.stdout, shown
    assert "all files are processed; " in shown.stdout and " records are in the result" in shown.stdout
    assert 0 < state["files_in_result"] < 61
    tried = run_clpipe("repair", "--dry-run", "x.h5", cwd=place)
    assert tried.returncode == 3 and "repair without --dry-run finishes it" in tried.stderr
    assert not (place / "x.h5").exists()


def test_ingest_finishes(killed, pictures, tmp_path):
    place, identity = copy_of(killed, tmp_path)
    done = run_clpipe("ingest", pictures, "-o", "x.h5", *FEATURES, cwd=place)
    assert done.returncode == 0 and "moving the rest" in done.stderr, done.stderr
    assert digest(place / "x.h5") == identity
    assert run_clpipe("verify", "x.h5", cwd=place).returncode == 0
    assert os.listdir(place) == ["x.h5"]


def test_repair_finishes_without_the_pictures(killed, tmp_path):
    place, identity = copy_of(killed, tmp_path)
    done = run_clpipe("repair", "x.h5", cwd=place)
    assert done.returncode == 0, done.stderr
    assert digest(place / "x.h5") == identity
    assert os.listdir(place) == ["x.h5"]


def test_other_pictures_afterwards(killed, pictures, tmp_path):
    """The file of before is finished, then updated as any other."""
    place, identity = copy_of(killed, tmp_path)
    draw_photos(tmp_path / "more", 3)
    done = run_clpipe("ingest", pictures, tmp_path / "more", "-o", "x.h5", *FEATURES, cwd=place)
    assert done.returncode == 0, done.stderr
    whole = run_clpipe("ingest", pictures, tmp_path / "more", "-o", "y.h5", *FEATURES, cwd=place)
    assert whole.returncode == 0
    assert digest(place / "x.h5") == digest(place / "y.h5") != identity


def test_begun_anew(killed, tmp_path):
    place, identity = copy_of(killed, tmp_path)
    draw_photos(tmp_path / "more", 3)
    done = run_clpipe("ingest", "--fresh", tmp_path / "more", "-o", "x.h5", *FEATURES, cwd=place)
    assert done.returncode == 0, done.stderr
    with h5py.File(place / "x.h5") as file:
        assert len(file["images/path"]) == 4
    assert os.listdir(place) == ["x.h5"] and digest(place / "x.h5") != identity


def test_a_damaged_part_of_the_log(killed, pictures, tmp_path):
    """It costs its images only, and they are done again."""
    place, identity = copy_of(killed, tmp_path)
    log = place / "x.h5.partial" / "records"
    content = bytearray(log.read_bytes())
    content[-3000] ^= 1
    log.write_bytes(content)
    refused = run_clpipe("ingest", pictures, "-o", "x.h5", *FEATURES, "-q", cwd=place)
    check_one_error(refused, 3, "records is damaged: clpipe repair finishes the result without the images")
    assert (place / "x.h5.partial" / "result").exists()
    repaired = run_clpipe("repair", "x.h5", cwd=place)
    assert repaired.returncode == 1, repaired.stdout + repaired.stderr
    with h5py.File(place / "x.h5") as file:
        assert len(file["images/path"]) == 60
    done = run_clpipe("ingest", pictures, "-o", "x.h5", *FEATURES, cwd=place)
    assert done.returncode == 0, done.stderr
    assert digest(place / "x.h5") == identity


def test_a_name_that_is_taken(pictures, tmp_path):
    """--fresh asks for nothing of before, but keeps what it may not replace."""
    command = ["ingest", pictures, "-o", "x.h5", *FEATURES]
    assert short_of_space(*command, cwd=tmp_path, fault="sync * 45 kill").returncode == -9
    (tmp_path / "x.h5").write_text("mine")
    refused = run_clpipe(*command, "--fresh", cwd=tmp_path)
    check_one_error(refused, 3, "exists and is not overwritten")
    refused = run_clpipe(*command, "-q", cwd=tmp_path)
    check_one_error(refused, 3, "a file with this name has appeared")
    (tmp_path / "x.h5").unlink()
    assert run_clpipe(*command, cwd=tmp_path).returncode == 0
    assert os.listdir(tmp_path) == ["x.h5"]


def test_least_space(pictures, tmp_path):
    """The log and the file never take much more than the file."""
    command = ["ingest", pictures, "-o", "x.h5", "--feature", "rgb:bins=256,grid=16x16", "--device", "cpu"]
    done = short_of_space(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    size = blocks(tmp_path / "x.h5")
    (tmp_path / "x.h5").unlink()
    # Killed at marks: what is there then.
    peaks = []
    for number in range(20, 60, 3):
        shutil.rmtree(tmp_path / "x.h5.partial", ignore_errors=True)
        (tmp_path / "x.h5").unlink(missing_ok=True)
        done = short_of_space(*command, cwd=tmp_path, fault=f"sync * {number} kill")
        work = tmp_path / "x.h5.partial"
        if done.returncode == 0:
            break
        if (work / "handover").exists():
            peaks.append(sum(blocks(work / name) for name in ("records", "result") if (work / name).exists()) / size)
    print("most space, in sizes of the file:", max(peaks))
    assert len(peaks) > 3 and max(peaks) < 1.2, peaks
